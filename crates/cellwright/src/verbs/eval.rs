//! `eval`: runs code on a kernel that ends with the command, or in a session.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, command, flag, hint};
use cellwright_engine::engine::Engine;
use cellwright_engine::kernel_setup::{KernelSetup, SharedBridge};
use cellwright_engine::kernels::absolute_path;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::ReportDetail;
use cellwright_host::protocol::WaitMode;
use cellwright_operations::eval::{EvalCell, EvalRequest, SessionRequest, prepare};
use cellwright_operations::seconds::parse_seconds;
use clap::Args;

use super::env_args::EnvArgs;
use super::kernel_args::{ExistingArg, KernelArgs};
use super::report_args::ReportArgs;
use crate::console::Console;
use crate::hosted_execution;
use crate::local_execution::LocalExecution;
use crate::verbs::report_args::check_events;
use crate::verbs::text_source;
use crate::viewer::live::OutputExtent;
use crate::viewer::{ViewMode, ViewOptions, events};

/// The session name that a kernel sees if it ends with the call.
const PER_CALL: &str = "per-call";

/// Arguments of `eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
The code runs on a fresh Python process (`cellwright doctor` shows which) that ends with the command, together \
with every process it started. With `--session NAME` it runs on a kernel that stays, so that later commands can \
use its variables, also from another terminal (see `cellwright kernels`). The value of the last expression is \
printed. Magics such as `%time`, `%pip` and `!command` work without IPython.

`--kernel NAME` runs the code on a Jupyter kernel, in any language (`cellwright kernels specs` lists them). \
`--backend jupyter` runs it on ipykernel in the same Python. `--existing FILE` attaches to a running kernel and \
leaves it running.

A terminal shows all output as it arrives. A pipe receives the first 20 KiB and the last 30 KiB of each stream; \
the full output is stored as an artifact (`cellwright read artifact://N`).

Exit codes: 0 done; 1 the code raised an exception; 2 the kernel died or could not be started; 124 timed out; \
130 cancelled.

Examples:
  cellwright eval '1 + 1'
  cellwright eval --cell 'import math' --cell 'math.pi'
  cellwright eval -f script.py --cwd project --timeout 600
  cellwright eval --session work 'x = 1'; cellwright eval --session work 'x + 1'
  cellwright eval --session work --background --timeout 0 'train()'
  cellwright eval --kernel bash 'echo $SHELL'
  cellwright eval --existing kernel-4711.json 'df.shape'
  echo 'print(input(\"Name? \"))' | cellwright eval - --answer World
  cellwright eval 'open(\"big.csv\").read()' --json")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct EvalArgs {
    /// Code, or `-` to read it from stdin
    #[arg(value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// Read the code from a file
    #[arg(long, short, value_name = "FILE", conflicts_with = "code")]
    file: Option<String>,
    /// Cell to run after the code on the same kernel; can be repeated. The run stops at the first cell that fails
    #[arg(long = "cell", value_name = "CODE", allow_hyphen_values = true)]
    cells: Vec<String>,
    /// Time limit of each cell in seconds, including the start of the kernel; 0 for none [default: the setting
    /// eval.timeout, initially 30]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Working directory of the kernel
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Reply to the next `input()`; can be repeated. Without one, `input()` raises an exception
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    answers: Vec<String>,
    /// Run the code in a session: a kernel that stays and that commands in this project share by name, or `@N`
    #[arg(
        long,
        short,
        value_name = "NAME",
        conflicts_with = "per_call",
        help_heading = "Session"
    )]
    session: Option<String>,
    /// Use a kernel that ends with the command, even if the settings name a session
    #[arg(long, help_heading = "Session")]
    per_call: bool,
    /// Replace the kernel first; other owners of the session keep theirs
    #[arg(
        long,
        alias = "restart",
        conflicts_with = "existing",
        help_heading = "Session"
    )]
    reset: bool,
    /// Owner of the call; owners share a session until one of them resets it [default: the setting eval.owner]
    #[arg(long, value_name = "NAME", help_heading = "Session")]
    owner: Option<String>,
    /// Start the run in the background and print its id (see `cellwright runs`)
    #[arg(long, conflicts_with_all = ["wait", "full"], help_heading = "Background")]
    background: bool,
    /// Wait at most SECONDS, then leave the run in the background (see `cellwright runs`)
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        help_heading = "Background"
    )]
    wait: Option<Duration>,
    /// Print all output, even to a pipe
    #[arg(long)]
    full: bool,
    /// Print one JSON document per event, each on one line
    #[arg(long, conflicts_with_all = ["background", "full"])]
    events: bool,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten, next_help_heading = "Environment")]
    env: EnvArgs,
    #[command(flatten, next_help_heading = "Kernel")]
    kernel: KernelArgs,
    #[command(flatten, next_help_heading = "Kernel")]
    existing: ExistingArg,
}

