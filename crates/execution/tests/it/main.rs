//! Tests of running notebooks.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests read the path of Python from the environment"
)]

mod compare;
mod parameters;
mod recorder;
mod run_notebook;
mod support;
