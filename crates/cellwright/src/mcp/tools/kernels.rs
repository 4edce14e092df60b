//! `kernels`: live kernels, and what is in them.

use std::time::Duration;

use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments::{self, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::server::Server;
use super::super::wording;
use super::{Effect, ToolCall, ToolSpec};
use crate::failure::{Failure, Kind};
use crate::host::protocol::{HostRequest, SessionQuery, SessionSelector};
use crate::hosted_execution::without_end;
use crate::operations::eval::canonical;
use crate::operations::kernel_specs::list_kernel_specs;
use crate::verbs::kernels::{SLOW, VARIABLES, list, specs};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "kernels",
    title: "Live kernels",
    description: "\
Look after sessions (kernels that stay). list: all. variables: names, types, shapes. inspect: what is known of the name \
in `code`. complete: how `code` could go on. interrupt: stop what it runs, variables stay. reset: a fresh kernel, \
variables lost. stop: end it. specs: which kernels could be started. `name` is the session's, or @ and its id. \
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

/// How long a busy kernel is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn kernels(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("kernels", given)?;
    let server = call.server;
    let mut reply = match given.action.as_str() {
        "list" => of_sessions(server).await?,
        "specs" => of_specs(server).await?,
        "interrupt" => {
            let session = who(server, &given)?;
            let answer = demand(server, &HostRequest::Interrupt { session }, SLOW).await?;
            let words = if answer["interrupted"] == true {
                "it was interrupted; variables are there"
            } else {
                "it runs nothing"
            };
            done(&given, words, &answer)?
        }
        "reset" => {
            let session = who(server, &given)?;
            let answer = demand(server, &HostRequest::Reset { session }, SLOW).await?;
            done(&given, "it has a fresh kernel; variables are gone", &answer)?
        }
        "stop" => {
            let session = who(server, &given)?;
            let owner = None;
            let answer = demand(server, &HostRequest::EndSession { session, owner }, SLOW).await?;
            done(&given, "it was ended", &answer)?
        }
        "variables" => {
            let answer = ask(server, &given, SessionQuery::Variables { limit: VARIABLES }).await?;
            let table = list::variables_table(&answer);
            shown(server, &given, table.as_deref().unwrap_or("no variables"))?
        }
        "inspect" => {
            let code = code(&given)?;
            let asked = SessionQuery::Inspect {
                code: code.to_owned(),
                cursor: given.cursor.unwrap_or_else(|| code.chars().count()),
                source: given.source,
            };
            let answer = ask(server, &given, asked).await?;
            shown(server, &given, list::inspected(&answer, code)?)?
        }
        "complete" => {
            let code = code(&given)?;
            let asked = SessionQuery::Complete {
                code: code.to_owned(),
                cursor: given.cursor.unwrap_or_else(|| code.chars().count()),
            };
            let answer = ask(server, &given, asked).await?;
            shown(server, &given, &list::completed(&answer))?
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

/// The sessions there are.
pub(in crate::mcp) async fn sessions(server: &Server) -> Result<Value, Failure> {
    let reach = server.kernels();
    let answer = reach
        .request(&HostRequest::ListSessions, Duration::ZERO)
        .await?;
    let kernels = answer.and_then(|mut answer| answer.get_mut("kernels").map(Value::take));
    Ok(kernels.unwrap_or_else(|| json!([])))
}

async fn of_sessions(server: &Server) -> Result<Reply, Failure> {
    let sessions = sessions(server).await?;
    let text = match list::table(&sessions) {
        // What a session is busy with are words of code.
        Some(table) => Delimiter::new()?.enclose("text", &table),
        None => "no sessions; `eval` or `run` makes one\n".to_owned(),
    };
    Ok(Reply::new(text, &json!({"kernels": sessions}))?)
}

async fn of_specs(server: &Server) -> Result<Reply, Failure> {
    let (engine, base) = (server.engine().clone(), server.roots().base()?);
    let found =
        tokio::task::spawn_blocking(move || list_kernel_specs(Some(&base), None, &engine)).await;
    let rows = found.map_err(std::io::Error::other)??;
    let text = Delimiter::new()?.enclose("text", &specs::table(&rows));
    Ok(Reply::new(text, &json!({"specs": rows}))?)
}

fn who(server: &Server, given: &Arguments) -> Result<SessionSelector, Failure> {
    let Some(name) = given.name.clone() else {
        let message = format!("`{}` needs the name of a session", given.action);
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("`kernels` list names them"));
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

async fn demand(server: &Server, wanted: &HostRequest, more: Duration) -> Result<Value, Failure> {
    let answer = server.kernels().request(wanted, more).await?;
    answer
        .map(without_end)
        .ok_or_else(Failure::host_not_running)
}

async fn ask(server: &Server, given: &Arguments, question: SessionQuery) -> Result<Value, Failure> {
    let patience = given.timeout.map_or(PATIENCE, |time| time.0);
    let session = who(server, given)?;
    let wanted = HostRequest::Query {
        session,
        question,
        patience,
    };
    let mut answer = demand(server, &wanted, patience).await?;
    Ok(answer["answer"].take())
}

fn done(given: &Arguments, words: &str, answer: &Value) -> Result<Reply, Failure> {
    let name = given.name.as_deref().unwrap_or_default();
    Ok(Reply::new(format!("session {name}: {words}\n"), answer)?)
}

fn shown(server: &Server, given: &Arguments, text: &str) -> Result<Reply, Failure> {
    let (text, missing) = truncate_middle(text, server.options().text_limit);
    let mut whole = Delimiter::new()?.enclose("text", &text);
    if missing > 0 {
        whole.push_str(&format!("{missing} characters are not shown\n"));
    }
    let document = json!({"session": given.name, "text": text});
    Ok(Reply::new(whole, &document)?)
}
