//! Runs cells on a kernel, follows them while they run, reports the results and saves the outputs in their notebook.
//!
//! The types in the order in which a run uses them:
//!
//! * [`preview`] reads a notebook as a [`Listing`] of its cells, after [`Edit`]s that are not applied yet.
//! * [`CellSelection`] selects cells of a listing, and [`ExecutionHistory`] reports which of them are not
//!   [fresh](Freshness). [`parameters`] writes the cell that sets parameters.
//! * [`FilePath`] is a file whose directory may be held open, so that no later link leads elsewhere.
//! * [`ExecutionRequest`] states the cells to run with their limits; for a notebook it contains a [`RunSpec`], which
//!   states where the outputs are saved.
//! * [`Execution`] captures the output of a job and lets any thread follow it: viewers read a [`feed`] of events with
//!   their MIME bundles. [`ExecutionObserver`] is its end at the session.
//! * [`Recorder`] applies the edits when the kernel is ready, receives each [`FinishedCell`] and saves the notebook
//!   while the cells run. [`RecordOutcome`] is its result.
//! * [`ExecutionReport`] is the result: plain data, the same in the process that ran the cells and in a client of the
//!   host. [`ReportDocument`] is what users see of it in JSON.
//! * [`execute`] runs a request on a kernel that ends with it, [`run_notebook`] a whole notebook. The command line uses
//!   the same path.
//! * [`compare`] compares the outputs of two runs.
//!
//! A recorder needs no kernel. Here a cell is recorded as if a kernel had run it:
//!
//! ```
//! use std::time::SystemTime;
//!
//! use cellwright_output::{Capture, Event, Limits, Sink, Stream};
//! use cellwright_execution::{CellSelection, FinishedCell, PlannedCell, Recorder, RunSpec, Stores, preview};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("sum.ipynb");
//! # let cell = r#"{"cell_type": "code", "id": "sum", "metadata": {}, "source": "print(1 + 1)", "outputs": []}"#;
//! # let text = format!(r#"{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#);
//! # std::fs::write(&path, text)?;
//! let notebook = preview(&path, &[])?;
//! let selected = CellSelection::default().resolve(&notebook.listing)?;
//! let cells = selected.into_iter().map(|index| PlannedCell::from_listing(&notebook.listing, index));
//! let spec = RunSpec {
//!     path: path.clone().into(),
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
//!     widget_state: None,
//! });
//! let outcome = recorder.finish();
//! assert_eq!(outcome.saves, 1);
//! assert!(std::fs::read_to_string(&path)?.contains(r#""2\n""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell_event;
mod cell_request;
pub mod compare;
mod describe;
pub mod duration;
mod duration_store;
mod earlier_displays;
mod edits;
mod error;
mod error_hints;
mod execute;
mod failure;
pub mod feed;
mod feed_item;
mod file_path;
mod freshness;
mod incomplete_cell;
mod lenient_json;
mod listing;
mod notebook_metadata;
mod notebook_recorder;
mod notebook_report;
mod observer;
pub mod parameters;
mod planned_cells;
mod preview;
mod progress_line;
mod recorder;
mod recorder_command;
mod report;
mod report_builder;
mod report_document;
mod request;
mod run_history;
mod run_notebook;
mod run_spec;
mod saver;
mod selection;
mod shared_list;
mod spool;

pub use cell_event::{CellEvent, CellRef};
pub use cell_request::{CellRequest, CellRequests, OnError};
pub use describe::{describe_cells, describe_exception};
pub use duration_store::DurationStore;
pub use edits::{Edit, InvalidEdit, tag_changes};
pub use error::RunError;
pub use error_hints::HintContext;
pub use execute::execute;
pub use failure::{commit_failure, preview_failure, run_failure, selection_failure};
pub use file_path::FilePath;
pub use freshness::{
    CellEnding, CellFreshness, ExecutionHistory, Freshness, StaleCause, StaleReason,
};
pub use incomplete_cell::incomplete_cell_error;
pub use listing::{ListedCell, Listing};
pub use notebook_report::finish_without_cells;
pub use observer::{Execution, ExecutionObserver, ExecutionSnapshot, FinishCallback};
pub use planned_cells::{PlannedCell, PlannedCells};
pub use preview::{NotebookPreview, PreviewError, preview};
pub use recorder::{Recorder, apply_edits};
pub use recorder_command::{CellConflict, CommitError, FinishedCell, RecordOutcome, Stores};
pub use report::{
    CellDetails, CellOutputs, CellReport, ConflictReason, ConflictReport, DeathReport, ErrorReport,
    ExecutionReport, ExecutionStatus, ImageReport, KernelReport, NotebookReport, TruncationReport,
};
pub use report_document::{ReportDetail, ReportDocument, plain_text};
pub use request::{ExecutionRequest, InlineLimits};
pub use run_notebook::{RunOptions, run_notebook};
pub use run_spec::RunSpec;
pub use selection::{CellSelection, SelectionError};

/// The tag of a cell that does not run.
pub const SKIP_EXECUTION_TAG: &str = "skip-execution";

/// The tag of a cell that may raise an exception without ending the run.
pub const RAISES_EXCEPTION_TAG: &str = "raises-exception";
