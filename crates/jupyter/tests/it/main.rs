//! What the crate promises, tested from outside: Python's Jupyter finds, reads, writes and says the same.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "who runs the tests gives them an interpreter in a variable"
)]

mod channels;
mod connection;
mod golden;
mod hostile;
mod kernel;
mod kernelspec;
mod memory;
mod places;
mod ports;
mod properties;
mod publisher;
mod python;
mod server;
mod sockets;
mod support;
