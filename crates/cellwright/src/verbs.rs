//! The verbs of the command line: each module parses its arguments, calls an operation and prints the result.

pub(crate) mod artifact;
mod change;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
mod editor;
mod env_args;
pub(crate) mod eval;
pub(crate) mod gateway;
pub(crate) mod git;
pub(crate) mod helpers;
pub(crate) mod host;
mod kernel_args;
pub(crate) mod kernels;
pub(crate) mod notebook;
mod notebook_input;
pub(crate) mod read;
pub(crate) mod report_args;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod text_source;
pub(crate) mod trust;
pub(crate) mod write;
