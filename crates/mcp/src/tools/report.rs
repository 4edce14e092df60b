//! The reply to a call that ran code: status, output of each cell, failure, next step.

use std::cmp::Reverse;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::{
    CellReport, ExecutionReport, ExecutionStatus, ImageReport, describe_exception,
};
use cellwright_host::reply::RunState;
use cellwright_output::{ArtifactKind, Artifacts};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::content::{Delimiter, Reply, fair_shares, truncate_middle};
use super::super::images::ReplyImages;
use super::super::output_excerpt::{ExcerptPart, OutputExcerpt};
use super::super::server::Server;
use super::super::session_target::sessions_with_variable;
use super::super::wording;

/// Schema of the replies of `eval`, `run` and `runs wait`.
pub(super) const OUTPUT_PROPERTIES: &str = r#"{"status": {"enum": ["ok", "error", "timeout", "cancelled", "died", "not_started", "running"]}, "run": {"type": "string"}, "session": {"type": ["string", "null"]}, "cells": {"type": "array", "description": "index, id, status, text, error, images, truncated of each"}, "notebook": {"type": "object"}, "notices": {"type": "array"}}"#;

/// Number of characters that a cell takes besides its output. All of them take at most half of a reply.
const CELL_OVERHEAD: usize = 200;

/// Number of cells up to which the structured content lists cells without output.
const LISTED_CELLS_MAX: usize = 50;

/// Number of characters up to which displayed JSON is in the structured content.
const JSON_MAX: usize = 2000;

/// Number of characters of the name and the message of an exception; the traceback contains them completely.
const ERROR_MAX: usize = 300;

/// Notices about facts that the reply shows anyway.
const REDUNDANT_NOTICES: [NoticeKind; 3] = [
    NoticeKind::OutputTruncated,
    NoticeKind::OutputsOmitted,
    NoticeKind::StreamsShortened,
];

/// Number of failed cells, after the first, that the heading names.
const FAILED_CELLS_MAX: usize = 20;

/// Notices that repeat the failure of a cell.
const STOP_NOTICES: [NoticeKind; 3] = [
    NoticeKind::Interrupted,
    NoticeKind::KernelKilled,
    NoticeKind::KernelDied,
];

/// The reply for an execution that has ended. The text is complete: hosts differ in what else they pass to a model.
pub(super) async fn finished(
    server: &Server,
    report: &ExecutionReport,
    mut notices: Vec<UserNotice>,
) -> Result<Reply, Failure> {
    if let Some(failure) = report.start_failure() {
        return Err(failure.clone());
    }
    notices.extend(report.notices.iter().cloned());
    notices.retain(|notice| !REDUNDANT_NOTICES.contains(&notice.kind));
    let status = reported_status(report);
    let is_error = is_call_failure(status, report);
    let artifacts = server.artifacts().ok();
    let artifacts = artifacts.as_ref();
    let mut builder = ReportBuilder::new(server, artifacts)?;
    builder.sends_images = !is_error;
    builder.add_cells(&report.cells, report.notebook.is_some());
    notices.append(&mut builder.notices);
    let mut text = heading(status, report);
    let repeats_failure =
        |notice: &UserNotice| report.failure.is_some() && STOP_NOTICES.contains(&notice.kind);
    let shown: Vec<UserNotice> = notices
        .iter()
        .filter(|notice| !repeats_failure(notice))
        .cloned()
        .collect();
    text.push_str(&wording::format_notices(&shown));
    text.push_str(&builder.text);
    let mut next: Vec<String> = Vec::new();
    if let Some(failure) = &report.failure {
        next.extend(failure.hints.iter().map(wording::format_hint));
    }
    next.extend(name_hints(server, report).await);
    next.extend(next_step(report).map(str::to_owned));
    for step in &next {
        text.push_str(&format!("next: {step}\n"));
    }
    let notices = wording::sanitize_notices(notices);
    let document = ReplyDocument {
        status,
        session: report.session.as_deref(),
        summary: report.summary(None),
        failure: report.failure.as_ref().map(FailureDocument::new),
        cells: builder.cells,
        notices: &notices,
        next: (!next.is_empty()).then_some(next),
        notebook: report.notebook.as_ref().map(|notebook| json!(notebook)),
        died: report.died.as_ref().map(|died| json!(died)),
        kernel: report.kernel.as_ref().map(|kernel| json!(kernel)),
    };
    let mut reply = Reply::new(text, &document)?;
    reply.is_error = is_error;
    reply.images = builder.images.images;
    Ok(reply)
}

