//! Tests of the public API. Python's Jupyter packages are the oracle: they must find, read and write the same.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests get their interpreter in an environment variable"
)]

mod channels;
mod connection;
mod golden;
mod hostile;
mod kernel;
mod kernelspec;
mod memory;
mod paths;
mod ports;
mod properties;
mod publisher;
mod python;
mod server;
mod socket_dir;
mod support;
