//! `edit`: replaces a piece of a notebook's text.

use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::engine::Engine;
use cellwright_operations::edit::{EditRequest, edit as edit_notebook};
use clap::Args;

use super::change::show_change;
use super::text_source;
use super::write::RevisionArg;
use crate::console::Console;

/// Arguments of `edit`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text to replace is searched in what `cellwright read` prints. It must occur exactly once, unless `--all` is \
given. It may span lines and markers.

Examples:
  cellwright edit a.ipynb --old 'lr = 0.1' --new 'lr = 0.01'
  cellwright edit a.ipynb --old colour --new color --all
  cellwright edit a.ipynb --old-file before.txt --new-file after.txt --rev 3f2a9c01d4")]
pub(crate) struct EditArgs {
    /// Notebook
    path: PathBuf,
    /// Text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(required_unless_present = "old_file", conflicts_with = "old_file")]
    old: Option<String>,
    /// Replacement
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(required_unless_present = "new_file", conflicts_with = "new_file")]
    new: Option<String>,
    /// Read the text to replace from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE")]
    old_file: Option<String>,
    /// Read the replacement from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE")]
    new_file: Option<String>,
    /// Replace every occurrence
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Replaces text.
pub(crate) fn edit(args: &EditArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    if args.old_file.as_deref() == Some("-") && args.new_file.as_deref() == Some("-") {
        return Err(Failure::new(
            Kind::BadArguments,
            "Only one of the two texts can come from standard input",
        )
        .hint("nothing was written"));
    }
    let request = EditRequest {
        path: args.path.clone().into(),
        old: text(args.old.as_ref(), args.old_file.as_ref())?,
        new: text(args.new.as_ref(), args.new_file.as_ref())?,
        all: args.all,
        revision: args.revision.base(),
    };
    show_change(&edit_notebook(&request, engine)?, console)
}

fn text(text: Option<&String>, file: Option<&String>) -> Result<String, Failure> {
    match (text, file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => text_source::read(file),
        (None, None) => Ok(String::new()),
    }
}
