//! `write`: replaces a notebook by edited text.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::change::BaseRevision;
use cellwright_operations::write::{WriteRequest, write as write_notebook};
use clap::Args;

use super::change::show_change;
use super::notebook_input::reject_stdin;
use super::text_source;
use crate::console::Console;

/// Arguments of `write`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text is what `cellwright read` prints: each cell starts with a marker line such as `# %% [code] cell:3`. \
A block that names a cell replaces its source and keeps its outputs, metadata and everything else. A marker \
without a number adds a cell. Cells that the text leaves out are deleted. Writing back unchanged text leaves the \
file unchanged, byte for byte. Text in the percent format of jupytext and VS Code is accepted as well.

Examples:
  cellwright read a.ipynb > a.txt; $EDITOR a.txt; cellwright write a.ipynb a.txt
  cellwright write a.ipynb --rev 3f2a9c01d4 < edited.txt
  printf '%s\\n' '# %% [code]' 'print(1)' | cellwright write new.ipynb --create")]
pub(crate) struct WriteArgs {
    /// Notebook
    path: PathBuf,
    /// File with the edited text, or `-` for stdin
    #[arg(value_name = "FILE", default_value = "-")]
    text: String,
    #[command(flatten)]
    revision: RevisionArg,
    /// Create the notebook if it does not exist
    #[arg(long)]
    create: bool,
}

/// The revision that an edit is based on, and whether it is forced.
#[derive(Debug, Args)]
pub(crate) struct RevisionArg {
    /// Revision that the edit is based on; newer changes are merged if they touch other cells, otherwise nothing
    /// is written (exit code 3)
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub(super) rev: Option<String>,
    /// Write although JupyterLab has the notebook in a collaboration room; text that is being typed there is lost
    #[arg(long)]
    pub(super) force: bool,
}

fn revision(text: &str) -> Result<String, String> {
    BaseRevision::check(text).map(|()| text.to_owned())
}

impl RevisionArg {
    /// The revision for an operation.
    pub(super) fn base(&self) -> BaseRevision {
        BaseRevision::new(self.rev.clone()).with_force(self.force)
    }
}

/// Replaces a notebook by edited text.
pub(crate) fn write(args: &WriteArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    reject_stdin(&args.path)?;
    if args.text == "-" {
        console.note_stdin(&format!("the text of {}", args.path.display()));
    }
    let request = WriteRequest {
        path: args.path.clone().into(),
        text: text_source::read(&args.text)?,
        revision: args.revision.base(),
        create: args.create,
    };
    show_change(&write_notebook(&request, engine)?, console)
}
