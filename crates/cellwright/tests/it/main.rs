//! The binary, used as people use it, and the structure of the whole project.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

mod artifact;
mod bad_input;
mod check;
mod closed_pipe;
mod concurrency;
mod config;
mod context;
mod crash;
mod diff;
mod doctor;
mod edit;
mod eval;
mod eval_trouble;
mod git;
mod help;
mod host;
mod inside;
mod jupyter;
mod logging;
mod mcp;
mod notebook;
mod read;
mod readme;
mod run;
mod save;
mod sessions;
mod soak;
mod survivors;
mod tidy;
mod volume;
mod write;
