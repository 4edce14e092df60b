//! Operations: each takes a plain request and returns a typed result. The command line, MCP and the bridge are
//! front ends: they build the request and present the result. Nothing here parses arguments or prints.

pub(crate) mod artifact;
pub(crate) mod cells;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod eval;
pub(crate) mod git;
pub(crate) mod helpers;
pub(crate) mod kernel_specs;
pub(crate) mod kernels;
pub(crate) mod outline;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod seconds;
pub(crate) mod trust;
pub(crate) mod upgrade;
pub(crate) mod write;
