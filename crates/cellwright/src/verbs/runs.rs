//! `runs`: lists, collects and cancels background runs.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::ReportDetail;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::WaitOptions;
use cellwright_operations::kernels::RunList;
use cellwright_operations::seconds::parse_seconds;
use cellwright_operations::table::{Table, format_seconds};
use cellwright_output::{Limits, Stream};
use clap::{Args, Subcommand};

use crate::console::Console;
use crate::document::StillRunning;
use crate::hosted_execution::{FollowRequest, HostedResult, print_done_event, show_result, watch};
use crate::verbs::report_args::{ReportArgs, check_events};
use crate::viewer::live::{LiveWriter, OutputExtent};
use crate::viewer::{ViewMode, ViewOptions, events, exit_after};

/// Exit code of `runs wait` if the time is up and the run continues.
const EXIT_TIMED_OUT: u8 = 124;

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

Examples:
  cellwright runs wait r1 --wait 60
  cellwright runs wait r1 --events")]
    Wait {
        /// Id of the run, as in `r1`
        run: String,
        /// Wait at most SECONDS
        #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
        wait: Option<Duration>,
        /// Print one JSON document per event from now on, each on one line
        #[arg(long)]
        events: bool,
        #[command(flatten)]
        report: ReportArgs,
    },
    /// Print the output of the running cell so far
    #[command(after_help = "\
