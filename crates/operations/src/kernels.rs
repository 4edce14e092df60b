//! Sessions and the replies to kernel queries as text, for every front end.

use std::collections::BTreeMap;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::json_schema::AnyJson;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_host::reply::{RunInfo, SessionInfo};
use cellwright_output::{ByteSize, LiveTarget, LiveText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kernel_specs::KernelSpecEntry;
use super::server_kernels::ServerKernel;
use crate::table::{Table, format_seconds};

/// Number of variables that a query returns.
pub const VARIABLES_MAX: usize = 1000;

/// Shown for a value that does not exist.
const NONE: &str = "-";

/// The sessions in columns; `None` if there are none.
pub fn sessions_table(sessions: &[SessionInfo]) -> Option<Table> {
    let head = [
        "SESSION", "STATE", "KERNEL", "VERSION", "BACKEND", "WHERE", "PID", "GEN", "CELLS",
        "WAITING", "MEMORY", "AGE", "OWNERS", "ID", "CWD",
    ];
    let mut table = Table::new(head).clip_path("CWD").hide_first(&[
        "GEN", "WAITING", "BACKEND", "OWNERS", "VERSION", "PID", "CELLS", "MEMORY", "ID", "AGE",
        "WHERE",
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
        state.push_str(&format!(" {}", format_seconds(busy.elapsed_ms / 1000)));
    }
    vec![
        name,
        state,
        text(session.name.as_deref()),
        text(session.version.as_deref()),
        text(session.backend.as_deref()),
        session.server.clone().unwrap_or_else(|| "here".to_owned()),
        text(session.pid.map(|pid| pid.to_string()).as_deref()),
        session.generation.to_string(),
        session.executions.to_string(),
        session.waiting.to_string(),
        size(session.memory_bytes),
        format_seconds(session.age_ms / 1000),
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

/// The sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    /// The sessions, oldest first.
    pub kernels: Vec<SessionInfo>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// The kernels of a server in columns; `None` if there are none.
pub fn server_kernels_table(kernels: &[ServerKernel]) -> Option<Table> {
    let head = [
        "KERNEL", "NAME", "STATE", "CLIENTS", "ACTIVE", "NOTEBOOK", "SESSION",
    ];
    let mut table = Table::new(head)
        .clip_path("NOTEBOOK")
        .hide_first(&["ACTIVE", "CLIENTS"]);
    for kernel in kernels {
        let clients = kernel.connections.map(|count| count.to_string());
        table.push([
            kernel.id.clone(),
            kernel.name.clone(),
            text(kernel.state.as_deref()),
            text(clients.as_deref()),
            text(kernel.last_activity_at.as_deref()),
            text(kernel.notebook.as_deref()),
            text(kernel.session.as_deref()),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// The runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunList {
    /// The runs, oldest first.
    pub runs: Vec<RunInfo>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// The variables of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VariablesReport {
    /// Name of the session.
    pub session: String,
    /// The variables.
    pub variables: Vec<Variable>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A variable of a kernel.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Variable {
    /// Name of the variable.
    name: String,
    /// Name of its type.
    r#type: Option<String>,
    /// Module of its type.
    module: Option<String>,
    /// Length of each dimension, or any other description.
    #[schemars(with = "AnyJson")]
    shape: Value,
    /// Number of items.
    length: Option<u64>,
    /// Size in bytes.
    #[serde(alias = "size")]
    size_bytes: Option<u64>,
    /// Its value as text, shortened.
    preview: Option<String>,
}

/// What a kernel knows about a name.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct InspectionReport {
    /// Name of the session.
    pub session: String,
    /// Whether the kernel knows the name.
    found: bool,
    /// The name.
    name: Option<String>,
    /// Its type.
    r#type: Option<String>,
    /// Its module.
    module: Option<String>,
    /// Signature of a function.
    signature: Option<String>,
    /// Its documentation.
    docstring: Option<String>,
    /// The file that defines it.
    file: Option<String>,
    /// Its source, if requested.
    source: Option<String>,
    /// The information as text.
    text: Option<String>,
    /// The information by MIME type, as the kernel sent it.
    #[schemars(with = "BTreeMap<String, AnyJson>")]
    data: BTreeMap<String, Value>,
}

/// The completions of code.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CompletionReport {
    /// Name of the session.
    pub session: String,
    /// The completions.
    matches: Vec<String>,
    /// Where the completed text starts in the code, in characters.
    start: Option<u64>,
    /// Where the completed text ends in the code, in characters.
    end: Option<u64>,
}

impl VariablesReport {
    /// The document of the reply of a kernel.
    pub fn new(session: &str, reply: &Value) -> Self {
        Self {
            session: session.to_owned(),
            variables: variables(reply),
            notices: Vec::new(),
        }
    }
}

impl InspectionReport {
    /// The document of the reply of a kernel.
    pub fn new(session: &str, reply: &Value) -> Self {
        let mut report = Self::deserialize(reply).unwrap_or_default();
        session.clone_into(&mut report.session);
        let plain = report.data.get("text/plain").and_then(Value::as_str);
        report.text = plain.map(without_escapes).or(report.text);
        report
    }

    /// The text, for people and models.
    pub fn into_text(self, code: &str) -> Result<String, Failure> {
        self.text.ok_or_else(|| {
            let message = format!("The kernel has no information about `{code}`");
            Failure::new(Kind::BadArguments, message)
        })
    }
}

impl CompletionReport {
    /// The document of the reply of a kernel.
    pub fn new(session: &str, reply: &Value) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct CompleteReply {
            matches: Vec<Match>,
            start: Option<u64>,
            end: Option<u64>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Match {
            Text(String),
            Object { text: String },
        }
        let reply = CompleteReply::deserialize(reply).unwrap_or_default();
        let text = |found| match found {
            Match::Text(text) | Match::Object { text } => text,
        };
        Self {
            session: session.to_owned(),
            matches: reply.matches.into_iter().map(text).collect(),
            start: reply.start,
            end: reply.end,
        }
    }

    /// The completions, one per line.
    pub fn to_lines(&self) -> String {
        let line = |text: &String| format!("{text}\n");
        self.matches.iter().map(line).collect()
    }
}

/// Removes escape sequences.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut live = LiveText::new(LiveTarget::Pipe);
    live.push(text.as_bytes(), &mut plain);
    live.finish(&mut plain);
    plain
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
pub fn variables_table(variables: &[Variable]) -> Option<Table> {
    let mut table = Table::new(["NAME", "TYPE", "SHAPE", "SIZE", "VALUE"])
        .right("SIZE")
        .clip("VALUE")
        .hide_first(&["SHAPE", "TYPE"]);
    for variable in variables {
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
            variable.name.clone(),
            text(variable.r#type.as_deref()),
            shape,
            size(variable.size_bytes),
            text(variable.preview.as_deref()),
        ]);
    }
    (!table.is_empty()).then_some(table)
}
