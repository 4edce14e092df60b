//! The Jupyter wire, both ends.
//!
//! A kernel and its clients talk over five channels: *shell* (requests and their replies), *iopub* (what
//! the kernel tells everybody), *stdin* (what it asks a client), *control* (shell for what must not wait)
//! and *heartbeat*. Each is a connection that speaks ZMTP ([`zmtp`]); a message is several frames
//! ([`message`]), signed with the key of the kernel's connection file ([`connection`]).
//!
//! [`kernelspec`] finds the kernels that are installed, along the folders that [`places`] knows.
//!
//! [`link::Link`] is a client's end of the channels, [`server::Server`] a kernel's:
//!
//! ```no_run
//! use cellwright_jupyter::connection::{Channel, Connection};
//! use cellwright_jupyter::link::{Heard, Link, Options};
//! use cellwright_jupyter::message::Message;
//! use serde_json::json;
//!
//! # async fn tour() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::read("kernel-1.json".as_ref())?;
//! let mut link = Link::open(&connection, &Options::default())?;
//! let request = Message::new("execute_request", link.session(), &json!({ "code": "1 + 1" }));
//! link.send(Channel::Shell, &request);
//! // A cell has ended when its reply has come and the kernel says that it is idle, in either order.
//! let (mut replied, mut idle) = (false, false);
//! while !(replied && idle) {
//!     match link.next().await {
//!         Heard::Message(channel, message) if message.parent_id() == request.header.msg_id => {
//!             let content = message.value();
//!             match channel {
//!                 Channel::Shell => replied = true,
//!                 Channel::Iopub => idle |= content["execution_state"] == "idle",
//!                 _ => {}
//!             }
//!         }
//!         // It was somebody else's.
//!         Heard::Message(..) => {}
//!         Heard::Closed(channel, why) => return Err(format!("{channel:?} is gone: {why:?}").into()),
//!         _ => {}
//!     }
//! }
//! link.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! This crate starts no processes, does not print, and reads no environment: whoever uses it says where
//! to look.

pub mod connection;
pub mod frame;
pub mod kernelspec;
pub mod link;
pub mod message;
pub mod places;
pub mod ports;
pub mod publisher;
mod seal;
pub mod server;
mod small;
pub mod wire;
pub mod zmtp;
