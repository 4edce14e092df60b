//! `gateway`: starts, shows and stops the shared gateway.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_operations::gateway::{self, GatewayEntry, GatewayKernel};
use clap::{Args, Subcommand};

use crate::console::Console;

/// Arguments of `gateway`.
#[derive(Debug, Args)]
#[command(after_help = "\
With `--backend gateway` and no server, kernels run on the shared gateway: one Jupyter Kernel Gateway per user on this \
machine, for all projects. Commands start it when they need it. It ends after ten minutes without kernels.

Examples:
  cellwright eval --backend gateway 'print(1)'
  cellwright gateway status
  cellwright gateway stop")]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start the gateway if it does not run
    #[command(after_help = "\
The interpreter needs the packages `jupyter_kernel_gateway` and `ipykernel`. Kernels may have other interpreters.

Examples:
  cellwright gateway start
  cellwright gateway start --python .venv")]
    Start(StartArgs),
    /// Print whether the gateway runs, its kernels, and who owns them
    #[command(after_help = "\
Exit codes: 0 done; 2 the files of the gateway cannot be used.

Examples:
  cellwright gateway status
  cellwright gateway status --json")]
    Status,
    /// Stop the gateway and all kernels on it
    #[command(after_help = "\
Exit codes: 0 no gateway runs now; 2 it could not be stopped.

Example:
  cellwright gateway stop")]
    Stop,
}

/// Arguments of `gateway start`.
#[derive(Debug, Args)]
struct StartArgs {
    /// Interpreter that runs the gateway: a path, the directory of an environment, or a command
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// Carries out an action and prints its result.
pub(crate) fn gateway(
    args: &GatewayArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    match &args.action {
        Action::Start(args) => start(args, engine, console),
        Action::Status => status(console),
        Action::Stop => stop(console),
    }
}

fn start(args: &StartArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let cwd = working_directory(None)?;
    let started = gateway::start(engine, args.python.as_deref(), &cwd)?;
    if console.json {
        return console.print_json(&started);
    }
    let word = if started.started {
        "started"
    } else {
        "already running"
    };
    console.print(&format!(
        "{word}: {}, pid {}, python {}\n",
        started.url, started.pid, started.python
    ))
}

fn status(console: &Console) -> Result<(), Failure> {
    let report = gateway::status()?;
    if console.json {
        return console.print_json(&report);
    }
    if !report.running {
        return console.print("no gateway is running\n");
    }
    let text: String = report.gateways.iter().map(format_gateway).collect();
    console.print(&format!("{text}directory: {}\n", report.directory))
}

fn format_gateway(gateway: &GatewayEntry) -> String {
    let version = gateway.gateway_version.as_deref().unwrap_or("unknown");
    let health = match &gateway.problem {
        Some(problem) => format!("does not answer: {problem}"),
        None => "healthy".to_owned(),
    };
    let mut text = format!(
        "running: {}, pid {}\nstate: {health}\npython: {} (kernel_gateway {version})\nstarted: {}\nkernels: {}\n",
        gateway.url,
        gateway.pid,
        gateway.python,
        gateway.started_at,
        gateway.kernels.len(),
    );
    for kernel in &gateway.kernels {
        text.push_str(&format_kernel(kernel));
    }
    text
}

fn format_kernel(kernel: &GatewayKernel) -> String {
    let state = kernel.state.as_deref().unwrap_or("unknown");
    let mut text = format!("  {} {} {state}", kernel.id, kernel.kernelspec);
    if let Some(pid) = kernel.owner_pid {
        text.push_str(&format!(", owner pid {pid}"));
    }
    if let Some(session) = &kernel.session {
        text.push_str(&format!(", session {session}"));
    }
    if let Some(cwd) = &kernel.cwd {
        text.push_str(&format!(", in {cwd}"));
    }
    text.push('\n');
    text
}

fn stop(console: &Console) -> Result<(), Failure> {
    let stopped = gateway::stop()?;
    if console.json {
        return console.print_json(&stopped);
    }
    if stopped.pids.is_empty() {
        return console.print("no gateway was running\n");
    }
    let pids: Vec<String> = stopped.pids.iter().map(u32::to_string).collect();
    console.print(&format!(
        "ended: pid {}\nended kernels: {}\n",
        pids.join(", "),
        stopped.kernels
    ))
}
