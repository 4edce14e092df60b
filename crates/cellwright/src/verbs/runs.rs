//! `runs`: lists, collects and cancels background runs.

use std::time::Duration;

use cellwright_output::Limits;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::console::Console;
use crate::failure::{Failure, Kind, command, hint};
use crate::host::client;
use crate::host::protocol::HostRequest;
use crate::hosted_execution::{self, Attachment, HostedResult, show_result, without_end};
use crate::notice::{NoticeKind, UserNotice};
use crate::operations::seconds::parse_seconds;
use crate::table::{align_columns, format_seconds};
use crate::viewer::live::OutputExtent;

/// Exit code of `runs wait` if the time is up and the run continues.
const TIME_IS_UP: u8 = 124;

/// Arguments of `runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
`--background` of `cellwright eval` and `cellwright run` starts a run in the background; `--wait SECONDS` leaves \
it there after that time. Output and result are kept until collected, for at most one day.

Examples:
  run=$(cellwright eval --session work --background --timeout 0 'train()')
  cellwright runs tail $run
  cellwright runs wait $run --wait 60
  cellwright runs cancel $run")]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the runs
    #[command(after_help = "\
Example:
  cellwright runs list --json")]
    List,
    /// Wait for the end of a run and print its output and result, as `eval` does
    #[command(after_help = "\
Waiting does not affect the run: it continues if the time is up or this command is stopped.

Exit codes: those of `eval`; 124 also if the time is up and the run continues.

Example:
  cellwright runs wait r1 --wait 60")]
    Wait {
        /// Id of the run, as in `r1`
        run: String,
        /// Wait at most SECONDS
        #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
        wait: Option<Duration>,
    },
    /// Print the output of the running cell so far
    #[command(after_help = "\
Examples:
  cellwright runs tail r1
  cellwright runs tail r1 --follow")]
    Tail {
        /// Id of the run, as in `r1`
        run: String,
        /// Print new output until the run ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Cancel a run: interrupt the running cell and skip the others
    #[command(after_help = "\
If the cell does not react within five seconds, its kernel is killed; `cellwright runs wait` reports which happened.

Example:
  cellwright runs cancel r1")]
    Cancel {
        /// Id of the run, as in `r1`
        run: String,
    },
}

/// Carries out an action and prints its result. Returns the exit code.
pub(crate) fn runs(args: &RunsArgs, screen: &Console) -> Result<u8, Failure> {
    match &args.action {
        Action::List => list(screen),
        Action::Wait { run, wait } => wait_for(run, *wait, screen),
        Action::Tail { run, follow } => tail(run, *follow, screen),
        Action::Cancel { run } => cancel(run, screen),
    }
}

fn list(screen: &Console) -> Result<u8, Failure> {
    let answer = client::request_blocking(&HostRequest::ListRuns, Duration::ZERO)?;
    let runs = answer.and_then(|mut answer| answer.get_mut("runs").map(Value::take));
    let runs = runs.unwrap_or_else(|| Value::Array(Vec::new()));
    if screen.json {
        screen.print_json(&runs)?;
        return Ok(0);
    }
    let head = [
        "RUN", "STATUS", "SESSION", "OWNER", "CELL", "RUNNING", "WHAT",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for run in runs.as_array().into_iter().flatten() {
        let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| run[name].as_u64().unwrap_or_default();
        rows.push(vec![
            text("run"),
            text("status"),
            match text("session") {
                session if session.is_empty() => "-".to_owned(),
                session => session,
            },
            text("owner"),
            format!("{}/{}", number("cell") + 1, number("cells")),
            match run["elapsed_s"].as_f64() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole seconds"
                )]
                Some(seconds) => format_seconds(seconds as u64),
                None => "-".to_owned(),
            },
            text("label"),
        ]);
    }
    if rows.len() == 1 {
        screen.note("no runs");
        return Ok(0);
    }
    screen.print(&align_columns(&rows))?;
    Ok(0)
}

fn wait_for(run: &str, wait: Option<Duration>, screen: &Console) -> Result<u8, Failure> {
    let wanted = HostRequest::WaitRun {
        run: run.to_owned(),
        wait,
        document: screen.json,
    };
    // What is told is bounded already.
    let extent = if screen.json {
        OutputExtent::Nothing
    } else {
        OutputExtent::Full
    };
    match hosted_execution::watch(
        &wanted,
        screen,
        extent,
        &Limits::default(),
        Attachment::Observer,
    )? {
        HostedResult::StillRunning(known) => {
            if screen.json {
                screen.print_json(&without_end(known))?;
            } else {
                screen.print_notices(&[UserNotice::new(
                    NoticeKind::StillRunning,
                    format!("run {run} goes on"),
                )]);
            }
            Ok(TIME_IS_UP)
        }
        ended @ HostedResult::Finished { .. } => {
            show_result(ended, screen, OutputExtent::Bounded, Vec::new())
        }
    }
}

fn tail(run: &str, follow: bool, screen: &Console) -> Result<u8, Failure> {
    if follow && screen.json {
        let message = "`--follow` and `--json` cannot be combined";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint(hint![command("runs wait RUN --json"), " waits for the end",]));
    }
    let wanted = HostRequest::TailRun {
        run: run.to_owned(),
        follow,
        document: screen.json,
    };
    let limits = Limits::default();
    let extent = if screen.json {
        OutputExtent::Nothing
    } else {
        OutputExtent::Full
    };
    if let HostedResult::StillRunning(known) =
        hosted_execution::watch(&wanted, screen, extent, &limits, Attachment::Observer)?
    {
        if screen.json {
            screen.print_json(&without_end(known))?;
        } else {
            let status = known["status"].as_str().unwrap_or_default();
            screen.note(&format!("run {run}: {status}"));
        }
    }
    Ok(0)
}

fn cancel(run: &str, screen: &Console) -> Result<u8, Failure> {
    let wanted = HostRequest::CancelRun {
        run: run.to_owned(),
    };
    let Some(answer) = client::request_blocking(&wanted, Duration::ZERO)? else {
        return Err(Failure::host_not_running());
    };
    if screen.json {
        screen.print_json(&without_end(answer))?;
    } else if answer["cancelled"] == true {
        screen.note(&format!(
            "run {run} was asked to stop; `cellwright runs wait {run}` tells its end"
        ));
    } else {
        screen.note(&format!("run {run} had ended before"));
    }
    Ok(0)
}
