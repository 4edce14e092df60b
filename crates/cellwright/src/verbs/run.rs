//! `run`: runs the cells of a notebook and saves their outputs.

mod args;
mod piped_files;

use std::sync::Arc;

pub(crate) use args::RunArgs;
use piped_files::PipedFiles;

use crate::console::Console;
use crate::hosted_execution;
use crate::local_execution::LocalExecution;
use crate::verbs::report_args::check_events;
use crate::viewer::live::{OutputExtent, StdoutError};
use crate::viewer::{ViewMode, ViewOptions, events, exit_after, show_summary};
use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernel_setup::{KernelSetup, SharedBridge};
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::{ExecutionReport, ReportDetail, ReportDocument};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::WaitMode;
use cellwright_operations::run::{PreparedRun, prepare};

/// The session name that a kernel sees if it ends with the run.
const PER_CALL: &str = "per-call";

/// Runs a notebook and shows its progress. Returns the exit code.
pub(crate) fn run(args: &RunArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    check_events(args.events, console)?;
    let files = PipedFiles::open(args, console)?;
    let ran = execute(args, &files, engine, console);
    let ran = files.finish(ran, console);
    if let Some(failure) = ran.as_ref().err().filter(|_| args.events) {
        events::print_failure(console, failure);
    }
    ran
}

fn execute(
    args: &RunArgs,
    files: &PipedFiles,
    engine: &Engine,
    console: &Console,
) -> Result<u8, Failure> {
    let detail = args.report.detail(console, args.events)?;
    let has_outputs = detail == ReportDetail::Full;
    let mut startup = StartupTimer::new();
    let mut request = args.request()?;
    files.apply(&mut request)?;
    let is_hosted = args.session.is_some() || args.background || args.wait.is_some();
    let local = (!is_hosted).then(LocalExecution::begin).transpose()?;
    let mut prepared = prepare(request, engine, &KernelHost::Shared, &mut startup)?;
    // Printed before the code runs.
    console.print_notices(&prepared.notices);
    let Some(chosen) = prepared.chosen.take() else {
        let report = prepared.finish_without_cells(engine)?;
        return show(&report, &prepared.notices, args, console, detail, None);
    };
    let view = if files.is_to_stdout() {
        ViewOptions {
            extent: OutputExtent::Nothing,
            mode: ViewMode::Silent,
            detail,
        }
    } else {
        ViewOptions {
            detail,
            ..view(args, &mut prepared, console)
        }
    };
    let Some(local) = local else {
        let attach = match args.wait {
            _ if args.background => WaitMode::Detached,
            wait if console.json => WaitMode::Report {
                wait,
                outputs: has_outputs,
            },
            wait => WaitMode::Stream {
                wait,
                outputs: args.events && has_outputs,
            },
        };
        let request = prepared.host_request(chosen, engine, attach)?;
        let (settings, notices) = (prepared.settings, prepared.notices);
        return hosted_execution::execute(request, &settings, console, view, &notices, startup);
    };
    let settings = &prepared.settings;
    let launch = chosen.into_launcher(KernelSetup {
        engine: Arc::new(engine.clone()),
        bridge: SharedBridge::default(),
        session: PER_CALL.to_owned(),
        modules: settings.into(),
    });
    let extent = view.extent;
    let stores = prepared.stores(engine);
    let (report, stdout_error) = local.run(&prepared.execution, launch, stores, console, view)?;
    if let Some(line) = startup.report(report.kernel_ready, settings) {
        console.note(&line);
    }
    show(
        &report,
        &prepared.notices,
        args,
        console,
        detail,
        Some((extent, stdout_error)),
    )
}

/// Prints the report and returns the exit code. `shown` is how much of the output was shown, and why writing it failed.
fn show(
    report: &ExecutionReport,
    notices: &[UserNotice],
    args: &RunArgs,
    console: &Console,
    detail: ReportDetail,
    shown: Option<(OutputExtent, Option<StdoutError>)>,
) -> Result<u8, Failure> {
    if console.json || args.events {
        let document = ReportDocument::new(report, notices, detail);
        let printed = if args.events {
            events::print_done(console, &document)
        } else {
            console.print_json(&document)
        };
        return exit_after(printed, report.exit_code());
    }
    let (extent, stdout_error) = shown.unwrap_or((OutputExtent::Full, None));
    show_summary(report, console, extent, stdout_error.as_ref())
}

fn view(args: &RunArgs, prepared: &mut PreparedRun, console: &Console) -> ViewOptions {
    if args.events {
        return ViewOptions {
            extent: OutputExtent::Full,
            mode: ViewMode::Events,
            detail: ReportDetail::Full,
        };
    }
    ViewOptions {
        extent: match console {
            _ if console.json => OutputExtent::Nothing,
            _ if args.full || console.is_terminal() => OutputExtent::Full,
            _ => OutputExtent::Bounded,
        },
        mode: ViewMode::Notebook {
            durations: std::mem::take(&mut prepared.durations),
        },
        detail: ReportDetail::Full,
    }
}
