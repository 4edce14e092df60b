//! `git`: notebooks in a repository, set up with one command, and what git then calls.

mod attributes;
mod check;
mod drivers;
pub(crate) mod program;
mod settings;
mod setup;

use std::path::PathBuf;

use cellwright_notebook::Scope;
use clap::{Args, Subcommand};

use crate::console::Console;
use crate::failure::Failure;

/// Arguments of `git`.
#[derive(Debug, Args)]
#[command(after_help = "\
`setup` is the one to call; the others are what git calls after it.

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
    /// Let git show and merge notebooks by cell
    Setup(setup::SetupArgs),
    /// Print a notebook as text to look at (git diff)
    #[command(after_help = "\
Sources below markers without numbers, outputs as far as they are text. What is no notebook is
printed as it is.

Example:
  cellwright git textconv analysis.ipynb")]
    Textconv {
        /// The notebook
        file: PathBuf,
        /// Leave outputs out
        #[arg(long)]
        sources: bool,
    },
    /// Merge two notebooks that come from a third, cell by cell (git merge)
    Merge(drivers::MergeArgs),
    /// Pass a notebook from stdin to stdout without outputs and execution counts (git add)
    #[command(after_help = "\
All other bytes stay as they are, and so does what is no notebook.

Example:
  cellwright git clean < analysis.ipynb > clean.ipynb")]
    Clean {
        /// What to call it in messages
        #[arg(long, value_name = "PATH")]
        path: Option<PathBuf>,
    },
}

/// Does it and shows the answer; says the exit code.
pub(crate) fn git(args: &GitArgs, screen: &Console) -> Result<u8, Failure> {
    match &args.action {
        Action::Setup(args) => setup::setup(args, screen),
        Action::Textconv { file, sources } => {
            let scope = if *sources { Scope::Sources } else { Scope::All };
            drivers::textconv(file, scope, screen)
        }
        Action::Merge(args) => drivers::merge(args, screen),
        Action::Clean { path } => drivers::clean(path.as_deref(), screen),
    }
}
