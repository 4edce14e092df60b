//! What came of code, for a model: how it went, what it printed, what to do next.

use cellwright_output::Artifacts;
use serde_json::{Map, Value, json};

use super::super::content::{Delimiter, Reply, fair_shares, truncate_middle};
use super::super::images::ReplyImages;
use super::super::server::Server;
use super::super::wording;
use crate::execution::{ExecutionStatus, ExecutionSummary};
use crate::failure::Failure;
use crate::notice::{NoticeKind, UserNotice};

/// What `eval`, `run` and `runs wait` answer.
pub(super) const OUTPUT_PROPERTIES: &str = r#"{"status": {"enum": ["ok", "error", "timeout", "cancelled", "died", "not_started", "running"]}, "run": {"type": "string"}, "session": {"type": ["string", "null"]}, "cells": {"type": "array", "description": "index, id, status, text, error, images, truncated of each"}, "notebook": {"type": "object"}, "notices": {"type": "array"}}"#;

/// What telling of a cell takes besides its output, in characters: at most half of an answer.
const OVERHEAD: usize = 200;

/// Of so many cells also those are in the structured content that said nothing.
const DOCUMENTED: usize = 50;

/// JSON that a cell displayed is told as such up to here, in characters.
const JSON: usize = 2000;

/// Characters of the name and the message of an exception; the traceback has them whole.
const ERROR: usize = 300;

/// Notices that are told as such elsewhere, or say what an answer of ours shows anyway.
const SAID: [NoticeKind; 3] = [
    NoticeKind::OutputCut,
    NoticeKind::OutputsOmitted,
    NoticeKind::StreamsShortened,
];

/// The answer for code that has ended.
pub(super) fn ended(
    server: &Server,
    verdict: &ExecutionSummary,
    mut document: Value,
    before: Vec<UserNotice>,
) -> Result<Reply, Failure> {
    // Some hosts give their model the text, some the structured content, some both: each says everything.
    if let Some(refusal) = verdict.start_failure() {
        return Err(refusal);
    }
    let told: Vec<UserNotice> =
        serde_json::from_value(document["notices"].take()).unwrap_or_default();
    let notices: Vec<UserNotice> = before
        .into_iter()
        .chain(told)
        .filter(|notice: &UserNotice| !SAID.contains(&notice.kind))
        .collect();
    let cells = match document["cells"].take() {
        Value::Array(cells) => cells,
        _ => Vec::new(),
    };
    if document["status"] == "ok" && verdict.exit_code() != 0 {
        // What was not allowed to run, or could not be written, is not fine.
        let idle =
            |cell: &Value| matches!(cell["status"].as_str(), Some("skipped" | "not_started"));
        let word = if cells.iter().all(idle) {
            "not_started"
        } else {
            "error"
        };
        document["status"] = json!(word);
    }
    let artifacts = server.engine().artifacts.as_ref();
    let mut told = Telling::new(server, artifacts)?;
    told.cells(&cells, document["notebook"].is_object());
    let all = notices.into_iter().chain(std::mem::take(&mut told.notices));
    let notices: Vec<UserNotice> = all.collect();
    let mut text = heading(verdict, &document, &cells);
    // What stopped a cell is said once, as an error.
    let stops = [
        NoticeKind::Interrupted,
        NoticeKind::KernelKilled,
        NoticeKind::KernelDied,
    ];
    let told_twice =
        |notice: &UserNotice| verdict.trouble().is_some() && stops.contains(&notice.kind);
    let said: Vec<UserNotice> = notices
        .iter()
        .filter(|notice| !told_twice(notice))
        .cloned()
        .collect();
    text.push_str(&wording::format_notices(&said));
    text.push_str(&told.text);
    let mut next: Vec<String> = Vec::new();
    if let Some(trouble) = verdict.trouble() {
        text.push_str(&wording::format_failure(trouble));
        next.extend(trouble.hints.iter().map(wording::format_hint));
    }
    if let Some(step) = next_step(verdict.status, &document) {
        text.push_str(&format!("next: {step}\n"));
        next.push(step.to_owned());
    }
    let document = told.document(
        verdict,
        &document,
        &wording::sanitize_notices(notices),
        &next,
    );
    let mut reply = Reply::new(text, &document)?;
    reply.is_error = verdict.exit_code() != 0;
    reply.blocks.extend(told.images.blocks);
    for (artifact, what) in told.links {
        reply.add_link(&artifact, &what, "text/plain");
    }
    Ok(reply)
}

/// The answer for code that goes on.
pub(super) fn goes_on(known: &Value, before: &[UserNotice]) -> Result<Reply, Failure> {
    let run = known["run"].as_str().unwrap_or_default();
    let mut text = format!(
        "running: it goes on as run {run}; `runs` {{\"action\": \"wait\", \"run\": \"{run}\"}} waits for its \
         end, `tail` shows what it says, `cancel` stops it\n"
    );
    text.push_str(&wording::format_notices(before));
    let next = format!("`runs` with action wait and run {run}");
    let document = json!({
        "status": "running", "run": run, "session": known["session"], "notices": before, "next": [next],
    });
    Ok(Reply::new(text, &document)?)
}

