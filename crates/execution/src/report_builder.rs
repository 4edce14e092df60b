//! [`ReportBuilder`]: collects the results of the cells while they run.

use std::time::{Duration, SystemTime};

use cellwright_diagnostics::failure::{Failure, Hint, Kind, capitalize, flag_value, hint};
use cellwright_diagnostics::notice::{self, NoticeKind, UserNotice};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::CellEnd;
use cellwright_kernel::{Ending, KernelError, KernelState, ShutdownReport, StopReason};
use cellwright_output::{ArtifactOrigin, BoundedJson, Captured, Image, Outputs};
use serde_json::Value;

use super::cell_event::{CellEvent, CellRef};
use super::cell_request::{CellRequests, OnError};
use super::describe::{describe_cells, describe_exception};
use super::error_hints::{self, HintContext};
use super::incomplete_cell::incomplete_cell_error;
use super::report::{
    CellDetails, CellReport, DeathReport, ErrorReport, ExecutionReport, ExecutionStatus,
    ImageReport, TruncationReport,
};
use super::request::ExecutionRequest;
use super::run_spec::RunSpec;

/// A report under construction.
#[derive(Debug)]
pub(super) struct ReportBuilder {
    pub(super) report: ExecutionReport,
    /// How the first cell ended that did not end as intended.
    first_failure: Option<ExecutionStatus>,
    /// Whether no cell may start.
    not_started: bool,
    /// Path of the notebook in which the outputs are saved.
    notebook: Option<String>,
    /// The cells of the request.
    requests: CellRequests,
    /// Indexes of the cells of the notebook that have not run on the kernel.
    missing_cells: Vec<usize>,
    hint_context: HintContext,
    /// Names of [`ExecutionRequest::env`] until the kernel is known.
    requested_variables: Vec<String>,
}

