//! `run`: runs cells of a notebook on its kernel and saves their outputs.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::kernels::KernelRequest;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::ExecutionReport;
use cellwright_execution::parameters::Parameter;
use cellwright_execution::{CellSelection, Edit};
use cellwright_operations::parameters::ParameterSet;
use cellwright_operations::run::{self, RunRequest};
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::Value;

use super::super::arguments::{self, LenientString, LenientStrings, Seconds};
use super::super::input::ElicitationMode;
use super::super::server::Server;
use super::eval::{PreparedCall, backend, interaction, interpreter};
use super::{Effect, ToolCall, ToolSpec, report};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "run",
    title: "Run a notebook's cells",
    description: "\
Run code cells of a notebook in order and save outputs and counts in the file; the first that fails ends the run. \
The kernel stays as `session` (default: the file's name), so that cells can be edited and run again; `restart` \
starts a fresh kernel: use it before you trust a whole notebook. Cells: all, `cells` (\"3-5,8,id:ab12\"), \
`from`, `to`, or `stale` (changed, never run, or after such a cell). `edit_cell` with `source` changes a cell \
first and runs it (`and_below`: and all following cells). No time limit unless `timeout` (seconds per cell); a long \
call continues as a run (see `runs`). Example: {\"path\": \"a.ipynb\", \"stale\": true}",
    input_properties: r#"{"path": {"type": "string"}, "cells": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"}, "stale": {"type": "boolean"}, "tag": {"type": "string", "description": "only cells with this tag"}, "edit_cell": {"type": "string"}, "source": {"type": "string"}, "and_below": {"type": "boolean"}, "edits": {"type": "array", "items": {"type": "object", "properties": {"action": {"type": "string"}, "cell": {"type": "string"}, "source": {"type": "string"}, "type": {"type": "string"}, "after": {"type": "string"}, "before": {"type": "string"}, "to": {"type": "integer"}, "tags": {"type": "array"}}, "required": ["action"]}, "description": "several edits, as `notebook` takes them"}, "rev": {"type": "string"}, "session": {"type": "string"}, "restart": {"type": "boolean"}, "output": {"type": "string", "description": "write to this file instead"}, "params": {"type": "object", "description": "values for the cell tagged parameters"}, "kernel": {"type": "string"}, "backend": {"enum": []}, "python": {"type": "string"}, "timeout": {"type": "number"}, "total_timeout": {"type": "number"}, "keep_going": {"type": "boolean", "description": "continue after a cell that fails"}, "answer": {"type": "array", "items": {"type": "string"}}, "background": {"type": "boolean"}, "wait": {"type": "number"}}"#,
    required: &["path"],
    output_properties: report::OUTPUT_PROPERTIES,
    effect: Effect::RunsCode,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "arguments of a tool")]
