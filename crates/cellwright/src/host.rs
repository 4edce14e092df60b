//! The host: one background process per user that owns what outlives a command.
//!
//! ```text
//! command: find ──(info file, socket, hello)──► Client ──frames──► host: server ──► HostService
//!            └─ no host? launch (`__host`), wait for `ready`, connect
//! ```
//!
//! Both sides meet in the [runtime directory](crate::runtime_dir): [`record`] describes the live host there, and
//! [`host_files`] holds its lock. [`frame`] and [`hello`] define the bytes on the socket, [`protocol`] and [`reply`] the
//! messages. [`kernel_host::KernelHost`] is what front ends use: its requests, and [`run_stream::RunStream`] for code
//! that runs. A server without a socket is an [`in_process`] host: the same messages, passed as values.

mod channel;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod error;
mod failure;
pub(crate) mod find;
pub(crate) mod frame;
pub(crate) mod hello;
mod host_files;
mod in_process;
pub(crate) mod kernel_host;
mod launch;
pub(crate) mod log;
pub(crate) mod protocol;
pub(crate) mod record;
pub(crate) mod reply;
pub(crate) mod run_stream;
mod server;
mod service;
pub(crate) mod start;
pub(crate) mod stop;

use std::time::Duration;

pub(crate) use failure::{cancel_unanswered, host_not_running};

use crate::settings::Settings;

/// Time after which a host without work ends; `None`: never.
pub(crate) fn idle_exit(settings: &Settings) -> Option<Duration> {
    let time = settings.host.idle_exit;
    (!time.is_zero()).then_some(time)
}
