//! `notebook where`: where a notebook is open.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::location::locate;
use clap::Args;

use crate::console::Console;

/// Arguments of `notebook where`.
#[derive(Debug, Args)]
#[command(after_help = "\
A notebook in a live collaboration room cannot be written without `--force`. Writes to a notebook in a page without a room \
succeed with a notice. Only servers of this user on this machine are asked.

Examples:
  cellwright notebook where a.ipynb
  cellwright notebook where a.ipynb --json | jq -r '.servers[0].kernel.connection_file'")]
pub(super) struct WhereArgs {
    /// Notebook
    path: PathBuf,
}

/// Prints the servers that have the notebook open.
pub(super) fn show_location(
    args: &WhereArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let report = locate(&args.path.as_path().into(), engine)?;
    if console.json {
        return console.print_json(&report);
    }
    console.print_notices(&report.notices);
    match report.table() {
        Some(table) => console.print_table(&table)?,
        None => console.print(&report.describe_closed())?,
    }
    for file in report.connection_files() {
        console.note(&format!("kernel: eval --existing {}", file.display()));
    }
    Ok(())
}
