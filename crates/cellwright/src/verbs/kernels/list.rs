//! Lists and ends sessions, and prints the replies of kernel queries.

use cellwright_diagnostics::failure::Failure;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::SessionSelector;
use cellwright_host::reply::SessionInfo;
use cellwright_operations::kernels::{
    completions_text, inspection_text, sessions_table, variables_table,
};
use serde_json::{Value, json};

use crate::console::Console;

fn sessions() -> Result<Vec<SessionInfo>, Failure> {
    let host = KernelHost::Shared;
    Ok(host.block_on(host.list_sessions())?.unwrap_or_default())
}

pub(super) fn list(console: &Console) -> Result<(), Failure> {
    let sessions = sessions()?;
    if console.json {
        return console.print_json(&sessions);
    }
    if let Some(table) = sessions_table(&sessions) {
        return console.print_table(&table);
    }
    console.note("no sessions; `cellwright eval --session NAME CODE` starts one");
    Ok(())
}

pub(super) fn stop_all(console: &Console) -> Result<(), Failure> {
    let host = KernelHost::Shared;
    let mut ended = Vec::new();
    for session in sessions()? {
        let selector = SessionSelector {
            name: format!("@{}", session.id),
            cwd: None,
            here: None,
            owner: String::new(),
        };
        // A session may have ended since the list was made.
        if let Ok(Some(_)) = host.block_on(host.end_session(selector, None)) {
            ended.push(session.session);
        }
    }
    if console.json {
        return console.print_json(&json!({"ended": ended}));
    }
    console.note(&match ended.len() {
        0 => "there were no sessions".to_owned(),
        1 => "1 session was ended".to_owned(),
        count => format!("{count} sessions were ended"),
    });
    Ok(())
}

pub(super) fn variables(reply: &Value, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(reply);
    }
    if let Some(table) = variables_table(reply) {
        return console.print_table(&table);
    }
    console.note("no variables");
    Ok(())
}

pub(super) fn inspection(reply: &Value, code: &str, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(reply);
    }
    let text = inspection_text(reply, code)?;
    console.print(&format!("{}\n", text.trim_end()))
}

pub(super) fn completions(reply: &Value, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(reply);
    }
    console.print(&completions_text(reply))
}
