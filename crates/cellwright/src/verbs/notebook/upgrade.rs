//! `notebook upgrade`: to nbformat 4.5.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::upgrade::{UpgradeReport, upgrade as upgrade_notebook};
use clap::Args;

use crate::console::Console;
use crate::verbs::notebook_input::reject_stdin;
use crate::verbs::write::RevisionArg;

/// Arguments of `notebook upgrade`.
#[derive(Debug, Args)]
#[command(after_help = "\
A notebook in nbformat 2 or 3 (with worksheets) is rewritten in nbformat 4.5. In a notebook in nbformat 4, only the \
minor version and missing cell ids are added; all other bytes stay. The result is compared with the original, cell by \
cell, before the file is replaced.

Examples:
  cellwright notebook upgrade old.ipynb")]
pub(super) struct UpgradeArgs {
    /// Notebook
    path: PathBuf,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Upgrades a notebook and prints what was done.
pub(super) fn upgrade(
    args: &UpgradeArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    reject_stdin(&args.path)?;
    let report = upgrade_notebook(&args.path.as_path().into(), &args.revision.base(), engine)?;
    let written = report.changed.then_some(report.revision.as_str());
    print(&report, console).map_err(|failure| failure.after_change(written))
}

fn print(report: &UpgradeReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print_notices(&report.notices);
    let plural = if report.ids_added == 1 { "" } else { "s" };
    let ids = format!("{} cell id{plural} added", report.ids_added);
    let text = match report.from.as_deref() {
        Some("4.5") => format!("Already nbformat 4.5; {ids}.\n"),
        Some(from) => format!("Upgraded from nbformat {from} to 4.5, {ids}.\n"),
        None => "Already nbformat 4.5 or later with all cell ids; nothing written.\n".to_owned(),
    };
    console.print(&text)?;
    console.print(&format!("revision: {}\n", report.revision))
}
