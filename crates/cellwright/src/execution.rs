//! Runs code: the cells to run ([`ExecutionRequest`]), the items that viewers receive while they run ([`feed`]), and the
//! result ([`ExecutionReport`]). The caller decides where it runs: on a kernel of this command
//! ([`crate::local_execution`]) or on a session of the host ([`crate::hosted_execution`]).

mod cell_event;
pub(crate) mod duration;
mod failure;
pub(crate) mod feed;
mod feed_item;
mod observer;
mod recording;
mod report;
mod report_builder;
mod report_document;
mod request;
mod saved_notebook;

pub(crate) use cell_event::{CellEvent, CellRef};
pub(crate) use failure::{commit_failure, preview_failure, run_failure, selection_failure};
pub(crate) use observer::{Execution, OnFinish};
pub(crate) use report::{CellOutputs, CellReport, ExecutionReport, ExecutionStatus, ImageReport};
pub(crate) use report_document::ReportDocument;
pub(crate) use request::{CellRequest, ExecutionRequest, InlineLimits, OnError};
pub(crate) use saved_notebook::finish_without_cells;
