//! The check of a notebook, which `run` with `check` carries out: runs a copy and compares its outputs with the stored
//! ones.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_execution::{Stores, execute};
use cellwright_kernel::{StopReason, StopSignal};
use cellwright_operations::check::{
    CellResult, CheckReport, CheckRequest, allowed_errors_hint, check as check_notebook,
};
use rmcp::model::CallToolResponse;

use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::wording;
use super::ToolCall;

/// Time limit of the whole check unless the call names one: the call waits for it.
const TOTAL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(50);

/// Number of differences of one cell that the reply lists.
const DIFFERENCES_MAX: usize = 5;

/// Runs a copy of the notebook and describes the differences.
pub(super) async fn check(
    call: &ToolCall<'_>,
    place: ConfinedPath,
    mut request: CheckRequest,
) -> Result<CallToolResponse, Failure> {
    request.total_timeout.get_or_insert(TOTAL_TIMEOUT);
    let server = call.server.clone();
    let (stop_handle, stop) = StopSignal::new();
    let signal = (stop_handle.clone(), stop);
    let checked = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Handle::current();
        check_notebook(&request, server.engine(), |execution, launcher| {
            let stores = Stores::default();
            runtime.block_on(execute(execution, launcher, stores, signal, |_| ()))
        })
    });
    let report = tokio::select! {
        biased;
        report = checked => report.map_err(std::io::Error::other)?,
        () = call.context.ct.cancelled() => {
            stop_handle.stop(StopReason::Cancelled);
            return Err(Failure::new(Kind::Cancelled, "The check was cancelled"));
        }
    };
    let report = report.map_err(|failure| place.with_selector_hint(failure))?;
    Ok(call.respond(describe(call.server, &report)?))
}

fn describe(server: &Server, report: &CheckReport) -> Result<Reply, Failure> {
    let result = match (report.same, report.passed) {
        (false, _) => "different",
        (true, false) => "failed",
        (true, true) => "same",
    };
    let mut text = format!("{result}: {}\n", report.summary());
    if report.same && !report.passed {
        let hint = wording::format_hint(&allowed_errors_hint());
        text.push_str(&format!("next: {hint}\n"));
    }
    if let Some(kernel) = &report.kernel {
        text.push_str(&format!(
            "ran on {}\n",
            wording::sanitize(&kernel.describe())
        ));
    }
    text.push_str(&wording::format_notices(&report.notices));
    let mut lines = String::new();
    for problem in &report.order {
        lines.push_str(&format!("{problem}\n"));
    }
    for cell in report.cells.iter().filter(|cell| !cell.is_fine()) {
        let id = cell.id.as_deref().map(wording::sanitize_name);
        let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        let name = format!("cell {}{id}", cell.index);
        if let Some(error) = cell.forbidden_error() {
            lines.push_str(&format!("{name}: raised {error}\n"));
        }
        if cell.status == CellResult::Unfinished {
            lines.push_str(&format!("{name}: did not finish\n"));
        }
        for difference in cell.differences.iter().take(DIFFERENCES_MAX) {
            lines.push_str(&format!("{name}: {difference}\n"));
        }
        let more = cell.differences.len().saturating_sub(DIFFERENCES_MAX);
        if more > 0 {
            lines.push_str(&format!("{name}: {more} more differences\n"));
        }
    }
    if !lines.is_empty() {
        let (lines, missing) = truncate_middle(&lines, server.options().text_limit);
        text.push_str(&Delimiter::new()?.enclose("text", &lines));
        if missing > 0 {
            text.push_str(&format!("{missing} characters omitted\n"));
        }
    }
    Ok(Reply::new(text, report)?)
}
