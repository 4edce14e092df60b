//! Both sides of the Jupyter messaging protocol: kernelspecs, connection files, and signed messages over ZMTP.
//!
//! A kernel and its clients exchange messages over five channels: *shell* (requests and replies), *iopub* (messages that
//! the kernel publishes to all clients), *stdin* (input requests to a client), *control* (requests that must not wait for
//! running cells) and *heartbeat*. Each channel is a ZMTP connection.
//!
//! # Modules, in reading order
//!
//! | module | purpose |
//! | --- | --- |
//! | [`paths`] | the directories that Jupyter searches |
//! | [`kernelspec`] | finds installed kernels and the commands that start them |
//! | [`connection`] | the addresses of a kernel's sockets and the signing key; connection files, socket directories |
//! | [`ports`] | TCP ports that are reserved for a kernel |
//! | [`message`] | a message with header, parent, metadata, content and buffers |
//! | [`frame`], [`frame_store`] | a part of a message, in memory or on disk; the decision between the two |
//! | [`codec`] | messages as signed frames (`signing` computes the signatures) |
//! | [`backlog`] | items that were read and not taken yet, in memory or on disk |
//! | [`client`] | the client side of the five channels |
//! | [`server`], [`publisher`] | the kernel side of the five channels; text in batches on iopub |
//! | `zmtp` | the transport protocol, without knowledge of Jupyter |
//!
//! # Flow
//!
//! ```text
//! JupyterPaths → kernelspec::find → Kernelspec ─┐
//! SocketDir or ReservedPorts → Connection ──────┴→ ConnectionFile → command of the kernel (run by the caller)
//!
//! KernelClient::send → MessageCodec → IoThread → zmtp ⇄ kernel
//! KernelClient::next ← MessageCodec ← Backlog  ← zmtp ⇄ kernel
//! ```
//!
//! # Example
//!
//! A kernel and a client in one process. The client sends its request once iopub is subscribed. A cell has finished when
//! its reply and the kernel's status `idle` have arrived, in either order.
//!
//! ```
//! use cellwright_jupyter::client::{ClientEvent, ClientOptions, KernelClient};
//! use cellwright_jupyter::connection::{Channel, Connection, SocketDir};
//! use cellwright_jupyter::message::Message;
//! use cellwright_jupyter::server::{Server, ServerEvent, ServerOptions};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = SocketDir::new(&[std::env::temp_dir()])?;
//! let connection = Connection::new_ipc(sockets.stem())?;
//! let mut server = Server::bind(&connection, &ServerOptions::default()).await?;
//! let kernel = async {
//!     let ServerEvent::Request(channel, request) = server.next().await else {
//!         panic!("the client was disconnected");
//!     };
//!     let publisher = server.publisher();
//!     publisher.publish_status(&request, "busy");
//!     server.reply(channel, &request, "execute_reply", &json!({ "status": "ok" }))?;
//!     publisher.publish_status(&request, "idle");
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! };
//!
//! let mut client = KernelClient::open(&connection, &ClientOptions::default())?;
//! let request = Message::new("execute_request", client.session(), &json!({ "code": "1 + 1" }));
//! let cell = async {
//!     let (mut replied, mut idle) = (false, false);
//!     while !(replied && idle) {
//!         match client.next().await {
//!             ClientEvent::Message(_, message) if message.header.msg_type == "iopub_welcome" => {
//!                 client.send(Channel::Shell, &request);
//!             }
//!             ClientEvent::Message(channel, message) if message.parent_id() == request.header.msg_id => {
//!                 match channel {
//!                     Channel::Shell => replied = message.value()["status"] == "ok",
//!                     Channel::Iopub => idle |= message.value()["execution_state"] == "idle",
//!                     _ => {}
//!                 }
//!             }
//!             ClientEvent::Closed(channel, error) => panic!("{channel:?} closed: {error:?}"),
//!             _ => {}
//!         }
//!     }
//! };
//! let (served, ()) = tokio::join!(kernel, cell);
//! served?;
//! client.close().await;
//! server.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The crate starts no processes, prints nothing and reads no environment variables: the caller passes all paths.

pub mod backlog;
mod bounded_read;
pub mod client;
pub mod codec;
pub mod connection;
pub mod frame;
pub mod frame_store;
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
