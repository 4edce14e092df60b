//! `kernels`: live kernels and what is in them, kernels that can be started, and the state of the installation.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::protocol::SessionQuery;
use cellwright_operations::doctor::{DoctorRequest, check_installation};
use cellwright_operations::history::{Journal, history_table};
use cellwright_operations::kernel_specs::list_kernel_specs;
use cellwright_operations::kernels::{
    CompletionReport, InspectionReport, SessionList, VARIABLES_MAX, VariablesReport,
    sessions_table, specs_table, variables_table,
};
use cellwright_operations::table::count;
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments::{self, Argument, ArgumentKind, SESSION, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::server::Server;
use super::super::session_target::SessionTarget;
use super::super::wording;
use super::{Effect, ToolCall, ToolSpec};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "kernels",
    title: "Live kernels",
    description: "\
Inspect Jupyter notebook kernels (sessions). list: all. variables: names, types, shapes. inspect: documentation of the name in `code`. \
complete: completions of `code`. history: cells that ran. specs: kernels to start. doctor: check the installation. `session` is a name, \
a notebook's path, or @ID. Example: {\"action\": \"variables\", \"session\": \"a.ipynb\"}",
    search_hint: "jupyter kernel variables dataframe inspect sessions",
    is_main: false,
    arguments: &[
        Argument::new(
            "action",
            ArgumentKind::OneOf(&[
                "list",
                "specs",
                "variables",
                "inspect",
                "complete",
                "history",
                "doctor",
            ]),
        )
        .required(),
        SESSION,
        Argument::new("code", ArgumentKind::Text).or(&["query", "symbol", "expression"]),
        Argument::new("cursor", ArgumentKind::Integer).describe("default: the end"),
        Argument::new("source", ArgumentKind::Boolean).describe("with source"),
        Argument::new("timeout", ArgumentKind::Seconds).describe("for a busy kernel, default 10"),
    ],
    output_properties: r#"{"kernels": {"type": "array"}, "specs": {"type": "array"}, "text": {"type": "string"}, "notices": {"type": "array"}}"#,
    effect: Effect::ReadOnly,
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    action: String,
    session: Option<String>,
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
    let given: Arguments = arguments::parse("kernels", SPEC.arguments, given)?;
    let server = call.server;
    let reply = match given.action.as_str() {
        "list" => list_sessions(server).await?,
        "specs" => list_specs(server).await?,
        "doctor" => check(server).await?,
        _ => {
            let session = require_session(given.session.as_deref(), &given.action)?;
            let target = SessionTarget::resolve(server, session).await?;
            let name = target.name.clone();
            let mut reply = query(server, target, &given).await?;
            add_deferred_notices(server, &name, &mut reply).await;
            reply
        }
    };
    Ok(call.respond(reply))
}

/// The session that an action needs.
pub(super) fn require_session<'a>(
    session: Option<&'a str>,
    action: &str,
) -> Result<&'a str, Failure> {
    session.ok_or_else(|| {
        let message = format!("`{action}` needs a `session`");
        Failure::new(Kind::BadArguments, message).hint("`kernels` list shows the sessions")
    })
}

/// Adds the notices of cancelled calls on the session.
pub(super) async fn add_deferred_notices(server: &Server, session: &str, reply: &mut Reply) {
    let notices = server.in_flight_calls().take_deferred(session).await;
    if !notices.is_empty() {
        reply.text.insert_str(0, &wording::format_notices(&notices));
        reply.structured["notices"] = json!(notices);
    }
}

async fn query(
    server: &Server,
    target: SessionTarget,
    given: &Arguments,
) -> Result<Reply, Failure> {
    let session = target.name.clone();
    let selector = target.selector(server)?;
    let host = server.kernels();
    if given.action == "history" {
        let info = host.journal(selector).await?;
        let info = info.ok_or_else(cellwright_host::host_not_running)?;
        let mut journal = Journal::open(info)?;
        let cells = journal.read_cells()?;
        let notices = journal.lost_notice();
        let table = history_table(&cells);
        let mut reply = show(
            server,
            &session,
            &table.map_or_else(
                || "nothing ran so far".to_owned(),
                |table| table.to_string(),
            ),
        )?;
        let notices = wording::format_notices(notices.as_slice());
        reply.text.insert_str(0, &notices);
        return Ok(reply);
    }
    let code = || {
        given.code.as_deref().ok_or_else(|| {
            let message = format!("`{}` needs `code`", given.action);
            Failure::new(Kind::BadArguments, message)
        })
    };
    let cursor = |code: &str| given.cursor.unwrap_or_else(|| code.chars().count());
    let query = match given.action.as_str() {
        "inspect" => SessionQuery::Inspect {
            code: code()?.to_owned(),
            cursor: cursor(code()?),
            source: given.source,
        },
        "complete" => SessionQuery::Complete {
            code: code()?.to_owned(),
            cursor: cursor(code()?),
        },
        _ => SessionQuery::Variables {
            limit: VARIABLES_MAX,
        },
    };
    let timeout = given.timeout.map_or(QUERY_TIMEOUT, |time| time.0);
    let reply = host.query(selector, query, timeout).await?;
    let reply: Value = reply.ok_or_else(cellwright_host::host_not_running)?;
    let text = match given.action.as_str() {
        "inspect" => InspectionReport::new(&session, &reply).into_text(code()?)?,
        "complete" => CompletionReport::new(&session, &reply).to_lines(),
        _ => {
            let report = VariablesReport::new(&session, &reply);
            variables_table(&report.variables)
                .map_or_else(|| "no variables".to_owned(), |table| table.to_string())
        }
    };
    show(server, &session, &text)
}