Examples:
  cellwright runs tail r1
  cellwright runs tail r1 --follow
  cellwright runs tail r1 --events")]
    Tail {
        /// Id of the run, as in `r1`
        run: String,
        /// Print new output until the run ends
        #[arg(long, short)]
        follow: bool,
        /// Print one JSON document per event from now on until the run ends, each on one line
        #[arg(long)]
        events: bool,
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
pub(crate) fn runs(args: &RunsArgs, console: &Console) -> Result<u8, Failure> {
    match &args.action {
        Action::List => list(console),
        Action::Wait {
            run,
            wait,
            events: true,
            report,
        } => {
            let options = WaitOptions {
                wait: *wait,
                ..WaitOptions::default()
            };
            print_events(run, options, report, console)
        }
        Action::Wait {
            run,
            wait,
            events: false,
            report,
        } => wait_for(run, *wait, report.detail(console, false)?, console),
        Action::Tail {
            run, events: true, ..
        } => {
            let options = WaitOptions {
                keep: true,
                ..WaitOptions::default()
            };
            let printed = print_events(run, options, &ReportArgs::default(), console);
            printed.map(|_| 0)
        }
        Action::Tail {
            run,
            follow,
            events: false,
        } => tail(run, *follow, console),
        Action::Cancel { run } => cancel(run, console),
    }
}

fn list(console: &Console) -> Result<u8, Failure> {
    let host = KernelHost::Shared;
    let runs = host.block_on(host.list_runs())?.unwrap_or_default();
    if console.json {
        console.print_json(&RunList {
            runs,
            notices: Vec::new(),
        })?;
        return Ok(0);
    }
    let head = [
        "RUN", "STATUS", "SESSION", "OWNER", "CELL", "RUNNING", "WHAT",
    ];
    let mut table = Table::new(head)
        .clip("WHAT")
        .hide_first(&["OWNER", "CELL", "SESSION"]);
    for run in runs {
        let none = || "-".to_owned();
        table.push([
            run.run,
            run.status.name().to_owned(),
            run.session.unwrap_or_else(none),
            run.owner,
            format!("{}/{}", run.number, run.total),
            run.elapsed_ms.map_or_else(none, |elapsed| {
                format_seconds(Duration::from_secs_f64(elapsed / 1e3).as_secs())
            }),
            run.label,
        ]);
    }
    if table.is_empty() {
        console.note("no runs");
        return Ok(0);
    }
    console.print_table(&table)?;
    Ok(0)
}

/// How much of the output is shown. The host has bounded it already.
fn extent(console: &Console) -> OutputExtent {
    if console.json {
        OutputExtent::Nothing
    } else {
        OutputExtent::Full
    }
}

fn wait_for(
    run: &str,
    wait: Option<Duration>,
    detail: ReportDetail,
    console: &Console,
) -> Result<u8, Failure> {
    let request = FollowRequest::Wait {
        run,
        options: WaitOptions {
            wait,
            outputs: console.json && detail == ReportDetail::Full,
            ..WaitOptions::default()
        },
    };
    match watch(request, console, extent(console), &Limits::default())? {
        HostedResult::StillRunning(state) => {
            if console.json {
                console.print_json(&StillRunning {
                    state,
                    notices: &[],
                })?;
            } else {
                console.print_notices(&[UserNotice::new(
                    NoticeKind::StillRunning,
                    format!("run {run} is still running"),
                )]);
            }
            Ok(EXIT_TIMED_OUT)
        }
        HostedResult::Finished {
            report,
            stdout_error,
        } => show_result(
            &report,
            console,
            (OutputExtent::Bounded, detail),
            &[],
            stdout_error.as_ref(),
        ),
        HostedResult::Tail(_) => Ok(0),
    }
}

/// Prints the events of a run from now on. Returns the exit code.
fn print_events(
    run: &str,
    options: WaitOptions,
    report: &ReportArgs,
    console: &Console,
) -> Result<u8, Failure> {
    check_events(true, console)?;
    let printed = follow_events(run, options, report.detail(console, true)?, console);
    if let Err(failure) = &printed {
        events::print_failure(console, failure);
    }
    printed
}

fn follow_events(
    run: &str,
    options: WaitOptions,
    detail: ReportDetail,
    console: &Console,
) -> Result<u8, Failure> {
    let options = WaitOptions {
        outputs: detail == ReportDetail::Full,
        follow: true,
        ..options
    };
    let view = ViewOptions {
        extent: OutputExtent::Full,
        mode: ViewMode::Events,
        detail,
    };
    let request = FollowRequest::Wait { run, options };
    match watch(request, console, view, &Limits::default())? {
        HostedResult::StillRunning(state) => {
            let notices = &[];
            let printed = events::print_still_running(console, StillRunning { state, notices });
            exit_after(printed, EXIT_TIMED_OUT)
        }
        HostedResult::Finished { report, .. } => print_done_event(&report, console, &[], detail),
        HostedResult::Tail(_) => Ok(0),
    }
}

fn tail(run: &str, follow: bool, console: &Console) -> Result<u8, Failure> {
    if follow {
        if console.json {
            let message = "`--follow` and `--json` cannot be combined";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(hint![command("runs wait RUN --json"), " waits for the end"]));
        }
        let request = FollowRequest::Follow { run };
        let followed = watch(request, console, extent(console), &Limits::default())?;
        if let HostedResult::Tail(tail) = followed {
            console.note(&format!("run {run}: {}", tail.status.name()));
        }
        return Ok(0);
    }
    let host = KernelHost::Shared;
    let tail = host.block_on(host.tail_run(run))?;
    let tail = tail.ok_or_else(cellwright_host::host_not_running)?;
    if console.json {
        console.print_json(&tail)?;
        return Ok(0);
    }
    if let Some(text) = &tail.text {
        let mut writer = LiveWriter::new(console, OutputExtent::Full, &Limits::default());
        writer.write_display(Stream::Stdout, text);
        writer.finish();
    }
    console.note(&format!("run {run}: {}", tail.status.name()));
    Ok(0)
}

fn cancel(run: &str, console: &Console) -> Result<u8, Failure> {
    let host = KernelHost::Shared;
    let result = host.block_on(host.cancel_run(run))?;
    let result = result.ok_or_else(cellwright_host::host_not_running)?;
    if console.json {
        console.print_json(&result)?;
    } else if result.cancelled {
        console.note(&format!(
            "run {run} is being cancelled; `cellwright runs wait {run}` shows its result"
        ));
    } else {
        console.note(&format!("run {run} had already ended"));
    }
    Ok(0)
}
