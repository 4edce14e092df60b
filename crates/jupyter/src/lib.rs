//! Both sides of the Jupyter messaging protocol: kernelspecs, connection files, and signed messages over ZMTP.
//!
//! A kernel and its clients exchange messages over five channels: *shell* (requests and replies), *iopub* (messages that
//! the kernel publishes to all clients), *stdin* (input requests to a client), *control* (requests that must not wait for
//! running cells) and *heartbeat*. Each channel is a ZMTP connection.
//!
//! To run code in an installed kernel, a caller uses these types in this order:
//!
//! 1. [`paths::JupyterPaths`] lists the folders that Jupyter searches, and [`kernelspec::find`] finds a
//!    [`kernelspec::Kernelspec`] there: the command that starts the kernel.
//! 2. [`connection::Connection`] holds the addresses of the kernel's sockets and the signing key. They are Unix sockets
//!    in a [`connection::SocketDir`], or TCP [`ports::ReservedPorts`]. A [`connection::ConnectionFile`] passes them to
//!    the kernel.
//! 3. [`client::KernelClient`] connects to the kernel, sends each [`message::Message`] and returns each
//!    [`client::ClientEvent`]. Parts of a message are [`frame::Frame`]s, in memory or on disk.
//!
//! A kernel uses the other side: [`server::Server`] binds the sockets and returns requests, [`publisher::Publisher`]
//! publishes outputs.
//!
//! Below them, [`codec::MessageCodec`] signs and verifies messages, and [`frame_store::FrameStore`] decides which frames
//! a transport keeps in memory.
//!
//! ```no_run
//! use cellwright_jupyter::client::{ClientEvent, ClientOptions, KernelClient};
//! use cellwright_jupyter::connection::{Channel, Connection};
//! use cellwright_jupyter::message::Message;
//! use serde_json::json;
//!
//! # async fn tour() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::read("kernel-1.json".as_ref())?;
//! let mut client = KernelClient::open(&connection, &ClientOptions::default())?;
//! let request = Message::new("execute_request", client.session(), &json!({ "code": "1 + 1" }));
//! client.send(Channel::Shell, &request);
//! // A cell has finished when its reply and the kernel's status `idle` have arrived, in either order.
//! let (mut replied, mut idle) = (false, false);
//! while !(replied && idle) {
//!     match client.next().await {
//!         ClientEvent::Message(channel, message) if message.parent_id() == request.header.msg_id => {
//!             let content = message.value();
//!             match channel {
//!                 Channel::Shell => replied = true,
//!                 Channel::Iopub => idle |= content["execution_state"] == "idle",
//!                 _ => {}
//!             }
//!         }
//!         // Caused by another client.
//!         ClientEvent::Message(..) => {}
//!         ClientEvent::Closed(channel, error) => return Err(format!("{channel:?} closed: {error:?}").into()),
//!         _ => {}
//!     }
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The crate starts no processes, prints nothing and reads no environment variables: the caller passes all paths.

mod bounded_read;
pub mod client;
pub mod codec;
pub mod connection;
pub mod frame;
pub mod frame_store;
mod hex;
pub mod kernelspec;
pub mod message;
pub mod paths;
pub mod ports;
pub mod publisher;
pub mod server;
mod signing;
// Not part of the API: the crate's tests and its fuzz target drive the protocol directly.
#[doc(hidden)]
pub mod zmtp;

pub use zmtp::{Endpoint, Limits, ZmtpError};
