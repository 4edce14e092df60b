//! Jupyter notebooks as editable text, losing nothing.
//!
//! A notebook is kept as the file's own bytes plus spans found by one scan. It is shown as a text
//! with cell markers; an edited text, or an operation on one cell, becomes a [`Plan`]; carrying the
//! plan out splices new bytes between old ones. So what was not touched stays as it was, byte for
//! byte, and a notebook of 100 MB costs a scan and not a tree.
//!
//! ```
//! use cellwright_notebook::{Markers, Notebook, compose, edit, render};
//!
//! let notebook = Notebook::parse(
//!     r#"{"cells": [{"cell_type": "code", "source": "1+1", "metadata": {},
//!         "outputs": [], "execution_count": null}], "nbformat": 4, "nbformat_minor": 4}"#,
//! )?;
//! assert_eq!(render(&notebook, Markers::Indexes), "# %% [code] cell:0\n1+1");
//!
//! let draft = edit::replace_text(&notebook, "1+1", "6*7", edit::Occurrences::One).unwrap();
//! let edited = compose(&notebook, &draft.plan).to_bytes();
//! assert!(String::from_utf8_lossy(&edited).contains(r#""source": "6*7", "metadata""#));
//! # Ok::<(), cellwright_notebook::FormatError>(())
//! ```
//!
//! Files are read and replaced by [`file`](mod@file): atomically, with protection against lost
//! updates. The crate knows nothing of kernels; it neither prints nor reads the environment.

mod baseline;
mod cell;
mod compare;
mod compose;
mod diff;
mod document;
pub mod edit;
mod error;
pub mod file;
mod ids;
mod json;
mod layout;
mod lines;
mod matched;
mod merge;
pub mod outline;
pub mod outputs;
mod plan;
mod review;
mod revision;
mod rewrite;
mod scan;
pub mod select;
mod source;
mod span;
mod strip;
mod text;
mod three_way;
mod upgrade;
mod view;

pub use baseline::{Baseline, Baselines};
pub use cell::CellKind;
pub use compare::{CellDifference, Comparison, MemberDifference, OutputDifference, Scope, compare};
pub use compose::{Edited, compose};
pub use diff::Hunk;
pub use document::{Cells, Notebook};
pub use error::{EditError, FormatError, NotebookError, Notice, Position};
pub use layout::{CELL_DEPTH, Style};
pub use plan::{Outputs, Plan, Slot, Tally};
pub use review::review;
pub use revision::Revision;
pub use rewrite::rewrite;
pub use strip::strip;
pub use text::{Block, Markers, ParsedText, append_cell, parse, render};
pub use three_way::{Marks, Merged, Remark, Side, three_way};
pub use upgrade::{Upgraded, upgrade};
pub use view::{CellSummary, Glance};