fn heading(verdict: &ExecutionSummary, document: &Value, cells: &[Value]) -> String {
    let mut line = document["status"].as_str().unwrap_or_default().to_owned();
    if let Some(session) = document["session"].as_str() {
        line.push_str(&format!(", session {}", wording::sanitize_name(session)));
    }
    if let Some(kernel) = document["kernel"]["name"].as_str() {
        let backend = document["kernel"]["backend"].as_str().unwrap_or_default();
        line.push_str(&format!(", {backend} {}", wording::sanitize_name(kernel)));
    }
    if document["notebook"].is_null() {
        let times = cells.iter().filter_map(|cell| cell["duration_ms"].as_f64());
        let took = times.fold(0.0, |all, time| all + time);
        line.push_str(&format!(", {took:.1} ms"));
    }
    line.push('\n');
    if let Some(summary) = verdict.summary() {
        for part in summary.lines() {
            line.push_str(&wording::sanitize(part));
            line.push('\n');
        }
    }
    line
}

/// What a model might do now.
fn next_step(status: ExecutionStatus, document: &Value) -> Option<&'static str> {
    let in_notebook = document["notebook"].is_object();
    let kept = document["session"].is_string();
    match status {
        ExecutionStatus::Error if in_notebook && kept => {
            Some("correct the cell with `edit` or `notebook`, then `run` with \"stale\": true")
        }
        ExecutionStatus::Died if kept => {
            Some("the next call on this session starts a fresh kernel")
        }
        _ => None,
    }
}

/// Cells on their way into an answer.
struct Telling<'a> {
    most: usize,
    artifacts: Option<&'a Artifacts>,
    border: Delimiter,
    text: String,
    documents: Vec<Value>,
    images: ReplyImages,
    links: Vec<(String, String)>,
    /// What is to be said of what is not shown.
    notices: Vec<UserNotice>,
}

