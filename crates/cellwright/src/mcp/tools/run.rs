//! `run`: a notebook's cells on its kernel, with what they put out written back.

use cellwright_run::Edit;
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::Value;

use super::super::arguments::{self, Seconds, Word, Words};
use super::super::input::Way;
use super::super::server::Server;
use super::eval::{Plan, backend, interpreter, talk};
use super::{Call, Effect, Told, report};
use crate::evaluation::{EvalAnswer, settled};
use crate::failure::{Failure, Kind};
use crate::notice;
use crate::startup::Startup;
use crate::verbs::run::{self, RunArgs};

pub(super) const TOLD: Told = Told {
    name: "run",
    title: "Run a notebook's cells",
    description: "\
Run code cells of a notebook in order and write outputs and counts back into the file; the first that fails ends \
it. The kernel stays under `session` (default: the file's name), so that cells can be edited and run again; \
`restart` begins afresh, as one should before trusting a whole notebook. Which cells: all, `cells` (\"3-5,8,id:ab12\"), \
`from`, `to`, or `stale` (changed, not run yet, or behind such a cell). `edit_cell` with `source` changes a cell \
first and runs it (`and_below`: those behind it, too). No time limit unless `timeout` (seconds per cell); a call \
that takes long goes on as a run (see `runs`). Example: {\"path\": \"a.ipynb\", \"stale\": true}",
    arguments: r#"{"path": {"type": "string"}, "cells": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"}, "stale": {"type": "boolean"}, "tag": {"type": "string", "description": "only cells with this tag"}, "edit_cell": {"type": "string"}, "source": {"type": "string"}, "and_below": {"type": "boolean"}, "edits": {"type": "array", "items": {"type": "object"}, "description": "several edits, as `notebook` takes them without path"}, "rev": {"type": "string"}, "session": {"type": "string"}, "restart": {"type": "boolean"}, "output": {"type": "string", "description": "write to this file instead"}, "params": {"type": "object", "description": "values for the cell tagged parameters"}, "kernel": {"type": "string"}, "backend": {"enum": ["runner", "jupyter"]}, "python": {"type": "string"}, "timeout": {"type": "number"}, "total_timeout": {"type": "number"}, "keep_going": {"type": "boolean", "description": "go on after a cell that fails"}, "answer": {"type": "array", "items": {"type": "string"}}, "background": {"type": "boolean"}, "wait": {"type": "number"}}"#,
    required: &["path"],
    answer: report::ANSWER,
    effect: Effect::Runs,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "arguments of a tool")]
struct Arguments {
    path: String,
    cells: Option<Word>,
    from: Option<Word>,
    to: Option<Word>,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    tag: Words,
    edit_cell: Option<Word>,
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
    answer: Words,
    #[serde(default)]
    background: bool,
    wait: Option<Seconds>,
}

/// What a call comes to.
enum Planned {
    Runs(Box<Plan>),
    /// No cell is to run.
    Settled(Box<EvalAnswer>, Vec<notice::Told>),
}

pub(super) async fn run(call: &Call<'_>, given: JsonObject) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::read("run", given)?;
    let (server, way) = (call.server.clone(), Way::of(call.context));
    let planned = tokio::task::spawn_blocking(move || plan(&server, given, way)).await;
    match planned.map_err(std::io::Error::other)?? {
        Planned::Runs(plan) => call.carry_out(*plan).await,
        Planned::Settled(answer, notices) => {
            let document = serde_json::to_value(&*answer).map_err(std::io::Error::from)?;
            let reply = report::ended(call.server, &answer.verdict(), document, notices)?;
            Ok(reply.into_result().into())
        }
    }
}

fn plan(server: &Server, given: Arguments, way: Way) -> Result<Planned, Failure> {
    let engine = server.engine();
    // A run saves again and again, and the name must stay the same that others know it by.
    let place = server.roots().file(&given.path)?;
    let path = place.shown.clone();
    let output = match &given.output {
        Some(output) => Some(server.roots().file(output)?.shown),
        None => None,
    };
    let word = |word: Option<Word>| word.map(|word| word.0);
    let session = given.session.unwrap_or_else(|| session_of(&path));
    let args = RunArgs {
        path,
        cells: word(given.cells),
        from: word(given.from),
        to: word(given.to),
        tags: given.tag.0,
        stale: given.stale,
        edit_cell: word(given.edit_cell),
        source: given.source,
        and_below: given.and_below,
        given_edits: given.edits,
        rev: given.rev,
        output,
        parameters: parameters(&given.params)?,
        kernel: given.kernel,
        backend: given.backend.as_deref().map(backend).transpose()?,
        python: interpreter(server, given.python.as_deref())?,
        session: Some(session),
        restart: given.restart,
        timeout: given.timeout.map(|time| time.0),
        total_timeout: given.total_timeout.map(|time| time.0),
        keep_going: given.keep_going,
        answers: given.answer.0,
        like_jupyter: true,
        ..RunArgs::default()
    };
    let mut prepared =
        run::prepare(&args, engine, &mut Startup::new()).map_err(|failure| place.named(failure))?;
    let Some(chosen) = prepared.chosen else {
        let places = run::places(engine, &prepared.settings);
        let answer = settled(&prepared.wish, places)?;
        return Ok(Planned::Settled(Box::new(answer), prepared.notices));
    };
    let settings = &prepared.settings;
    let count = prepared.wish.cells.len();
    prepared.wish.shown = server.shown(count, settings);
    let attach = server.attach(given.background, given.wait);
    let mut wanted = run::wanted(
        &args,
        prepared.wish,
        chosen,
        prepared.cwd,
        engine,
        settings,
        attach,
    )?;
    wanted.talk = talk(way);
    Ok(Planned::Runs(Box::new(Plan {
        wanted,
        notices: prepared.notices,
        idle_exit: crate::host::idle_exit(settings),
    })))
}

/// The session of a notebook for which none is named.
fn session_of(path: &std::path::Path) -> String {
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

/// Values as they would be typed: JSON is YAML.
fn parameters(given: &serde_json::Map<String, Value>) -> Result<Vec<String>, Failure> {
    let typed = |(name, value): (&String, &Value)| {
        if name.contains('=') {
            let message = format!("`{name}` cannot be the name of a parameter");
            return Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"));
        }
        Ok(format!("{name}={value}"))
    };
    given.iter().map(typed).collect()
}