impl ReportBuilder {
    pub(super) fn new(session: Option<String>, request: &ExecutionRequest) -> Self {
        let requests = request.cell_requests();
        let mut cells = Vec::with_capacity(requests.len());
        cells.extend((0..requests.len()).filter_map(|at| new_report(&requests, at)));
        Self {
            report: ExecutionReport {
                status: ExecutionStatus::Pending,
                run: None,
                session,
                kernel: None,
                cells,
                died: None,
                path: request.notebook.as_ref().map(|spec| spec.path.to_text()),
                notebook: None,
                notices: Vec::new(),
                started: SystemTime::now(),
                kernel_ready: None,
                elapsed: Duration::ZERO,
                failure: None,
            },
            first_failure: None,
            not_started: false,
            notebook: request
                .notebook
                .as_ref()
                .map(|spec| spec.written_file().to_text()),
            requests,
            missing_cells: match &request.notebook {
                Some(spec) => spec.missing_cells.clone(),
                None => Vec::new(),
            },
            hint_context: request.hint_context.clone(),
            requested_variables: request.env.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Reports the variables of the request that a running kernel does not receive: only Python kernels can set them.
    pub(super) fn check_variables(&mut self, are_set: bool) {
        let names = std::mem::take(&mut self.requested_variables);
        if are_set || names.is_empty() {
            return;
        }
        let text = format!(
            "the kernel is running and keeps its values of {}",
            names.join(", ")
        );
        self.add_notice(NoticeKind::VariablesNotSet, text);
    }

    /// Records why no cell may start.
    pub(super) fn record_not_started(&mut self, failure: Failure) {
        self.not_started = true;
        self.report.status = ExecutionStatus::NotStarted;
        self.report.failure = Some(failure);
    }

    /// Records that the outputs could not be saved. The failure of a cell comes first.
    pub(super) fn record_save_failure(&mut self, failure: Failure) {
        match &mut self.report.failure {
            None => self.report.failure = Some(failure),
            Some(first) => {
                first.causes.push(failure.message);
                first.causes.extend(failure.causes);
                first.hints.extend(failure.hints);
            }
        }
    }

    /// Records that a cell starts. Returns `false` if no cell may start.
    pub(super) fn begin_cell(&mut self, index: usize) -> bool {
        if self.not_started {
            return false;
        }
        let report = &mut self.report;
        report.status = ExecutionStatus::Running;
        let generation = report.kernel.as_ref().map(|kernel| kernel.generation);
        if let Some(cell) = report.cells.get_mut(index) {
            cell.status = ExecutionStatus::Running;
            cell.generation = generation.unwrap_or_default();
        }
        true
    }

    /// Records how a cell ended.
    pub(super) fn record_end(&mut self, index: usize, end: CellEnd) {
        let not_started = self.not_started;
        let Some(cell) = self.report.cells.get_mut(index).filter(|_| !not_started) else {
            return;
        };
        // A cell of a notebook that was not started keeps its stored outputs.
        let untouched = self.notebook.is_some() && cell.status == ExecutionStatus::Pending;
        let incomplete = incomplete_cell_error(&end).filter(|_| !untouched);
        // Rounded to microseconds.
        cell.duration_ms = (end.duration.as_secs_f64() * 1e6).round() / 1e3;
        let status = match end.result {
            Ok(outcome) => {
                cell.execution_count = outcome.execution_count;
                self.record_ending(index, outcome.ending)
            }
            Err(KernelError::StoppedEarly { reason }) => {
                self.record_stop_before(index, reason);
                ExecutionStatus::from_stop_reason(reason)
            }
            Err(error @ (KernelError::Died { .. } | KernelError::Protocol { .. })) => {
                self.record_death(index, error);
                ExecutionStatus::Died
            }
            // The kernel could not be started, or not restarted.
            Err(error) => {
                self.report.failure = Some(Failure::from(error));
                if self.report.cells.iter().any(CellReport::ran) {
                    ExecutionStatus::Died
                } else {
                    ExecutionStatus::NotStarted
                }
            }
        };
        let cell = &mut self.report.cells[index];
        cell.error = cell
            .error
            .take()
            .or(incomplete.map(|error| Box::new(error.into())));
        cell.status = if untouched {
            ExecutionStatus::Skipped
        } else {
            status
        };
        if !cell.ended_as_expected() {
            // The status that ended the execution wins; among the others, the first.
            if !matches!(status, ExecutionStatus::Error | ExecutionStatus::Timeout) {
                self.first_failure = Some(status);
            }
            self.first_failure.get_or_insert(status);
        }
        self.report.status = self.first_failure.unwrap_or(ExecutionStatus::Ok);
    }

    fn record_death(&mut self, index: usize, error: KernelError) {
        let (exit, stderr) = match &error {
            KernelError::Died { exit, stderr, .. } => (Some(*exit), stderr.clone()),
            _ => (None, String::new()),
        };
        self.report.died = Some(DeathReport {
            signal: exit.and_then(|exit| exit.signal),
            exit_code: exit.and_then(|exit| exit.code),
            stderr_tail: stderr,
        });
        let failure = Failure::from_cell_error(error, self.report.cells[index].index);
        self.add_notice(NoticeKind::KernelDied, failure.message.clone());
        self.report.failure = Some(failure);
    }

    /// Records that the execution was stopped before a cell started.
    fn record_stop_before(&mut self, index: usize, reason: StopReason) {
        let cell = self
            .notebook
            .is_some()
            .then(|| self.report.cells[index].index);
        let failure = Failure::from_stop(reason, None, cell);
        // An exception after which the execution continued is not what ended it.
        let raised = |failure: &Failure| matches!(failure.kind, Kind::Raised);
        if self.report.failure.as_ref().is_none_or(raised) {
            self.report.failure = Some(failure);
        }
    }

    fn record_ending(&mut self, index: usize, ending: Ending) -> ExecutionStatus {
        let count = self.report.cells.len();
        let hints = match &ending {
            Ending::Raised(error) => {
                let kernel = self.report.kernel.as_ref();
                let interpreter = kernel.and_then(|kernel| kernel.interpreter.as_deref());
                error_hints::describe(error, interpreter, &self.hint_context)
            }
            _ => Vec::new(),
        };
        let cell = &mut self.report.cells[index];
        match ending {
            Ending::Completed => ExecutionStatus::Ok,
            Ending::Raised(traceback) => {
                let raised = describe_exception(&traceback.name, &traceback.value);
                let message = format!("{} raised {raised}", capitalize(&describe_cell(cell)));
                cell.error = Some(Box::new(ErrorReport {
                    hints: hints.iter().map(Hint::for_command_line).collect(),
                    ..traceback.into()
                }));
                let (on_error, number) = (cell.on_error, cell.index);
                // The traceback of a single piece of code is enough, unless there are hints.
                let needs_failure = count > 1 || self.notebook.is_some() || !hints.is_empty();
                if needs_failure && on_error != OnError::Expected {
                    let failure = Failure::new(Kind::Raised, message);
                    let failure = match (count - index - 1, on_error) {
                        (0, _) | (_, OnError::Continue) => failure,
                        (1, _) => failure.hint("the cell after it was skipped"),
                        (after, _) => {
                            failure.hint(format!("the {after} cells after it were skipped"))
                        }
                    };
                    let failure = self.add_missing_cells(failure, number);
                    let failure = self.report.failure.get_or_insert(failure);
                    for hint in hints {
                        if !failure.hints.contains(&hint) {
                            failure.hints.push(hint);
                        }
                    }
                }
                ExecutionStatus::Error
            }
            Ending::Stopped { reason, state } => {
                let cell = self.notebook.is_some().then_some(cell.index);
                let failure = Failure::from_stop(reason, Some(state), cell);
                let kind = match state {
                    KernelState::Preserved => NoticeKind::Interrupted,
                    KernelState::Lost => NoticeKind::KernelKilled,
                };
                self.add_notice(kind, failure.message.clone());
                self.report.failure = Some(failure);
                ExecutionStatus::from_stop_reason(reason)
            }
        }
    }

    /// Adds a hint if cells before the failed one have not run.
    fn add_missing_cells(&self, failure: Failure, index: usize) -> Failure {
        let missing = self.missing_cells.iter().copied();
        let missing: Vec<usize> = missing.filter(|&cell| cell < index).collect();
        if missing.is_empty() {
            return failure;
        }
        failure.hint(hint![
            format!("{} did not run on this kernel; ", describe_cells(&missing)),
            flag_value("to", index.to_string()),
            " runs all cells up to this one",
        ])
    }

    /// Lists all failed cells if there are several.
    fn list_failed_cells(&mut self) {
        let Some(failure) = &mut self.report.failure else {
            return;
        };
        let cells = &self.report.cells;
        let failed: Vec<String> = cells.iter().filter_map(describe_failed_cell).collect();
        if failed.len() > 1 {
            if matches!(failure.kind, Kind::Raised) {
                failure.message = format!("{} of {} cells failed", failed.len(), cells.len());
            }
            failure.causes.extend(failed);
        }
    }

    /// Ends the report: cells that did not start are skipped.
    pub(super) fn close(&mut self) {
        self.list_failed_cells();
        let pending = |cell: &&mut CellReport| !cell.status.is_final();
        for cell in self.report.cells.iter_mut().filter(pending) {
            cell.status = ExecutionStatus::Skipped;
        }
        if !self.report.status.is_final() {
            self.report.status = self.first_failure.unwrap_or(ExecutionStatus::Ok);
        }
    }

    /// Ends the report of an execution whose worker panicked.
    pub(super) fn close_abandoned(&mut self) {
        if !self.report.status.is_final() {
            self.report.status = ExecutionStatus::NotStarted;
            self.report.failure = Some(Failure::new(
                Kind::Bug,
                "This is a bug in cellwright: the session worker panicked",
            ));
        }
        self.close();
    }

    /// Records how the kernel ended after the last cell.
    pub(super) fn record_shutdown(&mut self, shutdown: &ShutdownReport) {
        let status = self.report.status;
        let text = match shutdown.exit {
            _ if status.is_final() && status != ExecutionStatus::Ok => return,
            _ if !shutdown.graceful => {
                "the kernel did not exit after the last cell and was killed; running threads and exit \
                 handlers were cut off"
                    .to_owned()
            }
            Some(Exit { code: Some(0), .. }) | None => return,
            Some(Exit { signal: Some(signal), .. }) => {
                format!("after the last cell, signal {signal} ended the interpreter")
            }
            Some(Exit { code, .. }) => format!(
                "after the last cell, the interpreter ended with exit code {}",
                code.unwrap_or(-1)
            ),
        };
        self.add_notice(NoticeKind::UncleanShutdown, text);
    }

    /// Records the output of a cell and returns the outputs for the notebook.
    pub(super) fn record_output(&mut self, index: usize, captured: Captured) -> Outputs {
        let in_notebook = self.notebook.is_some();
        // The notebook contains these outputs completely.
        let is_relevant = |notice: &UserNotice| {
            let shortened = [NoticeKind::StreamsShortened, NoticeKind::DisplaysMoved];
            !in_notebook || !shortened.contains(&notice.kind)
        };
        let notices = notice::describe_output(&captured.notices);
        self.report
            .notices
            .extend(notices.into_iter().filter(is_relevant));
        let Some(cell) = self.report.cells.get_mut(index) else {
            return captured.outputs;
        };
        let truncation = captured.truncation.map(|truncation| TruncationReport {
            total_bytes: truncation.total.bytes,
            total_lines: truncation.total.lines,
            shown_bytes: truncation.shown.bytes,
            shown_lines: truncation.shown.lines,
            elided_bytes: truncation.elided.bytes,
            elided_lines: truncation.elided.lines,
            artifact: truncation.artifact.map(|id| id.to_string()),
        });
        let image = |image: &Image| ImageReport {
            mime: image.mime.clone(),
            bytes: image.bytes,
            width: image.width,
            height: image.height,
            artifact: image.artifact.map(|id| id.to_string()),
            text_range: image.text_range.clone(),
        };
        cell.set_text(captured.text);
        cell.set_details(CellDetails {
            title: cell.details().title.clone(),
            truncated: truncation,
            images: captured.images.iter().map(image).collect(),
            json: captured.json.into_iter().map(json_value).collect(),
            events: captured.status,
        });
        let index = cell.index;
        if let Some(prompt) = captured.stdin_refused {
            let prompt = match prompt.escape_debug().to_string() {
                // ipykernel does not send the prompt.
                prompt if prompt.is_empty() => String::new(),
                prompt => format!(" (`{prompt}`)"),
            };
            let text = format!("cell {index} asked for input{prompt} and got none");
            self.add_notice(NoticeKind::InputRefused, text);
        }
        captured.outputs
    }

    /// The sources and durations of the cells that ran to their end.
    pub(super) fn durations<'s>(
        &self,
        spec: &'s RunSpec,
    ) -> impl Iterator<Item = (&'s str, Duration)> {
        let cells = spec.cells.sources().zip(&self.report.cells);
        let ran = cells.filter(|(_, cell)| cell.status == ExecutionStatus::Ok);
        ran.map(|(source, cell)| {
            let duration = Duration::from_secs_f64(cell.duration_ms.max(0.0) / 1e3);
            (source, duration)
        })
    }

    /// The position of a cell in the notebook and in the run.
    pub(super) fn cell_ref(&self, at: usize) -> Option<CellRef> {
        let cell = self.report.cells.get(at)?;
        Some(CellRef {
            index: cell.index,
            id: cell.id.clone(),
            number: at + 1,
            total: self.report.cells.len(),
            first_line: self
                .requests
                .get(at)
                .map(|request| request.first_line())
                .unwrap_or_default(),
        })
    }

    /// Where the artifacts of a cell are from.
    pub(super) fn origin(&self, at: usize) -> ArtifactOrigin {
        ArtifactOrigin {
            notebook: self.notebook.clone(),
            cell: self.report.cells.get(at).map(|cell| cell.index),
            session: self.report.session.clone(),
            directory: None,
        }
    }

    /// The event that reports the end of a cell to viewers.
    pub(super) fn end_event(&self, at: usize) -> Option<CellEvent> {
        let cell = self.report.cells.get(at)?;
        Some(CellEvent::End {
            cell: self.cell_ref(at)?,
            status: cell.status,
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            error: cell.error.as_deref().cloned(),
            expected: cell.on_error == OnError::Expected,
        })
    }

    pub(super) fn add_notice(&mut self, kind: NoticeKind, text: impl Into<String>) {
        self.report.notices.push(UserNotice::new(kind, text));
    }
}

/// The report of a cell that has not started.
fn new_report(requests: &CellRequests, at: usize) -> Option<CellReport> {
    let request = requests.get(at)?;
    let (index, id) = match requests {
        CellRequests::Notebook { cells, .. } => cells.get(at).map(|cell| (cell.index, cell.id))?,
        CellRequests::Code(_) => (at, None),
    };
    let mut report = CellReport::new(index, id, request.on_error);
    report.set_details(CellDetails {
        title: request.title,
        ..CellDetails::default()
    });
    Some(report)
}

fn describe_cell(cell: &CellReport) -> String {
    match &cell.id {
        Some(id) => format!("cell {} (id {id})", cell.index),
        None => format!("cell {}", cell.index),
    }
}

/// Describes how a cell failed; `None` for other cells.
fn describe_failed_cell(cell: &CellReport) -> Option<String> {
    if cell.ended_as_expected() {
        return None;
    }
    let name = describe_cell(cell);
    Some(match cell.status {
        ExecutionStatus::Error => match &cell.error {
            Some(error) => {
                let raised = describe_exception(&error.ename, &error.evalue);
                format!("{name} raised {raised}")
            }
            None => format!("{name} failed"),
        },
        ExecutionStatus::Timeout => format!("{name} timed out"),
        ExecutionStatus::Cancelled => format!("{name} was cancelled"),
        ExecutionStatus::Died => format!("the kernel died in {name}"),
        _ => return None,
    })
}

fn json_value(json: BoundedJson) -> Value {
    match json {
        BoundedJson::Whole(value) => value,
        BoundedJson::Truncated { text, .. } => Value::String(text),
    }
}