async fn list_sessions(server: &Server) -> Result<Reply, Failure> {
    let sessions = server.sessions().await?;
    let text = match sessions_table(&sessions) {
        // Labels are code of the client.
        Some(table) => Delimiter::new()?.enclose("text", &table.to_string()),
        None => "no sessions; `eval` or `run` starts one\n".to_owned(),
    };
    let list = SessionList {
        kernels: sessions,
        notices: Vec::new(),
    };
    Ok(Reply::new(text, &list)?)
}

async fn list_specs(server: &Server) -> Result<Reply, Failure> {
    let (engine, base) = (server.engine().clone(), server.roots().base()?);
    let found =
        tokio::task::spawn_blocking(move || list_kernel_specs(Some(&base), None, &engine)).await;
    let list = found.map_err(std::io::Error::other)??;
    let table = Delimiter::new()?.enclose("text", &specs_table(&list.specs).to_string());
    let text = format!("{}{table}", wording::format_notices(&list.notices));
    Ok(Reply::new(
        text,
        &json!({"specs": list.specs, "notices": list.notices}),
    )?)
}

/// Checks interpreter, runner, kernels and directories.
async fn check(server: &Server) -> Result<Reply, Failure> {
    let (engine, base) = (server.engine().clone(), server.roots().base()?);
    let checked = tokio::task::spawn_blocking(move || {
        let request = DoctorRequest {
            cwd: Some(base),
            python: None,
            gateway: None,
        };
        check_installation(&request, &engine)
    });
    let report = checked.await.map_err(std::io::Error::other)??;
    let mut lines = String::new();
    for finding in &report.findings {
        lines.push_str(&format!(
            "{}: {}: {}\n",
            finding.severity.name(),
            finding.code,
            finding.text
        ));
        if let Some(next) = &finding.next {
            lines.push_str(&format!("  next: {next}\n"));
        }
    }
    let state = if report.healthy {
        "code can run"
    } else {
        "code cannot run"
    };
    let text = format!("{state}\n{}", Delimiter::new()?.enclose("text", &lines));
    Ok(Reply::new(text, &report)?)
}

/// Saves the cells that ran in a session as a notebook.
pub(super) fn export(server: &Server, session: Option<&str>, path: &str) -> Result<Reply, Failure> {
    let session = require_session(session, "export")?;
    let place = server.roots().resolve_file(path)?;
    if place.path().symlink_metadata().is_ok() {
        let path = wording::sanitize(&place.display_path().display().to_string());
        let failure = Failure::new(Kind::BadFile, format!("{path} exists"));
        return Err(failure.hint("nothing was written; name a new file"));
    }
    let runtime = tokio::runtime::Handle::current();
    let info = runtime.block_on(async {
        let target = SessionTarget::resolve(server, session).await?;
        server.kernels().journal(target.selector(server)?).await
    })?;
    let journal = Journal::open(info.ok_or_else(cellwright_host::host_not_running)?)?;
    let notices = wording::format_notices(journal.lost_notice().as_slice());
    let report = journal.export(place.file(), false)?;
    let text = format!(
        "{notices}wrote {} of session {} to {}\n",
        count(report.total_cells, "cell"),
        wording::sanitize_name(session),
        wording::sanitize(&report.path)
    );
    Ok(Reply::new(text, &report)?)
}

fn show(server: &Server, session: &str, text: &str) -> Result<Reply, Failure> {
    let (text, missing) = truncate_middle(text, server.options().text_limit);
    let mut whole = format!("session {}\n", wording::sanitize_name(session));
    whole.push_str(&Delimiter::new()?.enclose("text", &text));
    if missing > 0 {
        whole.push_str(&format!("{missing} characters are not shown\n"));
    }
    let document = json!({"session": session, "text": text});
    Ok(Reply::new(whole, &document)?)
}
