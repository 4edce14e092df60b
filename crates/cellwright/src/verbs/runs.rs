//! `runs`: lists, collects and cancels background runs.

use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::ReportDetail;
use cellwright_host::kernel_host::KernelHost;
use cellwright_operations::kernels::RunList;
use cellwright_operations::seconds::parse_seconds;
use cellwright_operations::table::{Table, format_seconds};
use cellwright_output::{Limits, Stream};
use clap::{Args, Subcommand};

use crate::console::Console;
use crate::hosted_execution::{FollowRequest, HostedResult, StillRunning, show_result, watch};
use crate::verbs::report_args::ReportArgs;
use crate::viewer::live::{LiveWriter, OutputExtent};

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

Example:
  cellwright runs wait r1 --wait 60")]
    Wait {
        /// Id of the run, as in `r1`
        run: String,
        /// Wait at most SECONDS
        #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
        wait: Option<Duration>,
        #[command(flatten)]
        report: ReportArgs,
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
pub(crate) fn runs(args: &RunsArgs, console: &Console) -> Result<u8, Failure> {
    match &args.action {
        Action::List => list(console),
        Action::Wait { run, wait, report } => {
            wait_for(run, *wait, report.detail(console, false)?, console)
        }
        Action::Tail { run, follow } => tail(run, *follow, console),
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
        wait,
        outputs: console.json && detail == ReportDetail::Full,
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
