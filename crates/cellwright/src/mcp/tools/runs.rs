//! `runs`: what goes on in the background.

use std::time::Duration;

use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments::{self, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::conversation::{Conversation, Said};
use super::super::progress::ProgressViewer;
use super::{Effect, ToolCall, ToolSpec, report};
use crate::failure::{Failure, Kind};
use crate::host::protocol::HostRequest;
use crate::hosted_execution::without_end;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "runs",
    title: "Runs in the background",
    description: "\
Look after code that goes on after its call (`background`, or it took long). list: all runs. wait: the end of `run`, as \
its call would have told it, or after `wait` seconds (default 50) that it still runs. tail: what its cell has printed \
so far. cancel: interrupt it; variables stay if it reacts within 5 s. Example: {\"action\": \"wait\", \"run\": \"r1\"}",
    input_properties: r#"{"action": {"enum": ["list", "wait", "tail", "cancel"]}, "run": {"type": "string"}, "wait": {"type": "number"}}"#,
    required: &["action"],
    output_properties: r#"{"status": {"type": "string"}, "runs": {"type": "array"}, "text": {"type": "string"}, "cancelled": {"type": "boolean"}, "notices": {"type": "array"}}"#,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    action: String,
    run: Option<String>,
    wait: Option<Seconds>,
}

pub(super) async fn runs(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("runs", given)?;
    let run = || {
        given.run.clone().ok_or_else(|| {
            let message = format!("`{}` needs the name of a run", given.action);
            Failure::new(Kind::BadArguments, message).hint("`runs` list names them")
        })
    };
    let reach = call.server.kernels();
    let ask = async |wanted: HostRequest| {
        let answer = reach.request(&wanted, Duration::ZERO).await?;
        answer
            .map(without_end)
            .ok_or_else(Failure::host_not_running)
    };
    let reply = match given.action.as_str() {
        "list" => {
            let answer = reach
                .request(&HostRequest::ListRuns, Duration::ZERO)
                .await?;
            list(&answer.map_or_else(|| json!({"runs": []}), without_end))?
        }
        "wait" => {
            let wait = match given.wait {
                Some(Seconds(time)) => Some(time),
                None => call.server.options().wait,
            };
            let attended = Conversation::attend(reach, &run()?, wait).await?;
            return call.attend(attended).await;
        }
        "tail" => {
            let wanted = HostRequest::TailRun {
                run: run()?,
                follow: false,
                document: true,
            };
            tail(ask(wanted).await?, call.server.options().text_limit)?
        }
        "cancel" => {
            let answer = ask(HostRequest::CancelRun { run: run()? }).await?;
            let name = answer["run"].as_str().unwrap_or_default();
            let text = if answer["cancelled"] == true {
                format!("run {name} was asked to stop; `runs` wait tells its end\n")
            } else {
                format!("run {name} had ended before\n")
            };
            Reply::new(text, &answer)?
        }
        other => {
            let message = format!("There is no action `{other}`");
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint("there are list, wait, tail and cancel"));
        }
    };
    Ok(reply.into_result().into())
}

impl ToolCall<'_> {
    /// Waits for a run. Whoever stops waiting does not stop the run.
    async fn attend(&self, conversation: Conversation) -> Result<CallToolResponse, Failure> {
        tokio::select! {
            biased;
            answer = self.follow_unstopped(conversation) => answer,
            () = self.context.ct.cancelled() => {
                Err(Failure::new(Kind::Cancelled, "Nobody waits for the run any more; it goes on"))
            }
        }
    }

    async fn follow_unstopped(
        &self,
        mut conversation: Conversation,
    ) -> Result<CallToolResponse, Failure> {
        let never = tokio_util::sync::CancellationToken::new();
        let mut progress = ProgressViewer::of(self.context);
        let reply = match conversation.listen(&never, &mut progress).await? {
            Said::Ended { verdict, document } => {
                report::ended(self.server, &verdict, document, Vec::new())?
            }
            Said::GoesOn(known) => report::goes_on(&known, &[])?,
            Said::Asks(_) => {
                return Err(Failure::new(Kind::Kernel, "The run asks for input"));
            }
        };
        Ok(reply.into_result().into())
    }
}

/// Runs that are listed, the newest.
const LISTED: usize = 50;

fn list(document: &Value) -> Result<Reply, Failure> {
    let mut text = String::new();
    let runs = document["runs"].as_array().map_or(&[][..], Vec::as_slice);
    let newest = &runs[runs.len().saturating_sub(LISTED)..];
    if newest.len() < runs.len() {
        text.push_str(&format!("the newest {} of {}\n", newest.len(), runs.len()));
    }
    let document = &json!({"runs": newest, "total": runs.len()});
    for run in newest {
        let word = |name: &str| run[name].as_str().unwrap_or("-");
        text.push_str(&format!(
            "{} {} session {}: {}\n",
            word("run"),
            word("status"),
            word("session"),
            word("label")
        ));
    }
    if text.is_empty() {
        return Ok(Reply::new("no runs\n", document)?);
    }
    // What a run is called are its first words.
    Ok(Reply::new(
        Delimiter::new()?.enclose("text", &text),
        document,
    )?)
}

fn tail(mut document: Value, most: usize) -> Result<Reply, Failure> {
    let said = document["text"].as_str().unwrap_or_default();
    let (shown, missing) = truncate_middle(said, most);
    let name = document["run"].as_str().unwrap_or_default();
    let status = document["status"].as_str().unwrap_or_default();
    let mut text = format!("run {name}: {status}\n");
    if shown.is_empty() {
        text.push_str("nothing printed so far\n");
    } else {
        text.push_str(&Delimiter::new()?.enclose("output", &shown));
    }
    if missing > 0 {
        text.push_str(&format!("{missing} characters are not shown\n"));
    }
    document["text"] = json!(shown);
    Ok(Reply::new(text, &document)?)
}
