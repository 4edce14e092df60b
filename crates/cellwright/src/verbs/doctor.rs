//! `doctor`: checks interpreter, runner, kernels and directories.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::servers::ServerChoice;
use cellwright_operations::doctor::{DoctorRequest, check_installation};
use clap::Args;

use crate::console::Console;
use crate::verbs::kernel_args::{interpreter, server};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each finding has a code, a severity and, if there is a problem, a next step.

Exit codes: 0 code can run; 2 code cannot run.

Examples:
  cellwright doctor
  cellwright doctor --python .venv --json
  cellwright doctor --gateway work")]
pub(crate) struct DoctorArgs {
    /// Directory in which code would run [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Check this interpreter instead of the selected one
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    python: Option<PathBuf>,
    /// Check a Jupyter server instead: the name of a table `[server.NAME]` in the settings, or a URL. Starts a kernel there
    /// and ends it
    #[arg(long, value_name = "NAME|URL", value_parser = server, conflicts_with = "python")]
    gateway: Option<ServerChoice>,
}

/// Checks everything and prints the findings. Returns the exit code.
pub(crate) fn doctor(args: &DoctorArgs, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    let request = DoctorRequest {
        cwd: args.cwd.clone(),
        python: args.python.clone(),
        gateway: args.gateway.clone(),
    };
    let report = check_installation(&request, engine)?;
    if console.json {
        console.print_json(&report)?;
    } else {
        console.print_findings(&report.findings)?;
    }
    Ok(if report.healthy { 0 } else { 2 })
}
