//! Tests of kernels and their processes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test a panic is the report"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "environment variables name the interpreters to test with"
)]

mod contract;
mod gateway;
mod hostile;
mod interrupts;
mod jupyter;
mod memory;
mod modules;
mod order;
mod process;
mod session;
mod simulation;
mod support;
