//! `runs`: lists background runs, waits for them and shows their output.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::reply::{RunInfo, RunTail};
use cellwright_host::run_stream::RunUpdate;
use rmcp::model::{CallToolResponse, JsonObject};
use serde::Deserialize;
use serde_json::json;

use super::super::arguments::{self, Argument, ArgumentKind, Seconds};
use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::followed_run::FollowedRun;
use super::super::progress::ProgressReporter;
use super::super::server::Server;
use super::super::wording;
use super::{Effect, ToolCall, ToolSpec, report};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "runs",
    title: "Runs in the background",
    description: "\
Follow background runs of Jupyter notebooks and code. list. wait: the result of `run`, or after `wait` seconds (default 50) its output so \
far. tail: output so far. `stop` cancels. Example: {\"action\": \"wait\", \"run\": \"r1\"}",
    search_hint: "jupyter run wait status progress background",
    is_main: false,
    arguments: &[
        Argument::new("action", ArgumentKind::OneOf(&["list", "wait", "tail"])).required(),
        RUN,
        Argument::new("wait", ArgumentKind::Seconds).or(&["timeout"]),
    ],
    output_properties: r#"{"status": {"type": "string"}, "runs": {"type": "array"}, "text": {"type": "string"}, "notices": {"type": "array"}}"#,
    effect: Effect::ReadOnly,
};

/// The id of a run.
pub(super) const RUN: Argument =
    Argument::new("run", ArgumentKind::Text).or(&["id", "run_id", "name"]);

#[derive(Deserialize)]
pub(super) struct Arguments {
    action: String,
    run: Option<String>,
    wait: Option<Seconds>,
}

pub(super) async fn runs(
    call: &ToolCall<'_>,
    given: JsonObject,
) -> Result<CallToolResponse, Failure> {
    let given: Arguments = arguments::parse("runs", SPEC.arguments, given)?;
    let host = call.server.kernels();
    let reply = match given.action.as_str() {
        "wait" => {
            let wait = match given.wait {
                Some(Seconds(time)) => Some(time),
                None => call.server.options().wait,
            };
            let id = require_run(given.run.as_deref(), "wait")?;
            call.server.check_run(id).await?;
            let run = FollowedRun::wait(host, id, wait).await?;
            return call.wait(run).await;
        }
        "tail" => {
            let id = require_run(given.run.as_deref(), "tail")?;
            call.server.check_run(id).await?;
            let tail = host.tail_run(id).await?;
            let tail = tail.ok_or_else(cellwright_host::host_not_running)?;
            show_tail(tail, call.server.options().text_limit)?
        }
        _ => list(&call.server.runs().await?)?,
    };
    Ok(call.respond(reply))
}

/// The run that an action needs.
pub(super) fn require_run<'a>(run: Option<&'a str>, action: &str) -> Result<&'a str, Failure> {
    run.ok_or_else(|| {
        let message = format!("`{action}` needs the id of a `run`, such as r1");
        Failure::new(Kind::BadArguments, message).hint("`runs` list shows the runs")
    })
}

impl Server {
    /// Returns an error if a run of the shared host is not one that the client may use.
    pub(super) async fn check_run(&self, id: &str) -> Result<(), Failure> {
        if self.kernels().is_in_process() || self.runs().await?.iter().any(|run| run.run == id) {
            return Ok(());
        }
        let message = format!(
            "There is no run `{}` in the roots",
            wording::sanitize_name(id)
        );
        Err(Failure::new(Kind::BadArguments, message).hint("`runs` list shows the runs"))
    }
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
                    break report::finished(self.server, &report, Vec::new()).await?;
                }
                RunUpdate::StillRunning(state) => {
                    break report::still_running(self.server, &state, &[]).await?;
                }
                // The call that started the run answers input requests.
                _ => {}
            }
        };
        Ok(self.respond(reply))
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
        let collected = if run.collected { ", collected" } else { "" };
        text.push_str(&format!(
            "{} {}{collected}, cell {} of {}, session {}: {}\n",
            run.run,
            run.status.name(),
            run.number,
            run.total,
            run.session.as_deref().unwrap_or("-"),
            wording::sanitize_name(&run.label)
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
    let mut text = format!(
        "run {}: {}, cell {} of {}\n",
        tail.run,
        tail.status.name(),
        tail.number,
        tail.total
    );
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
