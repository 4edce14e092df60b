//! `stop`: interrupts, resets or ends a session, or cancels a run.

use cellwright_diagnostics::failure::Failure;
use rmcp::model::{CallToolResponse, JsonObject};
use serde::{Deserialize, Serialize};

use super::super::arguments::{self, Argument, ArgumentKind, SESSION};
use super::super::content::Reply;
use super::super::session_target::SessionTarget;
use super::super::wording;
use super::kernels::{add_deferred_notices, require_session};
use super::runs::{RUN, require_run};
use super::{Effect, ToolCall, ToolSpec};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "stop",
    title: "Stop code or a kernel",
    description: "\
Stop code of a Jupyter notebook or session. interrupt: the running cell of `session`, variables stay. cancel: the background `run`. \
reset: a fresh kernel, variables are lost. end: end `session`. Example: {\"action\": \"interrupt\", \"session\": \"a.ipynb\"}",
    search_hint: "jupyter kernel interrupt restart reset cancel kill",
    is_main: false,
    arguments: &[
        Argument::new(
            "action",
            ArgumentKind::OneOf(&["interrupt", "cancel", "reset", "end"]),
        )
        .required(),
        SESSION,
        RUN_ONLY,
    ],
    output_properties: r#"{"interrupted": {"type": "boolean"}, "ended": {"type": "boolean"}, "cancelled": {"type": "boolean"}}"#,
    effect: Effect::Modifies,
};

/// The id of a run; `name` means the session here.
const RUN_ONLY: Argument = RUN.or(&["run_id", "id"]);

#[derive(Deserialize)]
pub(super) struct Arguments {
    action: String,
    session: Option<String>,
    run: Option<String>,
}

pub(super) async fn stop(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("stop", SPEC.arguments, given)?;
    let (server, host) = (call.server, call.server.kernels());
    if given.action == "cancel" {
        let id = require_run(given.run.as_deref(), "cancel")?;
        server.check_run(id).await?;
        let result = host.cancel_run(id).await?;
        let result = result.ok_or_else(cellwright_host::host_not_running)?;
        let text = if result.cancelled {
            format!(
                "run {} is being cancelled; `runs` wait shows its result\n",
                result.run
            )
        } else {
            format!("run {} had already ended\n", result.run)
        };
        return Ok(call.respond(Reply::new(text, &result)?));
    }
    let session = require_session(given.session.as_deref(), &given.action)?;
    let target = SessionTarget::resolve(server, session).await?;
    let name = target.name.clone();
    let selector = target.selector(server)?;
    let mut reply = match given.action.as_str() {
        "interrupt" => {
            let result = host.interrupt(selector).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            let text = if result.interrupted {
                "interrupted; variables are kept"
            } else {
                "it runs nothing"
            };
            confirm(&name, text, &result)?
        }
        "reset" => {
            let result = host.reset(selector).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            confirm(&name, "it has a fresh kernel; variables are lost", &result)?
        }
        _ => {
            let result = host.end_session(selector, None).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            confirm(&name, "ended", &result)?
        }
    };
    add_deferred_notices(server, &name, &mut reply).await;
    server.subscriptions().check_now();
    Ok(call.respond(reply))
}

fn confirm(name: &str, text: &str, result: &impl Serialize) -> Result<Reply, Failure> {
    let name = wording::sanitize_name(name);
    Ok(Reply::new(format!("session {name}: {text}\n"), result)?)
}