impl<'a> Telling<'a> {
    fn new(server: &Server, artifacts: Option<&'a Artifacts>) -> Result<Self, Failure> {
        Ok(Self {
            most: server.options().text_limit,
            artifacts,
            border: Delimiter::new()?,
            text: String::new(),
            documents: Vec::new(),
            images: ReplyImages::default(),
            links: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// The same as a document, what matters most first.
    fn document(
        &mut self,
        verdict: &ExecutionSummary,
        answer: &Value,
        notices: &[UserNotice],
        next: &[String],
    ) -> Value {
        let mut document = json!({"status": answer["status"], "session": answer["session"]});
        if let Some(summary) = verdict.summary() {
            document["summary"] = json!(summary);
        }
        if let Some(trouble) = verdict.trouble() {
            let causes: Vec<String> = trouble
                .causes
                .iter()
                .map(|text| wording::sanitize(text))
                .collect();
            let message = wording::sanitize(&trouble.message);
            document["trouble"] = json!({"message": message, "causes": causes});
        }
        document["cells"] = Value::Array(std::mem::take(&mut self.documents));
        document["notices"] = json!(notices);
        if !next.is_empty() {
            document["next"] = json!(next);
        }
        for name in ["notebook", "died"] {
            if answer[name].is_object() {
                document[name] = answer[name].clone();
            }
        }
        if answer["kernel"].is_object() {
            let kernel = &answer["kernel"];
            document["kernel"] = json!({
                "backend": kernel["backend"], "name": kernel["name"], "pid": kernel["pid"],
                "generation": kernel["generation"],
            });
        }
        document
    }

    fn cells(&mut self, cells: &[Value], in_notebook: bool) {
        let speaks = |cell: &&Value| {
            let quiet = matches!(cell["status"].as_str(), Some("ok" | "skipped"));
            let text = cell["text"].as_str().unwrap_or_default();
            let images = cell["images"]
                .as_array()
                .is_some_and(|images| !images.is_empty());
            !quiet || !text.is_empty() || images
        };
        let speaking: Vec<&Value> = cells.iter().filter(speaks).collect();
        let told = most_telling(&speaking, (self.most / (2 * OVERHEAD)).max(1));
        let lengths: Vec<usize> = told
            .iter()
            .map(|cell| cell["text"].as_str().unwrap_or_default().chars().count())
            .collect();
        let alone = cells.len() == 1;
        let room = self
            .most
            .saturating_sub(told.len() * OVERHEAD)
            .max(self.most / 2);
        for (cell, share) in told.iter().zip(fair_shares(&lengths, room)) {
            self.cell(cell, share, alone, in_notebook);
        }
        if alone && told.is_empty() && cells[0]["status"] == "ok" {
            self.text.push_str("no output\n");
        }
        if cells.len() <= DOCUMENTED {
            let silent = cells.iter().filter(|cell| !speaks(cell));
            let silent = silent.map(|cell| documented(cell, String::new()));
            self.documents.extend(silent);
            let place = |cell: &Value| cell["index"].as_u64();
            self.documents.sort_by_key(place);
        }
        let silent = cells.iter().filter(|cell| !speaks(cell)).count();
        if silent > 0 && !alone {
            let plural = if silent == 1 { "" } else { "s" };
            let ok = cells
                .iter()
                .filter(|cell| !speaks(cell) && cell["status"] == "ok")
                .count();
            self.text.push_str(&format!(
                "{silent} cell{plural} without output: {ok} ok, {} not run\n",
                silent - ok
            ));
        }
        let left = speaking.len() - told.len();
        if left > 0 {
            let mut words = format!("{left} more cells have outputs, which are not shown here");
            if in_notebook {
                words.push_str("; `read` shows them with :outputs");
            }
            self.notices
                .push(UserNotice::new(NoticeKind::CellsLeftOut, words));
        }
        for remark in self.images.omissions.drain(..) {
            self.notices
                .push(UserNotice::new(NoticeKind::ImageNotShown, remark));
        }
    }

    fn cell(&mut self, cell: &Value, share: usize, alone: bool, in_notebook: bool) {
        let index = cell["index"].as_u64().unwrap_or_default();
        let status = cell["status"].as_str().unwrap_or_default();
        let printed = cell["text"].as_str().unwrap_or_default();
        let (shown, missing) = truncate_middle(printed, share);
        if !(alone || printed.is_empty() && matches!(status, "ok" | "skipped")) {
            let id = cell["id"]
                .as_str()
                .map(|id| format!(" (id {})", wording::sanitize_name(id)));
            let title = cell["title"].as_str();
            let title = title.map(|title| format!(" `{}`", wording::sanitize_name(title)));
            self.text.push_str(&format!(
                "cell {index}{}{}: {status}\n",
                id.unwrap_or_default(),
                title.unwrap_or_default()
            ));
        }
        if !shown.is_empty() {
            self.text.push_str(&self.border.enclose("output", &shown));
        }
        let artifact = cell["truncated"]["artifact"].as_str();
        if missing > 0 || cell["truncated"].is_object() {
            let bytes = cell["truncated"]["total_bytes"].as_u64();
            let lines = cell["truncated"]["total_lines"].as_u64();
            let mut words = format!("cut: {} characters shown", shown.chars().count());
            if let (Some(bytes), Some(lines)) = (bytes, lines) {
                words.push_str(&format!(" of {bytes} bytes in {lines} lines"));
            }
            match artifact {
                Some(artifact) => words.push_str(&format!(
                    "; all of it: `read` {artifact}, such as {artifact}:1-100"
                )),
                None if in_notebook => words.push_str("; all of it is in the notebook (:outputs)"),
                None => {}
            }
            words.push('\n');
            self.text.push_str(&words);
        }
        if let Some(artifact) = artifact {
            let what = format!("all that cell {index} printed");
            self.links.push((artifact.to_owned(), what));
        }
        self.images.add_cell(index, &cell["images"], self.artifacts);
        self.documents.push(documented(cell, shown));
    }
}

/// Of many cells those that say most: the ones that failed, and the last ones. In their order.
fn most_telling<'v>(cells: &[&'v Value], most: usize) -> Vec<&'v Value> {
    let failed = |cell: &Value| !matches!(cell["status"].as_str(), Some("ok" | "skipped"));
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&at| (!failed(cells[at]), std::cmp::Reverse(at)));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|at| cells[at]).collect()
}

/// A cell without what only a notebook needs.
fn documented(cell: &Value, shown: String) -> Value {
    let mut document = Map::new();
    for name in ["index", "id", "title", "status"] {
        match &cell[name] {
            Value::Null => {}
            Value::String(text) => {
                document.insert(name.to_owned(), wording::sanitize_name(text).into());
            }
            other => {
                document.insert(name.to_owned(), other.clone());
            }
        }
    }
    document.insert("text".to_owned(), shown.into());
    for name in ["truncated", "images", "execution_count", "duration_ms"] {
        let empty = cell[name].as_array().is_some_and(Vec::is_empty);
        if !cell[name].is_null() && !empty {
            document.insert(name.to_owned(), cell[name].clone());
        }
    }
    if let Some(error) = cell["error"].as_object() {
        let mut brief = Map::new();
        for name in ["ename", "evalue"] {
            let text = error.get(name).and_then(Value::as_str).unwrap_or_default();
            brief.insert(name.to_owned(), truncate_middle(text, ERROR).0.into());
        }
        document.insert("error".to_owned(), Value::Object(brief));
    }
    let json = &cell["json"];
    if json.as_array().is_some_and(|json| !json.is_empty()) && json.to_string().len() <= JSON {
        document.insert("json".to_owned(), json.clone());
    }
    Value::Object(document)
}
