//! `artifact`: lists and searches full outputs.

use std::time::SystemTime;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_operations::artifact::{format_hits, parse_address};
use cellwright_output::{ByteSize, Pattern, SearchOptions};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments::{self, Argument, ArgumentKind};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::server::Server;
use super::{Effect, ToolSpec};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "artifact",
    title: "Search full outputs",
    description: "\
Search full outputs of Jupyter notebook cells that a reply truncated. list: the newest of this project. search: lines of `id` that contain \
`grep` or match `regex`. `read` shows lines (artifact://7:10-40) and images. Example: {\"action\": \"search\", \"id\": \"artifact://7\", \
\"grep\": \"Error\", \"context\": 5}",
    search_hint: "jupyter output truncated log grep",
    is_main: false,
    arguments: &[
        Argument::new("action", ArgumentKind::OneOf(&["list", "search"])).required(),
        Argument::new("id", ArgumentKind::Text).or(&["artifact", "path", "uri"]),
        Argument::new("grep", ArgumentKind::Text).or(&["query", "text", "search"]),
        Argument::new("regex", ArgumentKind::Text).or(&["pattern"]),
        Argument::new("context", ArgumentKind::Integer),
        Argument::new("max", ArgumentKind::Integer).or(&["most", "limit", "max_matches"]),
    ],
    output_properties: r#"{"artifacts": {"type": "array"}, "hits": {"type": "array"}, "total": {"type": "integer"}, "lines": {"type": "integer"}}"#,
    effect: Effect::ReadOnly,
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    action: String,
    id: Option<String>,
    grep: Option<String>,
    regex: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default = "default_max_matches")]
    max: usize,
}

fn default_max_matches() -> usize {
    20
}

/// Maximum number of artifacts in a list.
const LISTED_MAX: usize = 50;

pub(super) fn artifact(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("artifact", SPEC.arguments, given)?;
    match given.action.as_str() {
        "search" => search(server, given),
        _ => list(server),
    }
}

fn list(server: &Server) -> Result<Reply, Failure> {
    let mut entries = server.artifacts()?.list()?;
    entries.reverse();
    let total = entries.len();
    entries.truncate(LISTED_MAX);
    let now = SystemTime::now();
    let mut text = String::new();
    let mut documents = Vec::new();
    for entry in &entries {
        let age = now.duration_since(entry.modified).unwrap_or_default();
        text.push_str(&format!(
            "{} {} {}, {} s ago\n",
            entry.id,
            ByteSize(entry.bytes),
            entry.kind.mime(),
            age.as_secs()
        ));
        documents.push(json!({
            "artifact": entry.id.to_string(), "mime": entry.kind.mime(),
            "bytes": entry.bytes, "age_ms": age.as_millis(),
        }));
    }
    if total > entries.len() {
        text.push_str(&format!("showing {} of {total}\n", entries.len()));
    }
    if text.is_empty() {
        text.push_str("no artifacts\n");
    }
    Ok(Reply::new(text, &json!({"artifacts": documents}))?)
}

fn search(server: &Server, given: Arguments) -> Result<Reply, Failure> {
    let pattern = match (given.grep, given.regex) {
        (Some(text), None) => Pattern::Plain(text),
        (None, Some(text)) => Pattern::Regex(text),
        _ => {
            let failure = Failure::new(
                Kind::BadArguments,
                "`search` needs either `grep` or `regex`",
            );
            return Err(failure);
        }
    };
    let Some(id) = given.id else {
        return Err(Failure::new(
            Kind::BadArguments,
            "`search` needs the `id` of an artifact",
        ));
    };
    let (id, _) = parse_address(&id)?;
    let search = SearchOptions {
        max_hits: given.max.min(1000),
        context: given.context.min(100),
        ..SearchOptions::default()
    };
    let artifact = server.artifacts()?.open_in_project(id)?;
    if artifact.kind.mime().starts_with("image/") {
        let failure = Failure::new(Kind::BadArguments, format!("{id} is an image"));
        return Err(failure.hint(format!("`read` {id} returns it")));
    }
    let hits = artifact.search(&pattern, &search)?;
    let (text, missing) = truncate_middle(&format_hits(&hits), server.options().text_limit);
    let mut reply = format!(
        "{} of {} matches in {} lines of {id}\n",
        hits.hits.len(),
        hits.total,
        hits.lines_searched
    );
    reply.push_str(&Delimiter::new()?.enclose("text", &text));
    if missing > 0 {
        reply.push_str(&format!(
            "{missing} characters omitted; request fewer matches\n"
        ));
    }
    let limit = server.options().text_limit;
    let mut used = 0;
    let mut documents: Vec<Value> = Vec::new();
    for hit in &hits.hits {
        used += hit.text.len() + 40;
        if used > limit {
            break;
        }
        documents.push(json!({"line": hit.line, "text": hit.text}));
    }
    let document = json!({
        "artifact": id.to_string(), "hits": documents, "total": hits.total, "lines": hits.lines_searched,
    });
    Ok(Reply::new(reply, &document)?)
}
