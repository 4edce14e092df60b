//! Sessions and the replies to kernel queries as text, for every front end.

use std::collections::BTreeMap;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::reply::SessionInfo;
use cellwright_output::ByteSize;
use serde::Deserialize;
use serde_json::Value;

use super::kernel_specs::KernelSpecEntry;
use crate::table::{Table, format_seconds};

/// Number of variables that a query returns.
pub const VARIABLES_MAX: usize = 1000;

/// Shown for a value that does not exist.
const NONE: &str = "-";

/// The sessions in columns; `None` if there are none.
pub fn sessions_table(sessions: &[SessionInfo]) -> Option<Table> {
    let head = [
        "SESSION", "STATE", "KERNEL", "VERSION", "BACKEND", "PID", "GEN", "CELLS", "WAITING",
        "MEMORY", "AGE", "OWNERS", "ID", "CWD",
    ];
    let mut table = Table::new(head).clip_path("CWD").hide_first(&[
        "GEN", "WAITING", "BACKEND", "OWNERS", "VERSION", "PID", "CELLS", "MEMORY", "ID", "AGE",
    ]);
    for session in sessions {
        table.push(session_row(session));
    }
    (!table.is_empty()).then_some(table)
}

fn session_row(session: &SessionInfo) -> Vec<String> {
    let mut name = session.session.clone();
    if session.private_to.is_some() {
        name.push_str(" (private)");
    }
    let mut state = session.state.name().to_owned();
    if let Some(busy) = &session.busy {
        state.push_str(&format!(" {}", format_seconds(busy.seconds)));
    }
    vec![
        name,
        state,
        text(session.name.as_deref()),
        text(session.version.as_deref()),
        text(session.backend.as_deref()),
        text(session.pid.map(|pid| pid.to_string()).as_deref()),
        session.generation.to_string(),
        session.executions.to_string(),
        session.waiting.to_string(),
        size(session.memory_bytes),
        format_seconds(session.age_s),
        session.owners.join(","),
        format!("@{}", session.id),
        session.cwd.clone(),
    ]
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or(NONE).to_owned()
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| NONE.to_owned(), |bytes| ByteSize(bytes).to_string())
}

/// The kernels that can be started, in columns.
pub fn specs_table(rows: &[KernelSpecEntry]) -> Table {
    let mut table = Table::new(["NAME", "BACKEND", "LANGUAGE", "STARTS", "FROM"])
        .clip_path("STARTS")
        .clip_path("FROM")
        .hide_first(&["LANGUAGE", "FROM"]);
    for row in rows {
        table.push([
            row.name.clone(),
            row.backend.to_owned(),
            text(row.language.as_deref()),
            match &row.reason {
                Some(reason) => format!("broken: {}", reason.replace(char::is_control, " ")),
                None => row.starts.clone(),
            },
            text(row.directory.as_deref().or(row.origin.as_deref())),
        ]);
    }
    table
}

/// A variable of a kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    r#type: Option<String>,
    /// Length of each dimension, or any other description.
    shape: Value,
    length: Option<u64>,
    #[serde(alias = "size")]
    size_bytes: Option<u64>,
    preview: Option<String>,
}

/// The reply to a query for variables: with other members, or the list alone.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum VariablesReply {
    Object { variables: Vec<Variable> },
    List(Vec<Variable>),
}

fn variables(reply: &Value) -> Vec<Variable> {
    match VariablesReply::deserialize(reply) {
        Ok(VariablesReply::Object { variables } | VariablesReply::List(variables)) => variables,
        Err(_) => Vec::new(),
    }
}

/// The names of the variables of a kernel.
pub fn variable_names(reply: &Value) -> Vec<String> {
    let names = variables(reply).into_iter().map(|variable| variable.name);
    names.collect()
}

/// The variables of a kernel in columns; `None` if there are none.
pub fn variables_table(reply: &Value) -> Option<Table> {
    let mut table = Table::new(["NAME", "TYPE", "SHAPE", "SIZE", "VALUE"])
        .right("SIZE")
        .clip("VALUE")
        .hide_first(&["SHAPE", "TYPE"]);
    for variable in variables(reply) {
        let shape = match (&variable.shape, variable.length) {
            (Value::Array(sides), _) => {
                let sides: Vec<String> = sides.iter().map(Value::to_string).collect();
                sides.join("×")
            }
            (Value::Null, Some(length)) => length.to_string(),
            (Value::Null, None) => NONE.to_owned(),
            (Value::String(shape), _) => shape.clone(),
            (other, _) => other.to_string(),
        };
        table.push([
            variable.name,
            text(variable.r#type.as_deref()),
            shape,
            size(variable.size_bytes),
            text(variable.preview.as_deref()),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// The text of the reply to an inspect query.
pub fn inspection_text(reply: &Value, code: &str) -> Result<String, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct InspectReply {
        data: BTreeMap<String, Value>,
        text: Option<String>,
    }
    let reply = InspectReply::deserialize(reply).unwrap_or_default();
    let plain = reply.data.get("text/plain").and_then(Value::as_str);
    plain.map(str::to_owned).or(reply.text).ok_or_else(|| {
        let message = format!("The kernel has no information about `{code}`");
        Failure::new(Kind::BadArguments, message)
    })
}

/// The completions of a reply, one per line.
pub fn completions_text(reply: &Value) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CompleteReply {
        matches: Vec<Match>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Match {
        Text(String),
        Object { text: String },
    }
    let reply = CompleteReply::deserialize(reply).unwrap_or_default();
    let mut lines = String::new();
    for found in reply.matches {
        let (Match::Text(text) | Match::Object { text }) = found;
        lines.push_str(&text);
        lines.push('\n');
    }
    lines
}
