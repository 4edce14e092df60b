//! `diff`: compares two notebooks cell by cell.

use std::ffi::OsString;

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::Scope;
use cellwright_operations::diff::{DiffRequest, diff as diff_notebooks};
use clap::Args;

use crate::console::Console;

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Cells are matched by id, or by content if they have no ids. Each hunk names the marker of its cell; line numbers \
count within the cell. The layout of the JSON and the order of its members do not matter. Either notebook can be \
a revision in git, named as in `git show`.

Exit codes: 0 no differences; 1 differences; 2 a notebook cannot be read.

Examples:
  cellwright diff old.ipynb new.ipynb
  cellwright diff HEAD:analysis.ipynb analysis.ipynb --sources
  cellwright diff a.ipynb b.ipynb --outputs
  cellwright diff a.ipynb b.ipynb --json")]
pub(crate) struct DiffArgs {
    /// Old notebook
    #[arg(value_name = "A")]
    old: OsString,
    /// New notebook
    #[arg(value_name = "B")]
    new: OsString,
    /// Compare only sources: no outputs, execution counts or metadata
    #[arg(long, conflicts_with = "outputs")]
    sources: bool,
    /// Print the content of outputs instead of one line for each
    #[arg(long)]
    outputs: bool,
}

/// Compares two notebooks and prints the differences. Returns the exit code.
pub(crate) fn diff(args: &DiffArgs, console: &Console) -> Result<u8, Failure> {
    let report = diff_notebooks(&DiffRequest {
        old: args.old.clone(),
        new: args.new.clone(),
        git_dir: None,
        scope: if args.sources {
            Scope::Sources
        } else {
            Scope::All
        },
        output_text: args.outputs,
    })?;
    if console.json {
        console.print_json(&report)?;
    } else {
        console.print_diff(&report.text)?;
        console.note(&report.summary());
    }
    Ok(u8::from(!report.same))
}
