//! Code to run: what is asked ([`ExecutionRequest`]), what observers see of it while it runs ([`feed`]), and what
//! came of it ([`ExecutionReport`]). The caller decides where it runs: on a kernel of this command
//! ([`crate::local_execution`]) or on a session of the host ([`crate::hosted_execution`]).

mod cell_event;
pub(crate) mod duration;
pub(crate) mod feed;
mod notebook;
mod observer;
mod recording;
mod report;
mod request;
mod summary;

pub(crate) use cell_event::{CellEvent, CellRef};
pub(crate) use notebook::{CellOutputs, finish_without_cells};
pub(crate) use observer::{Execution, OnFinish};
pub(crate) use report::{ExecutionReport, ExecutionStatus};
pub(crate) use request::{CellRequest, ExecutionRequest, InlineLimits, OnError};
pub(crate) use summary::ExecutionSummary;
