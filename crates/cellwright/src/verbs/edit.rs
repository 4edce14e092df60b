//! `edit`: replaces a piece of a notebook's text.

use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind, flag_value, hint};
use cellwright_engine::engine::Engine;
use cellwright_operations::edit::{EditRequest, edit as edit_notebook};
use cellwright_operations::editable::notebook_text;
use cellwright_operations::file_path::FilePath;
use cellwright_operations::write::{WriteRequest, write as write_notebook};
use clap::Args;

use super::change::show_change;
use super::editor;
use super::notebook_input::reject_stdin;
use super::text_source;
use super::write::RevisionArg;
use crate::console::Console;

/// Arguments of `edit`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
#[command(after_help = "\
The text to replace is searched in what `cellwright read` prints. It must occur exactly once, unless `--all` is \
given. It may span lines and markers. With `--word`, `--regex`, `--code` or `--markdown` it is searched in the \
sources of the cells, so that markers never change. In a regular expression `^` and `$` match at lines.

Without a text to replace, a terminal opens the whole text in the editor that VISUAL or EDITOR names.

Examples:
  cellwright edit a.ipynb
  cellwright edit a.ipynb --old 'lr = 0.1' --new 'lr = 0.01'
  cellwright edit a.ipynb --old colour --new color --all
  cellwright edit a.ipynb --old x --new width --word --code --all
  cellwright edit a.ipynb --regex --old 'pd\\.read_(\\w+)' --new 'pl.read_$1' --all
  cellwright edit a.ipynb --old-file before.txt --new-file after.txt --rev 3f2a9c01d4")]
pub(crate) struct EditArgs {
    /// Notebook
    path: PathBuf,
    /// Text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "old_file")]
    old: Option<String>,
    /// Replacement
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "new_file")]
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
    /// Match only whole words
    #[arg(long, conflicts_with = "regex")]
    word: bool,
    /// Match a regular expression; `$1`, `\1` and `${name}` in the replacement are its groups
    #[arg(long)]
    regex: bool,
    /// Change only code cells
    #[arg(long)]
    code: bool,
    /// Change only Markdown cells; with `--code`, both
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Replaces text.
pub(crate) fn edit(args: &EditArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    reject_stdin(&args.path)?;
    if args.has_only_path() && editor::is_available(console) {
        return edit_in_editor(args, engine, console);
    }
    if args.old_file.as_deref() == Some("-") && args.new_file.as_deref() == Some("-") {
        return Err(Failure::new(
            Kind::BadArguments,
            "Only one of the two texts can come from standard input",
        )
        .hint("nothing was written"));
    }
    let request = EditRequest {
        path: args.path.clone().into(),
        old: text("old", args.old.as_ref(), args.old_file.as_ref())?,
        new: text("new", args.new.as_ref(), args.new_file.as_ref())?,
        all: args.all,
        word: args.word,
        regex: args.regex,
        code: args.code,
        markdown: args.markdown,
        revision: args.revision.base(),
    };
    show_change(&edit_notebook(&request, engine)?, console)
}

impl EditArgs {
    /// Whether nothing states what to replace.
    fn has_only_path(&self) -> bool {
        let texts = [&self.old, &self.new, &self.old_file, &self.new_file];
        let flags = [self.all, self.word, self.regex, self.code, self.markdown];
        texts.iter().all(|text| text.is_none()) && flags.iter().all(|is_set| !is_set)
    }
}

/// Opens the text view in an editor and writes the result.
fn edit_in_editor(args: &EditArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let path: FilePath = args.path.as_path().into();
    let shown = notebook_text(&path, &args.revision.base(), engine)?;
    let Some(edited) = editor::edit(&shown)? else {
        console.note("the text did not change; nothing was written");
        return Ok(());
    };
    if edited.text.trim().is_empty() {
        let failure = Failure::new(Kind::BadArguments, "The edited text is empty");
        return Err(failure.hint("nothing was written"));
    }
    let request = WriteRequest {
        path,
        text: format!("{}\n", edited.text),
        revision: shown.revision,
        create: false,
    };
    match write_notebook(&request, engine) {
        Ok(report) => show_change(&report, console),
        Err(failure) => Err(edited.keep(failure)),
    }
}

fn text(name: &str, text: Option<&String>, file: Option<&String>) -> Result<String, Failure> {
    match (text, file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => text_source::read(file),
        (None, None) => {
            let what = match name {
                "old" => "The text to replace is missing",
                _ => "The replacement is missing",
            };
            Err(Failure::new(Kind::BadArguments, what)
                .hint(hint![
                    "give it with ",
                    flag_value(name, "TEXT"),
                    ", or with ",
                    flag_value(format!("{name}-file"), "FILE"),
                    " (`-` for stdin); on a terminal, `edit` with only a path opens an editor",
                ])
                .hint("nothing was written"))
        }
    }
}