/// Whether the call failed: the kernel died, the call was cancelled, or the result could not be saved. Code that raised an exception, or
/// exceeded its time limit, is a result.
fn is_call_failure(status: ExecutionStatus, report: &ExecutionReport) -> bool {
    match status {
        ExecutionStatus::Died | ExecutionStatus::NotStarted | ExecutionStatus::Cancelled => true,
        ExecutionStatus::Error => report.status == ExecutionStatus::Ok,
        _ => false,
    }
}

/// The reply for an execution that continues in the background: its position and its output so far.
pub(super) async fn still_running(
    server: &Server,
    state: &RunState,
    notices: &[UserNotice],
) -> Result<Reply, Failure> {
    let run = &state.run;
    // A host that does not answer is reported by the next call.
    let tail = server.kernels().tail_run(run).await.ok().flatten();
    let is_waiting = tail
        .as_ref()
        .is_some_and(|tail| tail.status == ExecutionStatus::Pending);
    let mut text = if is_waiting {
        format!("waiting: the kernel is busy with another call; the code is queued as run {run}")
    } else {
        format!("running: the code continues as run {run}")
    };
    if let Some(tail) = tail.as_ref().filter(|_| !is_waiting) {
        text.push_str(&format!(", cell {} of {}", tail.number, tail.total));
        if let Some(elapsed) = tail.elapsed_ms {
            text.push_str(&format!(", for {:.0} s so far", elapsed / 1e3));
        }
    }
    if let Some(session) = &state.session {
        text.push_str(&format!(", session {}", wording::sanitize_name(session)));
    }
    if let Some(kernel) = tail.as_ref().and_then(|tail| tail.kernel.as_ref()) {
        text.push_str(&format!(", on {}", wording::sanitize(&kernel.describe())));
    }
    text.push('\n');
    text.push_str(&wording::format_notices(notices));
    let output = tail.as_ref().and_then(|tail| tail.text.as_deref());
    let (output, missing) =
        truncate_middle(output.unwrap_or_default(), server.options().text_limit);
    if output.is_empty() {
        text.push_str("no output so far\n");
    } else {
        text.push_str(&Delimiter::new()?.enclose("output", &output));
    }
    if missing > 0 {
        text.push_str(&format!("{missing} characters are not shown yet\n"));
    }
    let next = format!(
        "`runs` {{\"action\": \"wait\", \"run\": \"{run}\"}} waits for the result; `stop` cancel stops it"
    );
    text.push_str(&format!("next: {next}\n"));
    let document = json!({
        "status": "running", "run": run, "session": state.session, "notices": notices,
        "text": output, "number": tail.as_ref().map(|tail| tail.number), "next": [next],
    });
    Ok(Reply::new(text, &document)?)
}

/// The status for the client: code that ended well is an error if its result could not be saved.
fn reported_status(report: &ExecutionReport) -> ExecutionStatus {
    if report.status != ExecutionStatus::Ok || report.exit_code() == 0 {
        report.status
    } else if report.cells.iter().any(CellReport::ran) {
        ExecutionStatus::Error
    } else {
        ExecutionStatus::NotStarted
    }
}

