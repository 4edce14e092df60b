//! `check`: runs a notebook again and compares its outputs with the stored ones.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_execution::{ReportDetail, Stores};
use cellwright_operations::check::{
    CellResult, CheckReport, CheckRequest, allowed_errors_hint, check as check_notebook,
};
use cellwright_operations::finding::Severity;
use cellwright_operations::seconds::parse_seconds;
use clap::Args;

use crate::console::Console;
use crate::local_execution::LocalExecution;
use crate::verbs::env_args::EnvArgs;
use crate::verbs::kernel_args::KernelArgs;
use crate::verbs::notebook_input::{NotebookInput, STDIN_NAME};
use crate::verbs::report_args::check_events;
use crate::viewer::live::OutputExtent;
use crate::viewer::{ViewMode, ViewOptions, events, exit_after};

/// Differences of one cell that are printed.
const DIFFERENCES_MAX: usize = 5;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs a copy of the notebook from top to bottom on a fresh kernel and compares the outputs with the stored ones. \
The notebook itself is not written. The report also lists cells that never ran, or ran out of order. Differences \
that occur in every run (memory addresses, times, dates, ids, temporary paths, pixels, stderr, …) are ignored, \
unless `--exact` names their rule.

A cell that raises an exception fails the check, also if the stored outputs have the same exception, unless it has the \
tag `raises-exception` or `--allow-errors` is given.

Cells with the tag `ignore-output` (or `nbval-ignore-output`) run, but their outputs are not compared. Cells with \
the tag `skip-execution` do not run.

Rules for `--exact`: streams, redraws, colours, whitespace, addresses, times, dates, ids, paths, cells, progress, \
counts, images, html, stderr, tracebacks, all.

Exit codes: 0 the same; 1 outputs differ, cells raised exceptions, never ran or ran out of order; 2 bad notebook, or the kernel \
died or could not be started; 124 timed out; 130 cancelled.

Examples:
  cellwright check analysis.ipynb
  cellwright check analysis.ipynb --exact stderr --exact images
  cellwright check analysis.ipynb --tolerance 1e-6
  cellwright check analysis.ipynb --json | jq '.cells[] | select(.status != \"same\")'")]
pub(crate) struct CheckArgs {
    /// Notebook, or `-` to read it from stdin
    path: PathBuf,
    /// Switch off a rule, so that the differences it ignores count; can be repeated
    #[arg(long, value_name = "RULE")]
    exact: Vec<String>,
    /// Relative difference up to which two numbers in text, tables and JSON are equal, such as 1e-6; whole numbers are
    /// compared exactly [default: the setting check.tolerance, initially 0]
    #[arg(long, value_name = "NUMBER", value_parser = parse_tolerance)]
    tolerance: Option<f64>,
    /// Accept cells that raise exceptions, if their outputs are the same
    #[arg(long)]
    allow_errors: bool,
    /// Time limit of each cell in seconds; 0 for none [default: the setting run.timeout, initially 0]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Time limit of the whole run in seconds, including the start of the kernel
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    total_timeout: Option<Duration>,
    /// Print one JSON document per event, each on one line; the last one is the report of the check
    #[arg(long)]
    events: bool,
    /// Working directory of the kernel [default: the directory of the notebook]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Environment")]
    env: EnvArgs,
    #[command(flatten, next_help_heading = "Kernel")]
    kernel: KernelArgs,
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 up to 1, such as 1e-6".to_owned())
}

/// Checks a notebook and prints what was found. Returns the exit code.
pub(crate) fn check(args: &CheckArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    check_events(args.events, console)?;
    let checked = execute(args, engine, console);
    if let Some(failure) = checked.as_ref().err().filter(|_| args.events) {
        events::print_failure(console, failure);
    }
    checked
}

fn execute(args: &CheckArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    let input = NotebookInput::open(&args.path, console)?;
    let request = CheckRequest {
        path: input.file().open_path().into(),
        exact: args.exact.clone(),
        tolerance: args.tolerance,
        allow_errors: args.allow_errors,
        timeout: args.timeout,
        total_timeout: args.total_timeout,
        cwd: match &args.cwd {
            None if input.is_stdin() => Some(working_directory(None)?),
            cwd => cwd.clone(),
        },
        kernel: args.kernel.request(None),
        environment: args.env.request(),
    };
    let local = LocalExecution::begin()?;
    let mut report = check_notebook(&request, engine, |execution, launch| {
        let view = ViewOptions {
            extent: if console.json {
                OutputExtent::Nothing
            } else if args.events {
                OutputExtent::Full
            } else {
                OutputExtent::Bounded
            },
            // The comparison matters here, not the output.
            mode: if args.events {
                ViewMode::Events
            } else {
                ViewMode::Silent
            },
            detail: ReportDetail::Full,
        };
        let (report, _) = local.run(execution, launch, Stores::default(), console, view)?;
        Ok(report)
    })
    .map_err(|failure| input.describe(failure))?;
    if input.is_stdin() {
        STDIN_NAME.clone_into(&mut report.path);
    }
    let printed = if args.events {
        events::print_checked(console, &report)
    } else {
        show(&report, console)
    };
    exit_after(printed, report.exit_code())
}

fn show(report: &CheckReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    if let Some(kernel) = &report.kernel {
        console.note(&format!("ran on {}", kernel.describe()));
    }
    console.print_notices(&report.notices);
    for disorder in &report.order {
        console.print_finding(Severity::Warning, "order", &disorder.to_string(), None)?;
    }
    for cell in report.cells.iter().filter(|cell| !cell.is_fine()) {
        let name = match &cell.id {
            Some(id) => format!("cell {} id:{id}", cell.index),
            None => format!("cell {}", cell.index),
        };
        if let Some(error) = cell.forbidden_error() {
            let text = format!("raised {error}");
            console.print_finding(Severity::Error, &name, &text, None)?;
        }
        if cell.status == CellResult::Unfinished {
            console.print_finding(Severity::Error, &name, "did not finish", None)?;
        }
        for difference in cell.differences.iter().take(DIFFERENCES_MAX) {
            console.print_finding(Severity::Error, &name, &difference.to_string(), None)?;
        }
        let more = cell.differences.len().saturating_sub(DIFFERENCES_MAX);
        if more > 0 {
            let text = format!("{more} more differences");
            console.print_finding(Severity::Error, &name, &text, None)?;
        }
    }
    let mut text = format!("{}\n", report.summary());
    if report.same && !report.passed {
        let hint = allowed_errors_hint().for_command_line();
        text.push_str(&format!("      next: {hint}\n"));
    }
    console.print(&text)
}
