//! `git`: sets up git for notebooks, and the commands that git then runs.

mod drivers;
mod setup;

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::Scope;
use clap::{Args, Subcommand};

use crate::console::Console;

pub(crate) use drivers::TextconvReport;

/// Arguments of `git`.
#[derive(Debug, Args)]
#[command(after_help = "\
Run `setup` once in each clone. Git itself runs the other commands.

Examples:
  cellwright git setup
  cellwright git setup --clean
  cellwright git setup --check
  cellwright git setup --undo")]
pub(crate) struct GitArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Set up git to show and merge notebooks by cell
    Setup(setup::SetupArgs),
    /// Print a notebook as text (run by `git diff`)
    #[command(after_help = "\
The text has markers without cell numbers, sources, and outputs that are text. Control characters are shown as symbols, \
because git writes the text to the terminal as it is. A file that is not a notebook is printed as it is, apart from them.

Example:
  cellwright git textconv analysis.ipynb")]
    Textconv {
        /// Notebook
        file: PathBuf,
        /// Omit outputs
        #[arg(long)]
        sources: bool,
    },
    /// Merge two notebooks with a common base, cell by cell (run by `git merge`)
    Merge(drivers::MergeArgs),
    /// Copy a notebook from stdin to stdout without outputs and execution counts (run by `git add`)
    #[command(after_help = "\
All other bytes stay. An empty file and a pointer of git-lfs are copied unchanged. Any other file that is not a notebook \
is an error (exit code 2), so that git does not store its outputs; `git -c filter.cellwright.clean=cat add FILE` adds it \
as it is.

Example:
  cellwright git clean < analysis.ipynb > clean.ipynb")]
    Clean {
        /// Path of the file in messages
        #[arg(long, value_name = "PATH")]
        path: Option<PathBuf>,
    },
}

/// Carries out an action and prints its result. Returns the exit code.
pub(crate) fn git(args: &GitArgs, console: &Console) -> Result<u8, Failure> {
    match &args.action {
        Action::Setup(args) => setup::setup(args, console),
        Action::Textconv { file, sources } => {
            let scope = if *sources { Scope::Sources } else { Scope::All };
            drivers::textconv(file, scope, console)
        }
        Action::Merge(args) => drivers::merge(args, console),
        Action::Clean { path } => drivers::clean(path.as_deref(), console),
    }
}