/// The first lines: what failed, or that nothing did; then kernel, session and notebook.
fn heading(status: ExecutionStatus, report: &ExecutionReport) -> String {
    let mut text = first_line(status, report);
    if let Some(session) = &report.session {
        text.push_str(&format!("session {}", wording::sanitize_name(session)));
        let is_new = report.kernel.as_ref().is_some_and(|kernel| kernel.is_new);
        text.push_str(if is_new { " (new kernel)" } else { "" });
        text.push_str(", ");
    }
    if let Some(kernel) = &report.kernel {
        let name = wording::sanitize_name(&kernel.name);
        text.push_str(&format!("{} {name}", kernel.backend));
        if let Some(version) = &kernel.version {
            let language = kernel.language.as_deref().unwrap_or_default();
            let version = format!(", {language} {version}");
            text.push_str(&wording::sanitize_name(&version));
        }
        if let Some(server) = &kernel.server {
            text.push_str(&format!(" on {}", wording::sanitize(server)));
        }
        if let Some(interpreter) = &kernel.interpreter {
            text.push_str(&format!(", {}", wording::sanitize(interpreter)));
        }
        text.push_str(", ");
    }
    if report.notebook.is_none() && !report.cells.is_empty() {
        let duration: f64 = report.cells.iter().map(|cell| cell.duration_ms).sum();
        text.push_str(&format!("{duration:.1} ms"));
    }
    let mut text = text.trim_end_matches(", ").to_owned();
    text.push('\n');
    if let Some(summary) = report.summary(None) {
        for line in summary.lines() {
            text.push_str(&wording::sanitize(line));
            text.push('\n');
        }
    }
    text
}

/// The status, and for a failure which cell failed and why.
fn first_line(status: ExecutionStatus, report: &ExecutionReport) -> String {
    if status == ExecutionStatus::Ok {
        return "ok, ".to_owned();
    }
    let failed = report
        .cells
        .iter()
        .filter(|cell| is_failed(cell) && !cell.ended_as_expected());
    let failed: Vec<&CellReport> = failed.collect();
    let mut text = String::new();
    if let (ExecutionStatus::Error, Some((cell, error))) = (
        report.status,
        failed
            .first()
            .and_then(|cell| Some((*cell, cell.error.as_ref()?))),
    ) {
        let id = cell.id.as_deref().map(wording::sanitize_name);
        let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        let (ename, evalue) = (&error.ename, truncate_middle(&error.evalue, ERROR_MAX).0);
        let raised = wording::sanitize(&format!("{ename}: {evalue}"));
        text.push_str(&format!("error: cell {}{id} raised {raised}", cell.index));
        if failed.len() > 1 {
            text.push_str(&format!("; {} cells failed in all", failed.len()));
        }
        text.push('\n');
        for cell in failed.iter().skip(1).take(FAILED_CELLS_MAX) {
            let error = cell.error.as_ref();
            let raised = error.map(|error| describe_exception(&error.ename, &error.evalue));
            let raised = raised.unwrap_or_else(|| cell.status.name().to_owned());
            text.push_str(&format!(
                "  cell {}: {}\n",
                cell.index,
                wording::sanitize(&raised)
            ));
        }
    }
    if let Some(failure) = &report.failure
        && (text.is_empty() || report.status != ExecutionStatus::Error)
    {
        let message = wording::sanitize(&failure.message);
        text.push_str(&format!("{}: {message}\n", status.name()));
        for cause in &failure.causes {
            text.push_str(&format!("  because: {}\n", wording::sanitize(cause)));
        }
    }
    if text.is_empty() {
        text = format!("{}\n", status.name());
    }
    text
}

/// Hints for a `NameError`: the sessions that have the variable.
async fn name_hints(server: &Server, report: &ExecutionReport) -> Vec<String> {
    let error = report.cells.iter().find_map(|cell| cell.error.as_ref());
    let Some(error) = error.filter(|error| error.ename == "NameError") else {
        return Vec::new();
    };
    let Some(name) = error.evalue.split('\'').nth(1) else {
        return Vec::new();
    };
    let hint = |other: String| {
        let name = wording::sanitize_name(name);
        format!("`{name}` exists in session {other}: pass `session: {other}`")
    };
    let session = report.session.as_deref();
    let others = sessions_with_variable(server, name, session).await;
    others.into_iter().map(hint).collect()
}

/// What the model can do next.
fn next_step(report: &ExecutionReport) -> Option<&'static str> {
    let has_session = report.session.is_some();
    match report.status {
        ExecutionStatus::Error if report.notebook.is_some() && has_session => {
            Some("correct the cell with `edit` or `notebook`, then `run` with {\"stale\": true}")
        }
        ExecutionStatus::Died if has_session => {
            Some("the next call on this session starts a fresh kernel")
        }
        _ => None,
    }
}

