//! [`ReportDocument`]: the part of a report that `--json` and `--events` print.

use cellwright_diagnostics::notice::UserNotice;
use serde::Serialize;
use serde_json::Value;

use super::report::{
    CellOutputs, CellReport, DeathReport, ErrorReport, ExecutionReport, ExecutionStatus,
    ImageReport, KernelReport, NotebookReport, TruncationReport,
};

/// A report as users see it in JSON.
#[derive(Debug, Serialize)]
pub struct ReportDocument<'a> {
    status: ExecutionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    session: Option<&'a str>,
    kernel: Option<&'a KernelReport>,
    cells: Vec<CellDocument<'a>>,
    died: Option<&'a DeathReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notebook: Option<&'a NotebookReport>,
    notices: Vec<&'a UserNotice>,
    /// Why no cell was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

#[derive(Debug, Serialize)]
struct CellDocument<'a> {
    index: usize,
    id: Option<&'a str>,
    title: Option<&'a str>,
    status: ExecutionStatus,
    execution_count: Option<u32>,
    duration_ms: f64,
    text: &'a str,
    truncated: Option<&'a TruncationReport>,
    images: &'a [ImageReport],
    json: &'a [Value],
    events: &'a [Value],
    error: Option<&'a ErrorReport>,
    outputs: OutputsDocument<'a>,
}

/// A cell without outputs has an empty list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OutputsDocument<'a> {
    Some(&'a CellOutputs),
    None([(); 0]),
}

impl<'a> ReportDocument<'a> {
    /// The document of a report, with `notices` before those of the report.
    pub fn new(report: &'a ExecutionReport, notices: &'a [UserNotice]) -> Self {
        Self {
            status: report.status,
            run: report.run.as_deref(),
            session: report.session.as_deref(),
            kernel: report.kernel.as_ref(),
            cells: report.cells.iter().map(CellDocument::new).collect(),
            died: report.died.as_ref(),
            notebook: report.notebook.as_ref(),
            notices: notices.iter().chain(&report.notices).collect(),
            error: report
                .start_failure()
                .map(|failure| failure.to_json()["error"].take()),
        }
    }
}

impl<'a> CellDocument<'a> {
    fn new(cell: &'a CellReport) -> Self {
        Self {
            index: cell.index,
            id: cell.id.as_deref(),
            title: cell.title.as_deref(),
            status: cell.status,
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            text: &cell.text,
            truncated: cell.truncated.as_ref(),
            images: &cell.images,
            json: &cell.json,
            events: &cell.events,
            error: cell.error.as_ref(),
            outputs: match &cell.outputs {
                Some(outputs) => OutputsDocument::Some(outputs),
                None => OutputsDocument::None([]),
            },
        }
    }
}