pub(super) struct Arguments {
    path: String,
    cells: Option<LenientString>,
    from: Option<LenientString>,
    to: Option<LenientString>,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    tag: LenientStrings,
    edit_cell: Option<LenientString>,
    source: Option<String>,
    #[serde(default)]
    and_below: bool,
    #[serde(default)]
    edits: Vec<Edit>,
    rev: Option<String>,
    session: Option<String>,
    #[serde(default)]
    restart: bool,
    output: Option<String>,
    #[serde(default)]
    params: serde_json::Map<String, Value>,
    kernel: Option<String>,
    backend: Option<String>,
    python: Option<String>,
    timeout: Option<Seconds>,
    total_timeout: Option<Seconds>,
    #[serde(default)]
    keep_going: bool,
    #[serde(default)]
    answer: LenientStrings,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

/// What a call does.
enum RunCall {
    Execute(Box<PreparedCall>),
    /// No cell runs.
    Finished(Box<ExecutionReport>, Vec<UserNotice>),
}

pub(super) async fn run(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("run", given)?;
    let (server, mode) = (
        call.server.clone(),
        ElicitationMode::from_context(call.context),
    );
    let prepared = tokio::task::spawn_blocking(move || prepare(&server, given, mode)).await;
    match prepared.map_err(std::io::Error::other)?? {
        RunCall::Execute(prepared) => call.execute(*prepared).await,
        RunCall::Finished(report, notices) => {
            let reply = report::finished(call.server, &report, notices)?;
            Ok(reply.into_result().into())
        }
    }
}

fn prepare(server: &Server, given: Arguments, mode: ElicitationMode) -> Result<RunCall, Failure> {
    let engine = server.engine();
    // A run saves repeatedly; sessions and other clients identify the file by its displayed path.
    let place = server.roots().resolve_file(&given.path)?;
    let path = place.display_path().to_owned();
    let output = match &given.output {
        Some(output) => Some(
            server
                .roots()
                .resolve_file(output)?
                .display_path()
                .to_owned(),
        ),
        None => None,
    };
    let word = |word: Option<LenientString>| word.map(|word| word.0);
    let session = given.session.unwrap_or_else(|| default_session_name(&path));
    let mut edits = given.edits;
    if let Some(LenientString(cell)) = given.edit_cell {
        let Some(source) = given.source else {
            let failure = Failure::new(Kind::BadArguments, "`edit_cell` needs a `source`");
            return Err(failure.hint("nothing was written, nothing ran"));
        };
        if !edits.is_empty() {
            let message = "`edits` and `edit_cell` cannot be combined";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint("nothing was written, nothing ran"));
        }
        edits.push(Edit::source(cell, source));
    }
    let request = RunRequest {
        path,
        selection: CellSelection {
            cells: word(given.cells),
            from: word(given.from),
            to: word(given.to),
            tags: given.tag.0,
            ..CellSelection::default()
        },
        stale: given.stale,
        edits,
        and_below: given.and_below,
        revision: given.rev,
        output,
        parameters: ParameterSet {
            parameters: parameters(given.params)?,
            notices: Vec::new(),
        },
        kernel: KernelRequest {
            python: interpreter(server, given.python.as_deref())?,
            kernel: given.kernel,
            backend: given.backend.as_deref().map(backend).transpose()?,
            existing: None,
        },
        project_dir: Some(server.project_dir()),
        session: Some(session),
        restart: given.restart,
        timeout: given.timeout.map(|time| time.0),
        total_timeout: given.total_timeout.map(|time| time.0),
        keep_going: given.keep_going,
        answers: given.answer.0,
        like_jupyter: true,
        ..RunRequest::default()
    };
    let mut prepared = run::prepare(request, engine, server.kernels(), &mut StartupTimer::new())
        .map_err(|failure| place.with_selector_hint(failure))?;
    let Some(chosen) = prepared.chosen.take() else {
        let report = prepared.finish_without_cells(engine)?;
        return Ok(RunCall::Finished(Box::new(report), prepared.notices));
    };
    let count = prepared.execution.cells.len();
    prepared.execution.inline_limits = server.inline_limits(count, &prepared.settings);
    let wait_mode = server.wait_mode(given.background, given.wait);
    let mut params = prepared.host_request(chosen, engine, wait_mode)?;
    params.interaction = interaction(mode);
    Ok(RunCall::Execute(Box::new(PreparedCall {
        params,
        idle_exit: cellwright_host::idle_exit(&prepared.settings),
        notices: prepared.notices,
    })))
}

/// The session of a notebook for which none is named.
fn default_session_name(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| {
        if c.is_control() || c.is_whitespace() {
            '_'
        } else {
            c
        }
    };
    let name: String = name.chars().map(plain).take(100).collect();
    match name.strip_prefix(['@', '-']) {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

/// The parameters of the notebook.
fn parameters(given: serde_json::Map<String, Value>) -> Result<Vec<Parameter>, Failure> {
    let parameter = |(name, value): (String, Value)| {
        if name.contains('=') {
            let message = format!("`{name}` cannot be the name of a parameter");
            return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
        }
        Ok(Parameter::new(name, value))
    };
    given.into_iter().map(parameter).collect()
}