/// The structured content, the most important members first.
#[derive(Serialize)]
struct ReplyDocument<'a> {
    status: ExecutionStatus,
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureDocument>,
    cells: Vec<CellDocument>,
    notices: &'a [UserNotice],
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notebook: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Value>,
}

#[derive(Serialize)]
struct FailureDocument {
    message: String,
    causes: Vec<String>,
}

impl FailureDocument {
    fn new(failure: &Failure) -> Self {
        Self {
            message: wording::sanitize(&failure.message),
            causes: failure
                .causes
                .iter()
                .map(|cause| wording::sanitize(cause))
                .collect(),
        }
    }
}

/// A cell without the members that only a notebook needs.
#[derive(Serialize)]
struct CellDocument {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    status: ExecutionStatus,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<u32>,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    json: Vec<Value>,
}

#[derive(Serialize)]
struct ErrorDocument {
    ename: String,
    evalue: String,
}

impl CellDocument {
    fn new(cell: &CellReport, text: String) -> Self {
        let details = cell.details();
        let name = |name: Option<&str>| name.map(wording::sanitize_name);
        let json_size = |json: &[Value]| json.iter().map(|value| value.to_string().len()).sum();
        let json_size: usize = json_size(&details.json);
        Self {
            index: cell.index,
            id: name(cell.id.as_deref()),
            title: name(details.title.as_deref()),
            status: cell.status,
            text,
            truncated: details.truncated.as_ref().map(|truncated| json!(truncated)),
            images: details.images.clone(),
            execution_count: cell.execution_count,
            duration_ms: cell.duration_ms,
            error: cell.error.as_ref().map(|error| ErrorDocument {
                ename: truncate_middle(&error.ename, ERROR_MAX).0,
                evalue: truncate_middle(&error.evalue, ERROR_MAX).0,
            }),
            json: if json_size <= JSON_MAX {
                details.json.clone()
            } else {
                Vec::new()
            },
        }
    }
}

/// Collects the cells of a reply as text and as structured content.
struct ReportBuilder<'a> {
    /// Number of characters of the text.
    text_max: usize,
    artifacts: Option<&'a Artifacts>,
    delimiter: Delimiter,
    text: String,
    cells: Vec<CellDocument>,
    images: ReplyImages,
    /// Whether the reply contains images; otherwise the text only names them.
    sends_images: bool,
    /// Notices about output that the reply does not show.
    notices: Vec<UserNotice>,
}

impl<'a> ReportBuilder<'a> {
    fn new(server: &Server, artifacts: Option<&'a Artifacts>) -> Result<Self, Failure> {
        Ok(Self {
            text_max: server.options().text_limit,
            artifacts,
            delimiter: Delimiter::new()?,
            text: String::new(),
            cells: Vec::new(),
            images: ReplyImages::default(),
            sends_images: true,
            notices: Vec::new(),
        })
    }

    fn add_cells(&mut self, cells: &[CellReport], in_notebook: bool) {
        let (shown, silent): (Vec<&CellReport>, Vec<&CellReport>) =
            cells.iter().partition(|cell| has_result(cell));
        let selected = select_cells(&shown, (self.text_max / (2 * CELL_OVERHEAD)).max(1));
        let lengths: Vec<usize> = selected
            .iter()
            .map(|cell| cell.text().chars().count())
            .collect();
        let room = self
            .text_max
            .saturating_sub(selected.len() * CELL_OVERHEAD)
            .max(self.text_max / 2);
        let is_only = cells.len() == 1;
        for (cell, share) in selected.iter().zip(fair_shares(&lengths, room)) {
            self.add_cell(cell, share, is_only, in_notebook);
        }
        if is_only && selected.is_empty() && cells[0].status == ExecutionStatus::Ok {
            self.text.push_str("no output\n");
        }
        if cells.len() <= LISTED_CELLS_MAX {
            let listed = silent
                .iter()
                .map(|cell| CellDocument::new(cell, String::new()));
            self.cells.extend(listed);
            self.cells.sort_by_key(|cell| cell.index);
        }
        if !silent.is_empty() && !is_only {
            let count = silent.len();
            let plural = if count == 1 { "" } else { "s" };
            let is_ok = |cell: &&&CellReport| cell.status == ExecutionStatus::Ok;
            let ok = silent.iter().filter(is_ok).count();
            self.text
                .push_str(&format!("{count} cell{plural} without output"));
            if ok < count {
                let not_run = count - ok;
                self.text.push_str(&format!(": {ok} ok, {not_run} not run"));
            }
            self.text.push('\n');
        }
        let left_out = shown.len() - selected.len();
        if left_out > 0 {
            let mut text = format!("{left_out} more cells have outputs, which are not shown here");
            if in_notebook {
                text.push_str("; `read` shows them with :outputs");
            }
            self.notices
                .push(UserNotice::new(NoticeKind::CellsLeftOut, text));
        }
    }

