//! Tables: sessions, variables, completions.

use std::time::Duration;

use cellwright_output::ByteSize;
use serde_json::{Value, json};

use super::SLOW;
use crate::console::Console;
use crate::failure::Failure;
use crate::host::client;
use crate::host::protocol::{HostRequest, SessionSelector};
use crate::table::{align_columns, format_seconds};

/// The sessions there are.
fn sessions() -> Result<Value, Failure> {
    let answer = client::request_blocking(&HostRequest::ListSessions, Duration::ZERO)?;
    let kernels = answer.and_then(|mut answer| answer.get_mut("kernels").map(Value::take));
    Ok(kernels.unwrap_or_else(|| json!([])))
}

pub(super) fn list(screen: &Console) -> Result<(), Failure> {
    let sessions = sessions()?;
    if screen.json {
        return screen.print_json(&sessions);
    }
    if let Some(table) = table(&sessions) {
        return screen.print(&table);
    }
    screen.note("no sessions; `cellwright eval --session NAME CODE` makes one");
    Ok(())
}

/// Sessions in columns; `None` if there are none.
pub(crate) fn table(sessions: &Value) -> Option<String> {
    let head = [
        "SESSION", "STATE", "KERNEL", "VERSION", "BACKEND", "PID", "GEN", "CELLS", "WAITING",
        "MEMORY", "AGE", "OWNERS", "ID", "CWD",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for session in sessions.as_array().into_iter().flatten() {
        rows.push(row(session));
    }
    (rows.len() > 1).then(|| align_columns(&rows))
}

fn row(session: &Value) -> Vec<String> {
    let text = |name: &str| session[name].as_str().unwrap_or("-").to_owned();
    let number = |name: &str| session[name].as_u64();
    let mut state = text("state");
    if let Some(seconds) = session["busy"]["seconds"].as_u64() {
        state.push_str(&format!(" {}", format_seconds(seconds)));
    }
    let owners = session["owners"].as_array().into_iter().flatten();
    let owners: Vec<&str> = owners.filter_map(Value::as_str).collect();
    let mut name = text("session");
    if session["private_to"].is_string() {
        name.push_str(" (private)");
    }
    vec![
        name,
        state,
        text("name"),
        text("version"),
        text("backend"),
        number("pid").map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        number("generation").unwrap_or(0).to_string(),
        number("executions").unwrap_or(0).to_string(),
        number("waiting").unwrap_or(0).to_string(),
        size(&session["memory_bytes"]),
        format_seconds(number("age_s").unwrap_or(0)),
        owners.join(","),
        format!("@{}", number("id").unwrap_or(0)),
        text("cwd"),
    ]
}

fn size(bytes: &Value) -> String {
    let bytes = bytes.as_u64().map(|bytes| ByteSize(bytes).to_string());
    bytes.unwrap_or_else(|| "-".to_owned())
}

pub(super) fn stop_all(screen: &Console) -> Result<(), Failure> {
    let sessions = sessions()?;
    let mut ended = Vec::new();
    for session in sessions.as_array().into_iter().flatten() {
        let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
        let who = SessionSelector {
            name: format!("@{}", session["id"]),
            cwd: None,
            here: None,
            owner: String::new(),
        };
        let wanted = HostRequest::EndSession {
            session: who,
            owner: None,
        };
        // It may have ended by itself meanwhile.
        if let Ok(Some(_)) = client::request_blocking(&wanted, SLOW) {
            ended.push(text("session"));
        }
    }
    if screen.json {
        return screen.print_json(&json!({"ended": ended}));
    }
    screen.note(&match ended.len() {
        0 => "there were no sessions".to_owned(),
        1 => "1 session was ended".to_owned(),
        count => format!("{count} sessions were ended"),
    });
    Ok(())
}

pub(super) fn variables(answer: &Value, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(answer);
    }
    if let Some(table) = variables_table(answer) {
        return screen.print(&table);
    }
    screen.note("no variables");
    Ok(())
}

/// Variables in columns; `None` if there are none.
pub(crate) fn variables_table(answer: &Value) -> Option<String> {
    let list = answer.get("variables").unwrap_or(answer);
    let head = ["NAME", "TYPE", "SHAPE", "SIZE", "VALUE"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for variable in list.as_array().into_iter().flatten() {
        let shown = |name: &str| match &variable[name] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.replace(['\n', '\t'], " "),
            other => other.to_string(),
        };
        let shape = match (&variable["shape"], &variable["length"]) {
            (Value::Array(sides), _) => {
                let sides: Vec<String> = sides.iter().map(Value::to_string).collect();
                sides.join("×")
            }
            (Value::Null, length) if !length.is_null() => length.to_string(),
            _ => shown("shape"),
        };
        rows.push(vec![
            shown("name"),
            shown("type"),
            shape,
            size(&variable["size"]),
            shown("preview"),
        ]);
    }
    (rows.len() > 1).then(|| align_columns(&rows))
}

pub(super) fn inspection(answer: &Value, code: &str, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(answer);
    }
    let text = inspected(answer, code)?;
    screen.print(&format!("{}\n", text.trim_end()))
}

/// What is known of a name, as text.
pub(crate) fn inspected<'a>(answer: &'a Value, code: &str) -> Result<&'a str, Failure> {
    let text = answer["data"]["text/plain"].as_str();
    text.or(answer["text"].as_str()).ok_or_else(|| {
        let words = format!("Nothing is known of `{code}`");
        Failure::new(crate::failure::Kind::BadArguments, words)
    })
}

pub(super) fn completions(answer: &Value, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(answer);
    }
    screen.print(&completed(answer))
}

/// How code could go on, a line each.
pub(crate) fn completed(answer: &Value) -> String {
    let mut out = String::new();
    for found in answer["matches"].as_array().into_iter().flatten() {
        let text = found.as_str().or_else(|| found["text"].as_str());
        out.push_str(text.unwrap_or_default());
        out.push('\n');
    }
    out
}
