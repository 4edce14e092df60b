//! [`ReportDocument`]: the part of a report that `--json` and `--events` print.

use std::borrow::Cow;
use std::time::Duration;

use cellwright_diagnostics::failure::{ErrorCell, ErrorObject, Failure, Kind};
use cellwright_diagnostics::json_schema::{AnyJson, NotebookOutput, Timestamp};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_output::{LiveTarget, LiveText};
use cellwright_stdext::rfc3339;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::report::{
    CellOutputs, CellReport, DeathReport, ErrorReport, ExecutionReport, ExecutionStatus,
    ImageReport, KernelReport, NotebookReport, TruncationReport,
};

/// The result of running code or a notebook.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct ReportDocument<'a> {
    /// How the execution ended.
    status: ExecutionStatus,
    /// Id of the run, if it can be waited for.
    run: Option<&'a str>,
    /// Name of the session; `null` for a kernel that ended with the execution.
    session: Option<&'a str>,
    /// The kernel that ran the cells; `null` if none was started.
    kernel: Option<&'a KernelReport>,
    /// Path of the notebook that ran; `null` for code.
    path: Option<&'a str>,
    /// The written notebook; `null` for code, and if nothing was written.
    notebook: Option<&'a NotebookReport>,
    /// Start of the execution.
    #[schemars(with = "Timestamp")]
    started_at: String,
    /// Time until everything was finished, in milliseconds.
    duration_ms: f64,
    /// Time until the kernel was ready, in milliseconds.
    kernel_ready_ms: Option<f64>,
    /// The cells in the order in which they run.
    #[schemars(with = "Vec<CellDocument<'_>>")]
    cells: CellDocuments<'a>,
    /// How the kernel died.
    died: Option<&'a DeathReport>,
    /// Why the execution failed, and at which cell; `null` if it did not fail.
    error: Option<ErrorObject>,
    /// What the caller should know although nothing failed.
    notices: Vec<&'a UserNotice>,
}

/// A list of [`CellDocument`]s, which are created one after the other: a notebook may have very many cells.
#[derive(Debug)]
struct CellDocuments<'a> {
    cells: &'a [CellReport],
    detail: ReportDetail,
}

impl Serialize for CellDocuments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = |cell| CellDocument::new(cell, self.detail);
        serializer.collect_seq(self.cells.iter().map(document))
    }
}

/// The result of one cell.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CellReport")]
struct CellDocument<'a> {
    /// Index in the notebook, or in the request, from 0.
    index: usize,
    /// Cell id.
    id: Option<&'a str>,
    /// Title from the request.
    title: Option<&'a str>,
    /// How the cell ended.
    status: ExecutionStatus,
    /// The number that the kernel gave the execution.
    execution_count: Option<u32>,
    /// Duration in milliseconds.
    duration_ms: f64,
    /// Output as text, bounded; it ends with the traceback of an exception.
    text: &'a str,
    /// What is missing in `text`.
    truncated: Option<&'a TruncationReport>,
    /// Displayed images.
    images: &'a [ImageReport],
    /// Displayed JSON values, bounded.
    #[schemars(with = "Vec<AnyJson>")]
    json: &'a [Value],
    /// Status events of the code.
    #[schemars(with = "Vec<AnyJson>")]
    events: &'a [Value],
    /// The exception that the cell raised, or why it did not finish.
    error: Option<ErrorReport>,
    /// The outputs for a notebook; `null` with `--no-outputs`.
    #[schemars(with = "Option<Vec<NotebookOutput>>")]
    outputs: Option<OutputsDocument<'a>>,
}

/// A cell without outputs has an empty list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OutputsDocument<'a> {
    Some(&'a CellOutputs),
    None([(); 0]),
}

/// How much of a report is in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportDetail {
    /// Everything.
    Full,
    /// Without nbformat outputs and the lines of tracebacks, which repeat the text of the cells.
    NoOutputs,
}

impl<'a> ReportDocument<'a> {
    /// The document of a report, with `notices` before those of the report.
    pub fn new(
        report: &'a ExecutionReport,
        notices: &'a [UserNotice],
        detail: ReportDetail,
    ) -> Self {
        Self {
            status: report.status,
            run: report.run.as_deref(),
            session: report.session.as_deref(),
            kernel: report.kernel.as_ref(),
            path: report.path.as_deref(),
            notebook: report.notebook.as_ref(),
            started_at: rfc3339::format_micros(report.started),
            duration_ms: milliseconds(report.elapsed),
            kernel_ready_ms: report.kernel_ready.map(milliseconds),
            cells: CellDocuments {
                cells: &report.cells,
                detail,
            },
            died: report.died.as_ref(),
            error: error_object(report),
            notices: notices.iter().chain(&report.notices).collect(),
        }
    }
}

impl<'a> CellDocument<'a> {
    fn new(cell: &'a CellReport, detail: ReportDetail) -> Self {
        let details = cell.details();
        Self {
            index: cell.index,
            id: cell.id.as_deref(),
            title: details.title.as_deref(),
            status: cell.status,
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            text: cell.text(),
            truncated: details.truncated.as_ref(),
            images: &details.images,
            json: &details.json,
            events: &details.events,
            error: cell.error.as_ref().map(|error| error.to_document(detail)),
            outputs: match (detail, cell.outputs()) {
                (ReportDetail::NoOutputs, _) => None,
                (ReportDetail::Full, Some(outputs)) => Some(OutputsDocument::Some(outputs)),
                (ReportDetail::Full, None) => Some(OutputsDocument::None([])),
            },
        }
    }
}

/// Why an execution failed, with the exception and the cell.
fn error_object(report: &ExecutionReport) -> Option<ErrorObject> {
    let cell = report.failed_cell();
    let mut object = match (&report.failure, cell) {
        (Some(failure), _) => failure.error_object(),
        // The traceback of the only cell is enough for people.
        (None, Some((cell, error))) => {
            let message = format!("Cell {} raised {}", cell.index, error.ename);
            Failure::new(Kind::Raised, message).error_object()
        }
        (None, None) => return None,
    };
    object.message = plain_text(&object.message).into_owned();
    for cause in &mut object.causes {
        *cause = plain_text(cause).into_owned();
    }
    object.exit_code = report.exit_code();
    if let Some((cell, error)) = cell {
        object.ename = Some(error.ename.clone());
        object.evalue = Some(plain_text(&error.evalue).into_owned());
        object.cell = Some(ErrorCell {
            index: cell.index,
            id: cell.id.clone(),
        });
    }
    Some(object)
}

impl ErrorReport {
    /// The exception as a document contains it: without escape sequences, and the traceback only in full detail.
    #[must_use]
    pub fn to_document(&self, detail: ReportDetail) -> Self {
        match detail {
            ReportDetail::Full => self.without_colours(),
            ReportDetail::NoOutputs => Self {
                traceback: Vec::new(),
                ..self.without_colours()
            },
        }
    }

    /// The exception without escape sequences.
    #[must_use]
    pub fn without_colours(&self) -> Self {
        let plain = |line: &String| plain_text(line).into_owned();
        Self {
            ename: self.ename.clone(),
            evalue: plain(&self.evalue),
            traceback: self.traceback.iter().map(plain).collect(),
            hints: self.hints.clone(),
        }
    }
}

/// A duration in milliseconds, rounded to microseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Removes escape sequences.
pub fn plain_text(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::new();
    let mut live = LiveText::new(LiveTarget::Pipe);
    live.push(text.as_bytes(), &mut plain);
    live.finish(&mut plain);
    Cow::Owned(plain)
}
