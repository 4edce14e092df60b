//! `runs`: manages background runs.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::reply::{RunInfo, RunTail};
use cellwright_host::run_stream::RunUpdate;
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::json;

use super::super::arguments::{self, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::followed_run::FollowedRun;
use super::super::progress::ProgressReporter;
use super::{Effect, ToolCall, ToolSpec, report};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "runs",
    title: "Runs in the background",
    description: "\
Manage background runs (`background`, or a long call). list: all runs. wait: the result of `run`, as its call would \
have returned it, or after `wait` seconds (default 50) that it still runs. tail: the output of its cell so far. \
cancel: interrupt it; variables stay if the code reacts within 5 s. Example: {\"action\": \"wait\", \"run\": \"r1\"}",
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
    let host = call.server.kernels();
    let reply = match given.action.as_str() {
        "list" => list(&host.list_runs().await?.unwrap_or_default())?,
        "wait" => {
            let wait = match given.wait {
                Some(Seconds(time)) => Some(time),
                None => call.server.options().wait,
            };
            let run = FollowedRun::wait(host, &run()?, wait).await?;
            return call.wait(run).await;
        }
        "tail" => {
            let tail = host.tail_run(&run()?).await?;
            let tail = tail.ok_or_else(cellwright_host::host_not_running)?;
            show_tail(tail, call.server.options().text_limit)?
        }
        "cancel" => {
            let result = host.cancel_run(&run()?).await?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            let text = if result.cancelled {
                format!(
                    "run {} is being cancelled; `runs` wait shows its result\n",
                    result.run
                )
            } else {
                format!("run {} had already ended\n", result.run)
            };
            Reply::new(text, &result)?
        }
        other => {
            let message = format!("There is no action `{other}`");
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint("the actions are list, wait, tail and cancel"));
        }
    };
    Ok(reply.into_result().into())
}

impl ToolCall<'_> {
    /// Waits for a run. Cancelling the call does not cancel the run.
    async fn wait(&self, run: FollowedRun) -> Result<CallToolResponse, Failure> {
        tokio::select! {
            biased;
            response = self.follow_uncancelled(run) => response,
            () = self.context.ct.cancelled() => {
                Err(Failure::new(Kind::Cancelled, "The wait was cancelled; the run continues"))
            }
        }
    }

    async fn follow_uncancelled(&self, mut run: FollowedRun) -> Result<CallToolResponse, Failure> {
        let never = tokio_util::sync::CancellationToken::new();
        let mut progress = ProgressReporter::from_context(self.context);
        let reply = loop {
            match run.next(&never, &mut progress).await? {
                RunUpdate::Finished(report) => {
                    break report::finished(self.server, &report, Vec::new())?;
                }
                RunUpdate::StillRunning(state) => break report::still_running(&state, &[])?,
                // The call that started the run answers input requests.
                _ => {}
            }
        };
        Ok(reply.into_result().into())
    }
}

/// Number of listed runs, the newest.
const LISTED_MAX: usize = 50;

fn list(runs: &[RunInfo]) -> Result<Reply, Failure> {
    let mut text = String::new();
    let newest = &runs[runs.len().saturating_sub(LISTED_MAX)..];
    if newest.len() < runs.len() {
        text.push_str(&format!("the newest {} of {}\n", newest.len(), runs.len()));
    }
    for run in newest {
        text.push_str(&format!(
            "{} {} session {}: {}\n",
            run.run,
            run.status.name(),
            run.session.as_deref().unwrap_or("-"),
            run.label
        ));
    }
    let document = json!({"runs": newest, "total": runs.len()});
    if text.is_empty() {
        return Ok(Reply::new("no runs\n", &document)?);
    }
    // Labels are code of the client.
    let text = Delimiter::new()?.enclose("text", &text);
    Ok(Reply::new(text, &document)?)
}

fn show_tail(mut tail: RunTail, text_max: usize) -> Result<Reply, Failure> {
    let (shown, missing) = truncate_middle(tail.text.as_deref().unwrap_or_default(), text_max);
    let mut text = format!("run {}: {}\n", tail.run, tail.status.name());
    if shown.is_empty() {
        text.push_str("no output so far\n");
    } else {
        text.push_str(&Delimiter::new()?.enclose("output", &shown));
    }
    if missing > 0 {
        text.push_str(&format!("{missing} characters are not shown\n"));
    }
    tail.text = Some(shown);
    Ok(Reply::new(text, &tail)?)
}
