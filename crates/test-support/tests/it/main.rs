//! The fixtures for the gateway client: each engine starts, replies and ends without survivors.

#![expect(clippy::unwrap_used, reason = "tests")]

mod engines;
