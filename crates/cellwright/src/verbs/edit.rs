//! `edit`: a piece of a notebook's text replaced.

use std::path::PathBuf;

use cellwright_notebook::edit::{self, Occurrences};
use cellwright_notebook::{Cells, file};
use clap::Args;

use super::answer::ChangeAnswer;
use super::input;
use super::write::RevisionArg;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};

/// Arguments of `edit`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text to replace is looked for in what `cellwright read` prints and must occur exactly once,
unless --all is given. It may span lines and markers.

Examples:
  cellwright edit a.ipynb --old 'lr = 0.1' --new 'lr = 0.01'
  cellwright edit a.ipynb --old colour --new color --all
  cellwright edit a.ipynb --old-file before.txt --new-file after.txt --rev 3f2a9c01d4")]
pub(crate) struct EditArgs {
    /// The notebook
    pub(crate) path: PathBuf,
    /// The text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(required_unless_present = "old_file", conflicts_with = "old_file")]
    pub(crate) old: Option<String>,
    /// The text to put in its place
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(required_unless_present = "new_file", conflicts_with = "new_file")]
    pub(crate) new: Option<String>,
    /// Take the text to replace from a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) old_file: Option<String>,
    /// Take the text to put in its place from a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) new_file: Option<String>,
    /// Replace every occurrence
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) revision: RevisionArg,
}

/// Replaces text.
pub(crate) fn edit(args: &EditArgs, engine: &Engine) -> Result<ChangeAnswer, Failure> {
    if args.old_file.as_deref() == Some("-") && args.new_file.as_deref() == Some("-") {
        return Err(Failure::new(
            Kind::BadArguments,
            "Only one of the two texts can come from the standard input",
        )
        .hint("nothing was written"));
    }
    let old = given(args.old.as_ref(), args.old_file.as_ref())?;
    let new = given(args.new.as_ref(), args.new_file.as_ref())?;
    let occurrences = if args.all {
        Occurrences::All
    } else {
        Occurrences::One
    };
    let draft = |cells: &dyn Cells| edit::replace_text(cells, &old, &new, occurrences);
    let changed = file::change(&args.path, args.revision.request(engine, false), &draft)
        .map_err(Failure::of_change)?;
    Ok(ChangeAnswer::new("edit", &args.path, changed))
}

fn given(text: Option<&String>, file: Option<&String>) -> Result<String, Failure> {
    match (text, file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => input::text_from(file),
        (None, None) => Ok(String::new()),
    }
}
