//! Runs an execution on a session of the host, follows background runs, and shows the results.

use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::runtime::runtime;
use cellwright_engine::settings::Settings;
use cellwright_engine::signals::watch_signals;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::feed::{FeedItem, OutputFeed, Overflow};
use cellwright_execution::{ExecutionReport, ReportDetail, ReportDocument};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::{ExecuteParams, WaitMode, WaitOptions};
use cellwright_host::reply::{RunState, RunTail};
use cellwright_host::run_stream::{RunStream, RunUpdate};
use cellwright_kernel::{StopHandle, StopSignal};
use cellwright_output::Limits;

use crate::console::Console;
use crate::document::StillRunning;
use crate::viewer::live::{OutputExtent, StdoutError};
use crate::viewer::{self, OnClosedPipe, ViewMode, ViewOptions, events, exit_after, show_summary};

/// How following a run ended.
pub(crate) enum HostedResult {
    Finished {
        report: Box<ExecutionReport>,
        /// Why the output could not be shown completely.
        stdout_error: Option<StdoutError>,
    },
    StillRunning(RunState),
    Tail(RunTail),
}

/// The run that a command follows.
pub(crate) enum FollowRequest<'a> {
    /// A new execution. Ctrl-C cancels it.
    Execute {
        params: Box<ExecuteParams>,
        /// Time after which a host without work ends.
        idle_exit: Option<Duration>,
    },
    /// The end of a background run. Ctrl-C only ends the command.
    Wait { run: &'a str, options: WaitOptions },
    /// The output of a background run from now on. Ctrl-C only ends the command.
    Follow { run: &'a str },
}

/// Follows a run and shows its output.
pub(crate) fn watch(
    request: FollowRequest<'_>,
    console: &Console,
    view: impl Into<ViewOptions>,
    limits: &Limits,
) -> Result<HostedResult, Failure> {
    let view = view.into();
    // The last event and the JSON document contain all notices.
    let shows_notices =
        view.extent != OutputExtent::Nothing && !matches!(view.mode, ViewMode::Events);
    let runtime = runtime()?;
    let (stop_handle, stop) = StopSignal::new();
    let feed = OutputFeed::new(Overflow::Spill);
    let on_closed_pipe = match &request {
        FollowRequest::Execute { .. } => OnClosedPipe::Continue,
        _ => OnClosedPipe::EndCommand(stop_handle.clone()),
    };
    let (end, stdout_error) = std::thread::scope(|scope| {
        let viewer = (view.extent != OutputExtent::Nothing).then(|| {
            let (feed, limits) = (feed.clone(), limits.clone());
            viewer::spawn_viewer(scope, feed, console, view, limits, on_closed_pipe)
        });
        let end = runtime.block_on(follow(
            request,
            &feed,
            (console, shows_notices),
            &stop_handle,
            &stop,
        ));
        feed.close();
        // A viewer that panicked has shown what it could.
        let stdout_error = viewer.and_then(|viewer| viewer.join().ok().flatten());
        (end, stdout_error)
    });
    Ok(match end? {
        RunEnd::Finished(report) => HostedResult::Finished {
            report,
            stdout_error,
        },
        RunEnd::StillRunning(state) => HostedResult::StillRunning(state),
        RunEnd::Tail(tail) => HostedResult::Tail(tail),
    })
}

enum RunEnd {
    Finished(Box<ExecutionReport>),
    StillRunning(RunState),
    Tail(RunTail),
}

async fn follow(
    request: FollowRequest<'_>,
    feed: &OutputFeed,
    (console, shows_notices): (&Console, bool),
    stop_handle: &StopHandle,
    stop: &StopSignal,
) -> Result<RunEnd, Failure> {
    let mut signals = tokio::task::JoinSet::new();
    let host = KernelHost::Shared;
    let mut texts_in_report = false;
    let mut printed: Vec<UserNotice> = Vec::new();
    let mut stream = match request {
        FollowRequest::Execute { params, idle_exit } => {
            signals.spawn(watch_signals(stop_handle.clone())?);
            tokio::select! {
                biased;
                stream = RunStream::execute(&host, *params, idle_exit) => stream?,
                // The host may take time to answer or to start. Without the request, nothing runs.
                reason = stop.requested() => return Err(Failure::from_stop(reason, None, None)),
            }
        }
        FollowRequest::Wait { run, options } => {
            texts_in_report = !options.follow;
            RunStream::wait(&host, run, options).await?
        }
        FollowRequest::Follow { run } => RunStream::tail(&host, run, true).await?,
    };
    loop {
        match stream.next(stop, None).await? {
            RunUpdate::Item(item) => feed.push(item),
            RunUpdate::Notices(notices) if shows_notices => {
                console.print_notices(&notices);
                printed.extend(notices);
            }
            RunUpdate::Finished(mut report) => {
                report.notices.retain(|notice| !printed.contains(notice));
                if texts_in_report {
                    for cell in &report.cells {
                        feed.push(FeedItem::CellStart);
                        feed.push(FeedItem::plain_text(cell.text().to_owned()));
                    }
                }
                return Ok(RunEnd::Finished(report));
            }
            RunUpdate::StillRunning(state) => return Ok(RunEnd::StillRunning(state)),
            RunUpdate::Tail(tail) => return Ok(RunEnd::Tail(tail)),
            // A command answers no input requests.
            RunUpdate::InputRequested(_) => stream.send_input(None).await?,
            RunUpdate::Notices(_) | RunUpdate::Tick => {}
        }
    }
}

/// Runs code on the host and shows the result. `notices` were printed already, except in JSON. Returns the exit code.
pub(crate) fn execute(
    params: ExecuteParams,
    settings: &Settings,
    console: &Console,
    view: ViewOptions,
    notices: &[UserNotice],
    startup: StartupTimer,
) -> Result<u8, Failure> {
    let (extent, detail) = (view.extent, view.detail);
    let prints_events = matches!(view.mode, ViewMode::Events);
    let detached = matches!(params.wait_mode, WaitMode::Detached);
    let request = FollowRequest::Execute {
        params: Box::new(params),
        idle_exit: cellwright_host::idle_exit(settings),
    };
    match watch(request, console, view, &settings.output_limits())? {
        HostedResult::Finished {
            report,
            stdout_error,
        } => {
            if let Some(line) = startup.report(report.kernel_ready, settings) {
                console.note(&line);
            }
            if prints_events {
                print_done_event(&report, console, notices, detail)
            } else {
                let options = (extent, detail);
                show_result(&report, console, options, notices, stdout_error.as_ref())
            }
        }
        HostedResult::StillRunning(state) => {
            if prints_events {
                events::print_still_running(console, StillRunning { state, notices })?;
            } else {
                show_still_running(&state, console, detached, notices)?;
            }
            Ok(0)
        }
        HostedResult::Tail(_) => Ok(0),
    }
}

fn show_still_running(
    state: &RunState,
    console: &Console,
    detached: bool,
    notices: &[UserNotice],
) -> Result<(), Failure> {
    let run = &state.run;
    if console.json {
        return console.print_json(&StillRunning {
            state: state.clone(),
            notices,
        });
    }
    if detached {
        return console.print(&format!("{run}\n"));
    }
    console.print_notices(&[UserNotice::new(
        NoticeKind::StillRunning,
        format!("run {run} continues in the background; `cellwright runs wait {run}` waits for its result"),
    )]);
    Ok(())
}

/// Prints the report of an execution as its last event. Returns the exit code.
pub(crate) fn print_done_event(
    report: &ExecutionReport,
    console: &Console,
    notices: &[UserNotice],
    detail: ReportDetail,
) -> Result<u8, Failure> {
    if let Some(failure) = report.start_failure() {
        return Err(failure.clone());
    }
    let printed = events::print_done(console, &ReportDocument::new(report, notices, detail));
    exit_after(printed, report.exit_code())
}

/// Shows the result of a run: how much of its output, and how much of its report in JSON. Returns the exit code.
pub(crate) fn show_result(
    report: &ExecutionReport,
    console: &Console,
    (extent, detail): (OutputExtent, ReportDetail),
    notices: &[UserNotice],
    stdout_error: Option<&StdoutError>,
) -> Result<u8, Failure> {
    if !console.json {
        return show_summary(report, console, extent, stdout_error);
    }
    if let Some(failure) = report.start_failure() {
        console.print_error(failure);
    }
    let printed = console.print_json(&ReportDocument::new(report, notices, detail));
    exit_after(printed, report.exit_code())
}
