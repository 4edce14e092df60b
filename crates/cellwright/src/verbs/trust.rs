//! `trust`: approves the modules and settings of a project.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::trust::{TrustAction, TrustReport, TrustRequest, change_trust};
use clap::Args;

use crate::console::Console;

/// Arguments of `trust`.
#[derive(Debug, Args)]
#[command(after_help = "\
A project can have modules (`.cellwright/modules/*.py`), which run before the first cell, and settings \
(`.cellwright/config.toml`). Cellwright uses them only after you have trusted them. Trust applies to the content: a \
file that changes must be trusted again. Review the files first: they run with your permissions.

Trust in a project also covers the interpreter of its environment (`.venv`), by its path. Commands that run code use it \
anyway, with a notice the first time; others, such as `doctor`, start it only if it is trusted or was used before.

Examples:
  cellwright trust
  cellwright trust ~/project
  cellwright trust .cellwright/modules/plots.py
  cellwright trust .venv
  cellwright trust --list
  cellwright trust --remove")]
pub(crate) struct TrustArgs {
    /// Directory of the project, or one of its files [default: the current directory]
    path: Option<PathBuf>,
    /// List all trusted files, and whether they have changed
    #[arg(long, conflicts_with_all = ["remove", "path"])]
    list: bool,
    /// Withdraw trust
    #[arg(long)]
    remove: bool,
}

/// Carries out the request and prints its report.
pub(crate) fn trust(args: &TrustArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let path = args.path.clone();
    let request = match (args.list, args.remove) {
        (true, _) => TrustRequest::List,
        (false, true) => TrustRequest::Remove { path },
        (false, false) => TrustRequest::Add { path },
    };
    let report = change_trust(&request, engine)?;
    if console.json {
        return console.print_json(&report);
    }
    print(&report, console)
}

fn print(report: &TrustReport, console: &Console) -> Result<(), Failure> {
    console.print_table(&report.table())?;
    if report.files.is_empty() {
        console.note(match report.action {
            TrustAction::Remove => "none of its files was trusted",
            TrustAction::Trust | TrustAction::List => "no file is trusted",
        });
    }
    console.print_notices(&report.notices);
    Ok(())
}
