//! Jupyter notebooks as editable text, without losing a byte.
//!
//! The crate reads, edits, compares and merges `.ipynb` files. It keeps the file's bytes and the
//! spans of its cells, found by one scan. An edit splices new bytes between old ones, so everything
//! else stays as it was, and a notebook of 100 MB costs a scan and no tree.
//!
//! The main types, in the order of an edit:
//!
//! * [`Notebook`]: the bytes of a file and the spans of its cells. [`Cells`] is the read access that
//!   it shares with other sources of cells.
//! * [`render`] writes the text view: all sources, separated by markers such as `# %% [code] cell:0`.
//!   [`parse`] parses an edited view.
//! * [`edit`]: operations on one cell ([`edit::Operation`]) and text replacement. Each gives an
//!   [`edit::Draft`].
//! * [`Plan`]: the cells of the result, one [`Slot`] each. Every edit becomes a plan first.
//! * [`compose`] applies a plan and gives an [`EditedNotebook`].
//!
//! ```
//! use cellwright_notebook::{MarkerStyle, Notebook, compose, edit, render};
//!
//! let notebook = Notebook::parse(
//!     r#"{"cells": [{"cell_type": "code", "source": "1+1", "metadata": {},
//!         "outputs": [], "execution_count": null}], "nbformat": 4, "nbformat_minor": 4}"#,
//! )?;
//! assert_eq!(render(&notebook, MarkerStyle::Indexes), "# %% [code] cell:0\n1+1");
//!
//! let draft = edit::replace_text(&notebook, "1+1", "6*7", edit::Occurrences::One).unwrap();
//! let edited = compose(&notebook, &draft.plan).to_bytes();
//! assert!(String::from_utf8_lossy(&edited).contains(r#""source": "6*7", "metadata""#));
//! # Ok::<(), cellwright_notebook::FormatError>(())
//! ```
//!
//! [`file`](mod@file) reads and replaces files: atomically, and without losing concurrent updates.
//! [`file::change`] applies an edit; if the file is no longer at the [`Revision`] that the edit was
//! made for, it merges the edit with the help of [`Baselines`]. [`file::survey`] and
//! [`file::record`] serve running notebooks: they never keep outputs in memory.
//!
//! [`select`], [`outline`] and [`outputs`] show parts of a notebook. [`compare`](fn@compare),
//! [`merge_three_way`], [`render_textconv`] and [`strip_outputs`] are for version control.
//! [`upgrade`](fn@upgrade) converts older formats.
//!
//! The crate does not know kernels. It neither prints nor reads the environment.

mod baseline;
mod cell;
mod cell_matching;
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
mod merge;
pub mod outline;
pub mod outputs;
mod plan;
mod revision;
mod rewrite;
mod scan;
pub mod select;
mod source;
mod span;
mod strip;
mod text;
mod textconv;
mod three_way;
mod upgrade;
mod view;

pub use baseline::{Baseline, Baselines};
pub use cell::CellKind;
pub use compare::{CellDifference, Comparison, MemberDifference, OutputDifference, Scope, compare};
pub use compose::{EditedNotebook, compose};
pub use diff::Hunk;
pub use document::{Cells, Notebook};
pub use error::{EditError, FormatError, NotebookError, Notice, Position};
pub use json::style::Style;
pub use layout::CELL_DEPTH;
pub use plan::{OutputAction, Plan, Slot, Tally};
pub use revision::Revision;
pub use rewrite::rewrite;
pub use strip::strip_outputs;
pub use text::{Block, MarkerStyle, ParsedText, append_cell, parse, render};
pub use textconv::render_textconv;
pub use three_way::{ConflictMarkers, MergeNotice, MergedNotebook, Side, merge_three_way};
pub use upgrade::{UpgradeOutcome, upgrade};
pub use view::{CellSummary, NotebookView};
