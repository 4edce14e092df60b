//! `kernels`: live kernels, and what is in them.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::protocol::{SessionQuery, SessionSelector};
use cellwright_operations::eval::canonical;
use cellwright_operations::kernel_specs::list_kernel_specs;
use cellwright_operations::kernels::{
    VARIABLES_MAX, completions_text, inspection_text, sessions_table, specs_table, variables_table,
};
use rmcp::model::{CallToolResponse, JsonObject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::arguments::{self, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::server::Server;
use super::super::wording;
use super::{Effect, ToolCall, ToolSpec};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "kernels",
    title: "Live kernels",
    description: "\
Manage sessions (persistent kernels). list: all. variables: names, types, shapes. inspect: information about the name \
in `code`. complete: completions of `code`. interrupt: stop the running cell, variables stay. reset: a fresh kernel, \
variables are lost. stop: end it. specs: kernels that can be started. `name` is the session's, or @ and its id. \
Example: {\"action\": \"variables\", \"name\": \"main\"}",
    input_properties: r#"{"action": {"enum": ["list", "specs", "variables", "inspect", "complete", "interrupt", "reset", "stop"]}, "name": {"type": "string"}, "code": {"type": "string"}, "cursor": {"type": "integer", "description": "in characters; default: the end"}, "source": {"type": "boolean", "description": "inspect: with its source"}, "timeout": {"type": "number", "description": "seconds to wait for a busy kernel, default 10"}}"#,
    required: &["action"],
    output_properties: r#"{"kernels": {"type": "array"}, "specs": {"type": "array"}, "text": {"type": "string"}, "interrupted": {"type": "boolean"}, "ended": {"type": "boolean"}, "notices": {"type": "array"}}"#,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    action: String,
    name: Option<String>,
    code: Option<String>,
    cursor: Option<usize>,
    #[serde(default)]
    source: bool,
    timeout: Option<Seconds>,
}

/// Time to wait for a busy kernel.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn kernels(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("kernels", given)?;
    let server = call.server;
    let host = server.kernels();
    let mut reply = match given.action.as_str() {
        "list" => list_sessions(server).await?,
        "specs" => list_specs(server).await?,
        "interrupt" => {
            let result = host.interrupt(select(server, &given)?).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            let text = if result.interrupted {
                "interrupted; variables are kept"
            } else {
                "it runs nothing"
            };
            confirm(&given, text, &result)?
        }
        "reset" => {
            let result = host.reset(select(server, &given)?).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            confirm(&given, "it has a fresh kernel; variables are lost", &result)?
        }
        "stop" => {
            let result = host.end_session(select(server, &given)?, None).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            confirm(&given, "ended", &result)?
        }
        "variables" => {
            let query = SessionQuery::Variables {
                limit: VARIABLES_MAX,
            };
            let table = variables_table(&send_query(server, &given, query).await?);
            show(server, &given, table.as_deref().unwrap_or("no variables"))?
        }
        "inspect" => {
            let code = code(&given)?;
            let query = SessionQuery::Inspect {
                code: code.to_owned(),
                cursor: given.cursor.unwrap_or_else(|| code.chars().count()),
                source: given.source,
            };
            let reply = send_query(server, &given, query).await?;
            show(server, &given, &inspection_text(&reply, code)?)?
        }
        "complete" => {
            let code = code(&given)?;
            let query = SessionQuery::Complete {
                code: code.to_owned(),
                cursor: given.cursor.unwrap_or_else(|| code.chars().count()),
            };
            let reply = send_query(server, &given, query).await?;
            show(server, &given, &completions_text(&reply))?
        }
        other => {
            let message = format!("There is no action `{other}`");
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(
                "there are list, specs, variables, inspect, complete, interrupt, reset and stop",
            ));
        }
    };
    if let Some(name) = &given.name {
        let notices = server.in_flight_calls().take_deferred(name).await;
        if !notices.is_empty() {
            let text = wording::format_notices(&notices);
            reply
                .blocks
                .insert(0, rmcp::model::ContentBlock::text(text));
            reply.structured["notices"] = json!(notices);
        }
    }
    server.subscriptions().check_now();
    Ok(reply.into_result().into())
}

async fn list_sessions(server: &Server) -> Result<Reply, Failure> {
    let sessions = server.sessions().await?;
    let text = match sessions_table(&sessions) {
        // Labels are code of the client.
        Some(table) => Delimiter::new()?.enclose("text", &table),
        None => "no sessions; `eval` or `run` starts one\n".to_owned(),
    };
    Ok(Reply::new(text, &json!({"kernels": sessions}))?)
}

async fn list_specs(server: &Server) -> Result<Reply, Failure> {
    let (engine, base) = (server.engine().clone(), server.roots().base()?);
    let found =
        tokio::task::spawn_blocking(move || list_kernel_specs(Some(&base), None, &engine)).await;
    let rows = found.map_err(std::io::Error::other)??;
    let text = Delimiter::new()?.enclose("text", &specs_table(&rows));
    Ok(Reply::new(text, &json!({"specs": rows}))?)
}

fn select(server: &Server, given: &Arguments) -> Result<SessionSelector, Failure> {
    let Some(name) = given.name.clone() else {
        let message = format!("`{}` needs the name of a session", given.action);
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("`kernels` list shows them"));
    };
    let base = server.roots().base().ok();
    let settings = server
        .engine()
        .settings(base.as_deref().unwrap_or(std::path::Path::new("/")))?;
    Ok(SessionSelector {
        name,
        cwd: None,
        here: base.map(canonical),
        owner: settings.eval.owner.clone(),
    })
}

fn code(given: &Arguments) -> Result<&str, Failure> {
    given.code.as_deref().ok_or_else(|| {
        let message = format!("`{}` needs `code`", given.action);
        Failure::new(Kind::BadArguments, message)
    })
}

async fn send_query(
    server: &Server,
    given: &Arguments,
    query: SessionQuery,
) -> Result<Value, Failure> {
    let timeout = given.timeout.map_or(QUERY_TIMEOUT, |time| time.0);
    let session = select(server, given)?;
    let reply = server.kernels().query(session, query, timeout).await?;
    reply.ok_or_else(cellwright_host::host_not_running)
}

fn confirm(given: &Arguments, text: &str, result: &impl Serialize) -> Result<Reply, Failure> {
    let name = given.name.as_deref().unwrap_or_default();
    Ok(Reply::new(format!("session {name}: {text}\n"), result)?)
}

fn show(server: &Server, given: &Arguments, text: &str) -> Result<Reply, Failure> {
    let (text, missing) = truncate_middle(text, server.options().text_limit);
    let mut whole = Delimiter::new()?.enclose("text", &text);
    if missing > 0 {
        whole.push_str(&format!("{missing} characters are not shown\n"));
    }
    let document = json!({"session": given.name, "text": text});
    Ok(Reply::new(whole, &document)?)
}
