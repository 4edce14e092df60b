//! `diff`: compares two notebooks cell by cell.

use std::ffi::OsString;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_notebook::Scope;
use cellwright_operations::diff::{DiffRequest, DiffSide, diff as diff_notebooks};
use cellwright_operations::git::program::Git;
use clap::Args;

use super::notebook_input::NotebookInput;
use crate::console::Console;

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Cells are matched by id, or by content if they have no ids. Each hunk names the marker of its cell; line numbers \
count within the cell. The layout of the JSON and the order of its members do not matter.

One notebook is compared with its version in HEAD; `REVISION PATH` compares with another revision, `REVISION \
REVISION PATH` two revisions. Either notebook can be a file in git, named as in `git show`, or `-` for stdin. If a git \
filter removes outputs from commits, outputs are not compared with a commit.

Exit codes: 0 no differences; 1 differences; 2 a notebook cannot be read.

Examples:
  cellwright diff analysis.ipynb
  cellwright diff HEAD~3 analysis.ipynb
  cellwright diff old.ipynb new.ipynb
  cellwright diff HEAD:analysis.ipynb analysis.ipynb --sources
  cellwright diff a.ipynb b.ipynb --outputs
  cellwright diff a.ipynb b.ipynb --json")]
pub(crate) struct DiffArgs {
    /// Notebooks: the old and the new one, or one notebook and the git revisions to compare it with
    #[arg(value_name = "NOTEBOOK", required = true, num_args = 1..=3)]
    notebooks: Vec<OsString>,
    /// Compare only sources: no outputs, execution counts or metadata
    #[arg(long, conflicts_with = "outputs")]
    sources: bool,
    /// Print the content of outputs instead of one line for each
    #[arg(long)]
    outputs: bool,
}

/// Compares two notebooks and prints the differences. Returns the exit code.
pub(crate) fn diff(args: &DiffArgs, console: &Console) -> Result<u8, Failure> {
    let is_stdin = |name: &OsString| name == "-";
    let uses = args.notebooks.iter().filter(|name| is_stdin(name)).count();
    if uses > 1 {
        let message = "Only one of the two notebooks can come from standard input";
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let stdin = NotebookInput::from_stdin_if(uses == 1, console)?;
    let mut sides = DiffSide::from_arguments(&args.notebooks)?;
    for side in &mut sides {
        if let (DiffSide::Name(name), Some(stdin)) = (&*side, &stdin)
            && is_stdin(name)
        {
            *side = DiffSide::File(stdin.file().clone());
        }
    }
    let [old, new] = sides;
    let report = diff_notebooks(&DiffRequest {
        old,
        new,
        git: Git::in_current_dir(),
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
        console.print_notices(&report.notices);
        console.print_diff(&report.text)?;
        console.note(&report.summary());
    }
    Ok(u8::from(!report.same))
}
