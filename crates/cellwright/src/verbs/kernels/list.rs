//! Lists and ends sessions, and prints the replies of kernel queries.

use cellwright_diagnostics::failure::Failure;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::SessionSelector;
use cellwright_host::reply::SessionInfo;
use cellwright_operations::kernels::{
    CompletionReport, InspectionReport, SessionList, VariablesReport, sessions_table,
    variables_table,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::Console;

/// The sessions that were ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StoppedSessions {
    /// Names of the sessions.
    sessions: Vec<String>,
}

/// The sessions of the host, if one runs.
pub(super) fn sessions() -> Result<Vec<SessionInfo>, Failure> {
    let host = KernelHost::Shared;
    Ok(host.block_on(host.list_sessions())?.unwrap_or_default())
}

pub(super) fn list(console: &Console) -> Result<(), Failure> {
    let sessions = sessions()?;
    if console.json {
        return console.print_json(&SessionList {
            kernels: sessions,
            notices: Vec::new(),
        });
    }
    if let Some(table) = sessions_table(&sessions) {
        return console.print_table(&table);
    }
    console.note("no sessions; `cellwright eval --session NAME CODE` starts one");
    Ok(())
}

pub(super) fn stop_all(console: &Console) -> Result<(), Failure> {
    let host = KernelHost::Shared;
    let mut ended = StoppedSessions {
        sessions: Vec::new(),
    };
    for session in sessions()? {
        let selector = SessionSelector {
            name: format!("@{}", session.id),
            cwd: None,
            here: None,
            owner: String::new(),
        };
        // A session may have ended since the list was made.
        if let Ok(Some(_)) = host.block_on(host.end_session(selector, None)) {
            ended.sessions.push(session.session);
        }
    }
    if console.json {
        return console.print_json(&ended);
    }
    console.note(&match ended.sessions.len() {
        0 => "there were no sessions".to_owned(),
        1 => "1 session was ended".to_owned(),
        count => format!("{count} sessions were ended"),
    });
    Ok(())
}

pub(super) fn variables(report: &VariablesReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    if let Some(table) = variables_table(&report.variables) {
        return console.print_table(&table);
    }
    console.note("no variables");
    Ok(())
}

pub(super) fn inspection(
    report: InspectionReport,
    code: &str,
    console: &Console,
) -> Result<(), Failure> {
    if console.json {
        return console.print_json(&report);
    }
    let text = report.into_text(code)?;
    console.print(&format!("{}\n", text.trim_end()))
}

pub(super) fn completions(report: &CompletionReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print(&report.to_lines())
}
