//! Runs a notebook's cells on a kernel and writes the outputs to the file.
//!
//! The types in the order in which a run uses them:
//!
//! * [`preview`] reads a notebook as a [`Listing`] of its cells, after [`Edit`]s that are not applied yet.
//! * [`CellSelection`] selects cells of a listing, and [`ExecutionHistory`] reports which of them are not
//!   [fresh](Freshness). [`parameters`] writes the cell that sets parameters.
//! * [`RunSpec`] states which cells run and where the outputs are written.
//! * [`Recorder`] applies the edits when the kernel is ready, receives each [`FinishedCell`] and saves the notebook
//!   while the cells run. [`RecordOutcome`] is its result.
//! * [`run`] does all of this in one call, with [`Options`] and a [`Report`].
//! * [`compare`] compares the outputs of two runs.
//!
//! A recorder needs no kernel. Here a cell is recorded as if a kernel had run it:
//!
//! ```
//! use std::time::SystemTime;
//!
//! use cellwright_output::{Capture, Event, Limits, Sink, Stream};
//! use cellwright_run::{CellSelection, FinishedCell, PlannedCell, Recorder, RunSpec, Stores, preview};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("sum.ipynb");
//! # let cell = r#"{"cell_type": "code", "id": "sum", "metadata": {}, "source": "print(1 + 1)", "outputs": []}"#;
//! # let text = format!(r#"{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#);
//! # std::fs::write(&path, text)?;
//! let notebook = preview(&path, &[])?;
//! let selected = CellSelection::default().resolve(&notebook.listing)?;
//! let cells = selected.into_iter().map(|index| PlannedCell::from_listing(&notebook.listing, index));
//! let spec = RunSpec {
//!     path: path.clone(),
//!     revision: notebook.revision.clone(),
//!     cells: cells.collect(),
//!     ..RunSpec::default()
//! };
//! let recorder = Recorder::start(spec, Stores::default())?;
//! recorder.commit()?;
//! recorder.begin_cell(0);
//! let mut capture = Capture::new(Limits::default(), None);
//! capture.push(Event::Text { stream: Stream::Stdout, bytes: b"2\n" });
//! recorder.finish_cell(FinishedCell {
//!     cell: 0,
//!     execution_count: Some(1),
//!     outputs: capture.finish().outputs,
//!     finished_at: SystemTime::now(),
//! });
//! let outcome = recorder.finish();
//! assert_eq!(outcome.saves, 1);
//! assert!(std::fs::read_to_string(&path)?.contains(r#""2\n""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod compare;
mod edits;
mod error;
mod freshness;
mod incomplete_cell;
mod lenient_json;
mod listing;
mod notebook_metadata;
pub mod parameters;
mod perform;
mod preview;
mod record;
mod recorder;
mod run_spec;
mod saver;
mod selection;
mod spool;

pub use edits::{Edit, InvalidEdit};
pub use error::RunError;
pub use freshness::{ExecutionHistory, Freshness};
pub use incomplete_cell::incomplete_cell_error;
pub use listing::{ListedCell, Listing};
pub use perform::{CellReport, CellStatus, Options, Report, run};
pub use preview::{NotebookPreview, PreviewError, preview};
pub use record::{CellConflict, CommitError, FinishedCell, RecordOutcome, Stores};
pub use recorder::{Recorder, apply_edits};
pub use run_spec::{PlannedCell, RunSpec};
pub use selection::{CellSelection, SelectionError};

/// The tag of a cell that does not run.
pub const SKIP_EXECUTION_TAG: &str = "skip-execution";

/// The tag of a cell that may raise an exception without ending the run.
pub const RAISES_EXCEPTION_TAG: &str = "raises-exception";
