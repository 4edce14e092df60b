//! Integration tests of the binary, and checks of the structure of the whole project.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot continue fails"
)]

mod artifact;
mod bad_input;
mod bridge_and_modules;
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
mod eval_failures;
mod git;
mod help;
mod host;
mod json;
mod jupyter;
mod logging;
mod mcp;
mod notebook;
mod process_cleanup;
mod read;
mod readme;
mod run;
mod save;
mod sessions;
mod soak;
mod tidy;
mod volume;
mod write;
