//! `notebook outline`: lists the cells, one line each.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_host::kernel_host::KernelHost;
use cellwright_operations::outline::{OutlineReport, outline as outline_cells};
use clap::Args;

use crate::console::Console;

/// Arguments of `notebook outline`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook outline a.ipynb
  cellwright notebook outline a.ipynb --json | jq '.cells[] | select(.outputs != [])'")]
pub(super) struct OutlineArgs {
    /// Notebook
    path: PathBuf,
}

/// Lists the cells.
pub(super) fn outline(
    args: &OutlineArgs,
    engine: &Engine,
    screen: &Console,
) -> Result<(), Failure> {
    let report = outline_cells(&args.path, &args.path, engine, &KernelHost::Shared)?;
    show_outline(&report, screen)
}

/// Prints an outline.
pub(crate) fn show_outline(report: &OutlineReport, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(report);
    }
    screen.print_notices(&report.notices);
    screen.print(&report.table())?;
    if let Some(session) = &report.session {
        screen.note(&format!("session: {session}"));
    }
    screen.note(&format!("revision: {}", report.revision));
    Ok(())
}
