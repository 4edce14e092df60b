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
mod completion;
mod concurrency;
mod config;
mod context;
mod crash;
mod diff;
mod doctor;
mod edit;
mod editor;
mod eval;
mod eval_failures;
mod figures;
mod gateway;
mod git;
mod help;
mod host;
mod hostile_text;
mod json;
mod jupyter;
mod logging;
mod many_cells;
mod mcp;
mod notebook;
mod notebook_metadata;
mod notebook_parameters;
mod old_formats;
mod on_terminal;
mod open_notebooks;
mod process_cleanup;
mod read;
mod readme;
mod run;
mod save;
mod sessions;
mod shared_gateway;
mod shared_locations;
mod soak;
mod stdin;
mod terminal;
mod tidy;
mod undo;
mod untrusted;
mod volume;
mod write;
