//! The host: one background process per user that owns what outlives a command.
//!
//! ```text
//! command: find ──(info file, socket, hello)──► Client ──frames──► host: server ──► Service
//!            └─ nobody there? launch (`__host`), wait for `ready`, connect
//! ```
//!
//! [`crate::runtime_dir`] is where both meet, [`record`] what is written there about the living host, [`host_files`]
//! what that host holds, [`frame`] and [`hello`] what goes over the socket. What a host does for its
//! clients is behind [`service::Service`].

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod error;
mod failure;
pub(crate) mod find;
pub(crate) mod frame;
pub(crate) mod hello;
mod host_files;
mod keeper;
pub(crate) mod kernel_host;
mod launch;
pub(crate) mod log;
pub(crate) mod protocol;
pub(crate) mod record;
mod server;
pub(crate) mod service;
pub(crate) mod start;
pub(crate) mod stop;

use std::time::Duration;

use crate::settings::Settings;

/// How long a host with nothing to do stays; `None` for ever.
pub(crate) fn idle_exit(settings: &Settings) -> Option<Duration> {
    let time = settings.host.idle_exit;
    (!time.is_zero()).then_some(time)
}