impl EvalArgs {
    fn request(&self) -> Result<EvalRequest, Failure> {
        let sources = sources(self)?;
        let mut cells: Vec<EvalCell> = sources
            .into_iter()
            .map(|code| EvalCell {
                code,
                ..EvalCell::default()
            })
            .collect();
        if let Some(first) = cells.first_mut() {
            first.file = script(self)?;
        }
        Ok(EvalRequest {
            cells,
            timeout: self.timeout,
            cwd: self.cwd.clone().map(Into::into),
            project_dir: None,
            kernel: self.kernel.request(Some(&self.existing)),
            environment: self.env.request(),
            answers: self.answers.clone(),
            session: match &self.session {
                Some(name) => SessionRequest::Named(name.clone()),
                None if self.per_call => SessionRequest::PerCall,
                None => SessionRequest::Settings,
            },
            session_dir: None,
            owner: self.owner.clone(),
            reset: self.reset,
        })
    }
}

/// Runs code and shows its output. Returns the exit code.
pub(crate) fn eval(args: &EvalArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    check_events(args.events, console)?;
    let ran = execute(args, engine, console);
    if let Some(failure) = ran.as_ref().err().filter(|_| args.events) {
        events::print_failure(console, failure);
    }
    ran
}

fn execute(args: &EvalArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    if args.full && console.json {
        let message = "`--full` and `--json` cannot be combined";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint(hint![
            "with ",
            flag("json"),
            ", the artifact holds the full output",
        ]));
    }
    let detail = args.report.detail(console, args.events)?;
    let mut startup = StartupTimer::new();
    let request = args.request()?;
    let is_hosted = args.session.is_some() || args.background || args.wait.is_some();
    let local = (!is_hosted).then(LocalExecution::begin).transpose()?;
    let prepared = prepare(request, engine, &mut startup)?;
    let extent = match console {
        _ if console.json => OutputExtent::Nothing,
        _ if args.full || args.events || console.is_terminal() => OutputExtent::Full,
        _ => OutputExtent::Bounded,
    };
    let mode = if args.events {
        ViewMode::Events
    } else {
        ViewMode::Code
    };
    let view = ViewOptions {
        extent,
        mode,
        detail,
    };
    // Printed before the code runs.
    console.print_notices(&prepared.notices);
    let Some(local) = local.filter(|_| prepared.session.is_none()) else {
        let wait_mode = match args.wait {
            _ if args.background => WaitMode::Detached,
            wait if console.json => WaitMode::Report {
                wait,
                outputs: detail == ReportDetail::Full,
            },
            wait => WaitMode::Stream {
                wait,
                outputs: args.events && detail == ReportDetail::Full,
            },
        };
        let (params, settings, notices) = prepared.into_host_request(engine, wait_mode)?;
        return hosted_execution::execute(params, &settings, console, view, &notices, startup);
    };
    let stores = prepared.stores(engine);
    let settings = prepared.settings;
    let setup = KernelSetup {
        engine: Arc::new(engine.clone()),
        bridge: SharedBridge::default(),
        session: PER_CALL.to_owned(),
        modules: (&settings).into(),
    };
    let launch = prepared.chosen.into_launcher(setup);
    let execution = prepared.execution;
    let (report, stdout_error) = local.run(&execution, launch, stores, console, view)?;
    if let Some(line) = startup.report(report.kernel_ready, &settings) {
        console.note(&line);
    }
    if args.events {
        return hosted_execution::print_done_event(&report, console, &prepared.notices, detail);
    }
    hosted_execution::show_result(
        &report,
        console,
        (extent, detail),
        &prepared.notices,
        stdout_error.as_ref(),
    )
}

/// Returns the script file as an absolute path: the kernel can have another working directory.
fn script(args: &EvalArgs) -> Result<Option<PathBuf>, Failure> {
    let Some(file) = args.file.as_deref().filter(|file| *file != "-") else {
        return Ok(None);
    };
    Ok(Some(absolute_path(Path::new(file))?))
}

/// Returns the source of each cell.
fn sources(args: &EvalArgs) -> Result<Vec<String>, Failure> {
    let mut cells = Vec::new();
    match (&args.code, &args.file) {
        (Some(code), _) if code == "-" => cells.push(text_source::read("-")?),
        (Some(code), _) => cells.push(code.clone()),
        (None, Some(file)) => cells.push(read_script(file)?),
        (None, None) if args.cells.is_empty() => {
            if io::stdin().is_terminal() {
                let failure = Failure::new(Kind::BadArguments, "There is no code to run");
                return Err(failure.hint(hint![
                    "give it as an argument, with ",
                    flag("file"),
                    ", or with `-` on stdin",
                ]));
            }
            cells.push(text_source::read("-")?);
        }
        (None, None) => {}
    }
    cells.extend(args.cells.iter().cloned());
    Ok(cells)
}

/// Reads a script. Rejects a notebook: its JSON is a valid Python expression, which would run without effect.
fn read_script(file: &str) -> Result<String, Failure> {
    let text = text_source::read(file)?;
    let is_notebook = cellwright_notebook::file::has_notebook_extension(Path::new(file))
        || (text.trim_start().starts_with('{')
            && cellwright_notebook::Notebook::parse(text.as_bytes()).is_ok());
    if !is_notebook {
        return Ok(text);
    }
    let message = format!("{file} is a notebook, not a script");
    Err(Failure::new(Kind::BadArguments, message)
        .hint(hint![
            command(format!("run {file}")),
            " runs the cells of a notebook",
        ])
        .hint("nothing ran"))
}
