//! `notebook undo` and `notebook redo`.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::Direction;
use cellwright_operations::undo::{UndoReport, UndoRequest, undo as undo_change};
use clap::Args;

use crate::console::Console;
use crate::verbs::notebook_input::reject_stdin;
use crate::verbs::write::RevisionArg;

/// Arguments of `notebook undo` and `notebook redo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every change that Cellwright makes in place can be undone, a whole run as one change; repeated calls go further \
back, and `redo` goes forward again. Stored are the contents before the last changes, with outputs: files up to 32 MiB, \
256 MiB in total, in the cache directory. If another program has changed the file since, nothing is written (exit \
code 3).

Examples:
  cellwright notebook undo a.ipynb
  cellwright notebook redo a.ipynb")]
pub(super) struct UndoArgs {
    /// Notebook
    path: PathBuf,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Undoes or redoes a change and prints what it was.
pub(super) fn undo(
    args: &UndoArgs,
    direction: Direction,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    reject_stdin(&args.path)?;
    let request = UndoRequest {
        path: args.path.as_path().into(),
        direction,
        revision: args.revision.base(),
    };
    let report = undo_change(&request, engine)?;
    print(&report, console).map_err(|failure| failure.after_change(Some(&report.revision)))
}

fn print(report: &UndoReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print_notices(&report.notices);
    console.print(&format!(
        "{}\nrevision: {}\n",
        report.headline, report.revision
    ))?;
    console.print_diff(&report.diff)
}
