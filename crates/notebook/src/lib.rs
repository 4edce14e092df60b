//! Jupyter notebooks as editable text, without losing a byte.
//!
//! The crate reads, edits, compares and merges `.ipynb` files. It keeps the file's bytes and the spans of its
//! cells, found by one scan. An edit splices new bytes between old ones, so everything else stays unchanged,
//! and a notebook of 100 MB costs one scan and no tree. The crate does not depend on kernels, prints nothing, and
//! reads no environment variables.
//!
//! # Flow of an edit
//!
//! ```text
//! file ── load ──▶ Notebook ── render ──▶ text view
//! edited text view ── parse ──▶ ParsedText ── rewrite ──▶ Plan
//! edit::Operation, edit::replace_text ──▶ edit::Draft { plan, … }
//! Notebook + Plan ── compose ──▶ EditedNotebook ── save ──▶ file
//! ```
//!
//! Every edit first becomes a [`Plan`]: the cells of the result, one [`Slot`] each, in terms of the cells of the
//! file. [`compose`] applies it. [`file::change`] does all of this under a lock: if the file is no longer at
//! the [`Revision`] that the edit was made for, it merges the edit with the help of [`Baselines`], and it
//! replaces the file atomically.
//!
//! # Modules, in reading order
//!
//! The notebook:
//!
//! * `document`: [`Notebook`], the bytes of a file and the spans of its cells, and [`Cells`], the read access
//!   that it shares with other sources of cells.
//! * `cell`, `span`, `revision`: [`CellKind`], byte ranges, and [`Revision`], the hash of a file's content.
//! * `scan`, `json`: one pass over the bytes that finds the cells; JSON tokens, styles and object edits.
//! * `error`: [`NotebookError`], [`FormatError`], [`EditError`] and [`Notice`].
//!
//! The text view:
//!
//! * `text`: [`render`] writes all sources, separated by markers such as `# %% [code] cell:0`; [`parse`] parses
//!   an edited view, or a text in the percent format of other tools.
//! * `view`: [`NotebookView`], the text view and the baseline, built during the scan.
//! * [`select`], [`outline`], [`outputs`], [`images`]: selectors such as `:cells=3-5`, one line per cell, stored outputs
//!   and images.
//!
//! Edits:
//!
//! * `plan`: [`Plan`], [`Slot`], and [`CellChangeCounts`], the number of cells by kind of change.
//! * [`edit`]: operations on one cell ([`edit::Operation`]) and text replacement; each returns an
//!   [`edit::Draft`].
//! * [`metadata`]: changes to the metadata of a cell or of the notebook.
//! * `rewrite`: matches the blocks of an edited view with the old cells.
//! * `compose`, `layout`, `source`, `ids`: the new bytes, in the layout of the file.
//! * `diff`, `lines`: unified diffs of the text view.
//!
//! Files:
//!
//! * [`file`](mod@file): reads and replaces files. [`file::survey`] and [`file::record`] serve running
//!   notebooks: they never keep outputs in memory.
//! * `baseline`, `merge`, `cell_matching`: the cells of earlier revisions, and the merge of an edit that was made
//!   for one of them.
//!
//! Version control:
//!
//! * `compare`: [`compare`](fn@compare) reports the differences of two notebooks, cell by cell.
//! * `three_way`: [`merge_three_way`] merges two notebooks with a common base.
//! * `textconv`, `strip`: [`render_textconv`], [`strip_outputs`] and [`strip_file`], for git drivers.
//! * `upgrade`: [`upgrade`](fn@upgrade) converts older formats to nbformat 4.5.
//!
//! # Example
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
//! let draft = edit::replace_text(&notebook, "1+1", "6*7", edit::ReplaceScope::One).unwrap();
//! let edited = compose(&notebook, &draft.plan).to_bytes();
//! assert!(String::from_utf8_lossy(&edited).contains(r#""source": "6*7", "metadata""#));
//! # Ok::<(), cellwright_notebook::FormatError>(())
//! ```

mod baseline;
mod cell;
mod cell_matching;
mod cell_texts;
mod compare;
mod compose;
mod diff;
mod document;
pub mod edit;
mod error;
pub mod file;
mod ids;
pub mod images;
mod json;
mod layout;
mod lines;
mod merge;
pub mod metadata;
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

pub use baseline::{Baseline, Baselines, Direction, History, HistoryStep, NoStep};
pub use cell::CellKind;
pub use cell_texts::CellTexts;
pub use compare::{CellDifference, Comparison, MemberDifference, OutputDifference, Scope, compare};
pub use compose::{EditedNotebook, compose};
pub use diff::Hunk;
pub use document::{Cells, Notebook};
pub use error::{
    EditError, FormatError, MarkerText, NotebookError, Notice, Position, SimilarText,
    TextDifference, TextMatch, UnmarkedText,
};
pub use json::style::Style;
pub use layout::CELL_DEPTH;
pub use plan::{CellChangeCounts, OutputAction, Plan, Slot};
pub use revision::Revision;
pub use rewrite::rewrite;
pub use strip::{strip_file, strip_outputs};
pub use text::{Block, MarkerStyle, ParsedText, append_cell, append_tagged_cell, parse, render};
pub use textconv::render_textconv;
pub use three_way::{ConflictMarkers, MergeNotice, MergedNotebook, Side, merge_three_way};
pub use upgrade::{UpgradeOutcome, parse_any_format, upgrade};
pub use view::{CellSummary, NotebookView};