    fn add_cell(&mut self, cell: &CellReport, share: usize, is_only: bool, in_notebook: bool) {
        let excerpt = OutputExcerpt::new(cell, share);
        if (!is_only || in_notebook) && has_result(cell) {
            let id = cell
                .id
                .as_deref()
                .map(|id| format!(" (id {})", wording::sanitize_name(id)));
            let title = cell
                .details()
                .title
                .as_deref()
                .map(|title| format!(" `{}`", wording::sanitize_name(title)));
            self.text.push_str(&format!(
                "cell {}{}{}: {}\n",
                cell.index,
                id.unwrap_or_default(),
                title.unwrap_or_default(),
                cell.status.name()
            ));
        }
        for part in &excerpt.parts {
            match part {
                ExcerptPart::Text(text) => {
                    self.text.push_str(&self.delimiter.enclose("output", text));
                }
                ExcerptPart::Image(number) => self.add_image(&cell.details().images[*number]),
            }
        }
        self.add_truncation(cell, &excerpt, in_notebook);
        self.cells.push(CellDocument::new(cell, excerpt.text()));
    }

    fn add_image(&mut self, image: &ImageReport) {
        let line = if self.sends_images {
            self.images.add(image, self.artifacts)
        } else {
            let why = Err("read the artifact to see it".to_owned());
            let size = image.width.zip(image.height);
            let artifact = image.artifact.as_deref();
            self.images.add_encoded(why, &image.mime, size, artifact)
        };
        self.text.push_str(&line);
    }

    /// States what the reply does not show of a cell's output, and where all of it is.
    fn add_truncation(&mut self, cell: &CellReport, excerpt: &OutputExcerpt, in_notebook: bool) {
        let truncated = cell.details().truncated.as_ref();
        if !excerpt.is_shortened && truncated.is_none() {
            return;
        }
        let artifact = truncated.and_then(|truncated| truncated.artifact.clone());
        let artifact = artifact.or_else(|| self.store_text(cell));
        let mut text = "truncated".to_owned();
        if let Some(truncated) = truncated {
            let (bytes, lines) = (truncated.total_bytes, truncated.total_lines);
            text.push_str(&format!(": the output has {bytes} bytes in {lines} lines"));
        }
        match artifact {
            Some(artifact) => text.push_str(&format!(
                "; all of it: `read` {artifact}, or lines such as {artifact}:1-100"
            )),
            None if in_notebook => text.push_str("; all of it is in the notebook (:outputs)"),
            None => {}
        }
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Stores the text of a cell that only this reply shortens.
    fn store_text(&self, cell: &CellReport) -> Option<String> {
        let store = self.artifacts?;
        let id = store
            .store(ArtifactKind::Log, cell.text().as_bytes())
            .ok()?;
        Some(id.to_string())
    }
}

fn is_failed(cell: &CellReport) -> bool {
    !matches!(cell.status, ExecutionStatus::Ok | ExecutionStatus::Skipped)
}

/// Whether a cell has output, or failed.
fn has_result(cell: &CellReport) -> bool {
    is_failed(cell) || !cell.text().is_empty() || !cell.details().images.is_empty()
}

/// Selects at most `max` cells, failed cells first and then the last ones. Keeps their order.
fn select_cells<'c>(cells: &[&'c CellReport], max: usize) -> Vec<&'c CellReport> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&at| (!is_failed(cells[at]), Reverse(at)));
    order.truncate(max);
    order.sort_unstable();
    order.into_iter().map(|at| cells[at]).collect()
}
