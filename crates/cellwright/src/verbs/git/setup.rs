//! `git setup`: sets up git for notebooks.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::git::check::SetupCheckReport;
use cellwright_operations::git::setup::{
    SetupAction, SetupReport, SetupRequest, check_setup, set_up,
};
use clap::Args;

use crate::console::Console;

/// Arguments of `git setup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Adds entries to git's configuration and a line for *.ipynb to .gitattributes, so that `git diff` shows notebooks \
as text and `git merge` merges them by cell. With `--clean`, commits contain no outputs and no execution counts; the \
files on disk keep theirs. The command prints each change, changes nothing that is already set up, and removes \
exactly its own entries with `--undo`.

Commit .gitattributes. In each clone, run `cellwright git setup` once.

Exit codes of `--check`: 0 set up; 1 incomplete.

Examples:
  cellwright git setup
  cellwright git setup --clean
  cellwright git setup --global
  cellwright git setup --check
  cellwright git setup --undo")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(super) struct SetupArgs {
    /// Set up all your repositories instead of this one
    #[arg(long)]
    global: bool,
    /// Commit notebooks without outputs and execution counts
    #[arg(long, conflicts_with_all = ["undo", "check"])]
    clean: bool,
    /// Remove the entries that `setup` added
    #[arg(long, conflicts_with = "check")]
    undo: bool,
    /// Write nothing; report what is set up and what is missing
    #[arg(long)]
    check: bool,
}

/// Carries out the request and prints its report. Returns the exit code.
pub(super) fn setup(args: &SetupArgs, console: &Console) -> Result<u8, Failure> {
    if args.check {
        return print_check(args.global, console);
    }
    let report = set_up(&SetupRequest {
        global: args.global,
        action: if args.undo {
            SetupAction::Undo
        } else {
            SetupAction::Setup { clean: args.clean }
        },
    })?;
    if console.json {
        console.print_json(&report)?;
    } else {
        print(&report, console)?;
    }
    Ok(0)
}

fn print_check(global: bool, console: &Console) -> Result<u8, Failure> {
    let check = check_setup(global)?;
    if console.json {
        let is_complete = check.is_complete();
        console.print_json(&SetupCheckReport::from(check))?;
        return Ok(u8::from(!is_complete));
    }
    console.print_findings(&check.findings)?;
    Ok(u8::from(!check.is_complete()))
}

fn print(report: &SetupReport, console: &Console) -> Result<(), Failure> {
    let table = report.table();
    console.print_table(&table)?;
    if table.is_empty() {
        console.note(match report.action {
            SetupAction::Undo => "nothing to remove",
            SetupAction::Setup { .. } => "nothing to do: it is set up already",
        });
    }
    console.print_notices(&report.notices);
    for next in &report.next {
        console.note(&format!("next: {next}"));
    }
    Ok(())
}
