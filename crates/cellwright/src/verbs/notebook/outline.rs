//! `notebook outline`: lists the cells, one line each.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_host::kernel_host::KernelHost;
use cellwright_operations::outline::{OutlineReport, outline as outline_cells};
use clap::Args;

use crate::console::Console;
use crate::verbs::notebook_input::NotebookInput;

/// Arguments of `notebook outline`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook outline a.ipynb
  cellwright notebook outline a.ipynb --json | jq '.cells[] | select(.outputs != [])'")]
pub(super) struct OutlineArgs {
    /// Notebook, or `-` to read it from stdin
    path: PathBuf,
}

/// Lists the cells.
pub(super) fn outline(
    args: &OutlineArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let input = NotebookInput::open(&args.path, console)?;
    let report = outline_cells(input.file(), engine, &KernelHost::Shared)?;
    show_outline(&report, console)
}

/// Prints an outline.
pub(crate) fn show_outline(report: &OutlineReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print_notices(&report.notices);
    console.print_table(&report.table())?;
    if let Some(session) = &report.session {
        console.note(&format!("session: {session}"));
    }
    console.note(&format!("revision: {}", report.revision));
    Ok(())
}
