//! The host: one background process per user that owns what outlives a command.
//!
//! ```text
//! command: find ──(info file, socket, hello)──► Client ──frames──► host: server ──► HostService
//!            └─ no host? launch (`__host`), wait for `ready`, connect
//! ```
//!
//! Host and commands share the [runtime directory](cellwright_engine::runtime_dir): [`host_record`] describes the live host there, and
//! `host_files` holds its lock. [`frame`] and [`hello`] define the bytes on the socket, [`protocol`] and [`reply`] the
//! messages. [`kernel_host::KernelHost`] is what front ends use: its requests, and [`run_stream::RunStream`] for code
//! that runs. A server without a socket is an `in_process` host: the same messages, passed as values.

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

mod channel;
pub mod connect;
pub mod connection;
pub mod error;
mod failure;
pub mod find;
pub mod frame;
pub mod hello;
mod host_files;
pub mod host_main;
pub mod host_record;
mod in_process;
pub mod kernel_host;
mod launch;
pub mod log;
pub mod protocol;
pub mod reply;
pub mod run_stream;
mod server;
mod service;
pub mod stop;
mod suspend_check;

use std::time::Duration;

pub use failure::{cancel_timeout_failure, host_not_running};

use cellwright_engine::settings::Settings;

/// Time after which a host without work ends; `None`: never.
pub fn idle_exit(settings: &Settings) -> Option<Duration> {
    let time = settings.host.idle_exit;
    (!time.is_zero()).then_some(time)
}
