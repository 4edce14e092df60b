//! Failures, hints and notices: what a user reads when something fails or surprises.
//!
//! * [`failure`]: a [`failure::Failure`] is an error as the caller sees it: message, causes, hints and exit code. The
//!   errors of the library crates convert into it. A [`failure::Hint`] names flags and commands as parts, which each
//!   front end renders in its own form.
//! * [`install`]: the commands that install Python packages, for hints.
//! * [`notice`]: a [`notice::UserNotice`] tells the caller something although nothing failed. The notices of the library
//!   crates become notices here.
//! * [`json_schema`]: types for fields of `--json` documents whose Rust type does not determine their schema.
//! * [`suggest`]: suggests an existing name for a misspelled one.
//!
//! Texts are written once, here and next to the errors of the application crates. This crate does not print.
//!
//! ```
//! use cellwright_diagnostics::failure::{Failure, Kind};
//! use cellwright_notebook::file;
//!
//! let error = file::survey("missing.ipynb".as_ref()).unwrap_err();
//! let failure = Failure::from(error).hint("nothing was written");
//! assert_eq!((failure.kind, failure.exit_code()), (Kind::BadFile, 2));
//! assert!(failure.message.contains("missing.ipynb"));
//! ```

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

pub mod failure;
pub mod install;
pub mod json_schema;
pub mod notice;
pub mod suggest;
