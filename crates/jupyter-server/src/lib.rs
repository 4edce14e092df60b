//! Jupyter servers on this machine: finds them, verifies them, and asks them over REST which notebooks are open.
//!
//! A running server writes `jpserver-PID.json` into Jupyter's runtime directory, with its address and its token. The file
//! stays behind when the server is killed, and another process may get its port. A server is asked only if the file belongs
//! to this user and the process that it names owns the listening socket; the token leaves this process only then.
//!
//! # Modules, in reading order
//!
//! | module | purpose |
//! | --- | --- |
//! | [`record`] | the files of the runtime directory |
//! | `endpoint` | connects to the server of a record, and proves that its process is at the other end |
//! | `http` | requests and replies on one connection, with a deadline |
//! | `rest` | the requests: sessions, hash of a file, rooms of jupyter-collaboration |
//! | [`locate()`] | asks all servers about one notebook |
//!
//! Everything is blocking: file operations use this crate, and they have no async runtime.

mod endpoint;
mod http;
pub mod locate;
pub mod record;
mod rest;

pub use endpoint::owns_listener;
pub use locate::{Located, OpenNotebook, SessionKernel, UnansweredReason, locate};
