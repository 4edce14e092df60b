//! `notebook tag` and `notebook meta`: tags and metadata.

use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_engine::engine::Engine;
use cellwright_execution::tag_changes;
use cellwright_notebook::edit::{Address, Operation};
use cellwright_operations::cells::CellRequest;
use cellwright_operations::metadata::{
    MetadataRequest, MetadataResult, list_tags, metadata as show_or_change,
};
use clap::Args;

use super::cells::{address, change};
use crate::console::Console;
use crate::verbs::change::show_change;
use crate::verbs::write::RevisionArg;

/// Arguments of `notebook tag`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without tags, the tags are listed. Flags precede the cell.

Examples:
  cellwright notebook tag a.ipynb
  cellwright notebook tag a.ipynb 0 parameters
  cellwright notebook tag a.ipynb id:ab12 +slow -draft")]
pub(super) struct TagArgs {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…`
    #[arg(value_parser = address)]
    cell: Option<Address>,
    /// Tags to add (`x` or `+x`) and to remove (`-x`)
    #[arg(value_name = "TAG", allow_hyphen_values = true)]
    tags: Vec<String>,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Lists or changes tags.
pub(super) fn tag(args: &TagArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let path = args.path.as_path().into();
    if args.tags.is_empty() {
        let report = list_tags(&path, args.cell.as_ref(), engine)?;
        if console.json {
            return console.print_json(&report);
        }
        console.print_notices(&report.notices);
        console.print(&report.text())?;
        console.note(&format!("revision: {}", report.revision));
        return Ok(());
    }
    if let Some(flag) = args.tags.iter().find(|tag| tag.starts_with("--")) {
        let failure = Failure::new(Kind::BadArguments, format!("`{flag}` is not a tag"));
        let failure = failure.hint(hint![
            "flags precede the cell: ",
            command("notebook tag --rev REV PATH CELL TAG"),
        ]);
        return Err(failure.hint("nothing was written"));
    }
    let request = CellRequest {
        path,
        operation: Operation::Metadata {
            cell: args.cell.clone(),
            changes: tag_changes(&args.tags),
        },
        revision: args.revision.base(),
        create: false,
    };
    change(&request, engine, console)
}

/// Arguments of `notebook meta`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a cell, the metadata is that of the notebook. A key may be a path of names joined by dots, or a JSON pointer such \
as `/a.b/c`. A value is JSON; other text is a string. Values that nbformat does not allow are rejected.

Examples:
  cellwright notebook meta a.ipynb
  cellwright notebook meta a.ipynb kernelspec.name
  cellwright notebook meta a.ipynb title='Sales 2026'
  cellwright notebook meta a.ipynb 3 jupyter.source_hidden=true
  cellwright notebook meta a.ipynb id:ab12 --remove collapsed")]
pub(super) struct MetaArgs {
    /// Notebook
    path: PathBuf,
    /// Cell (an index or `id:…`) and keys: `KEY` shows a value, `KEY=VALUE` sets it
    #[arg(value_name = "[CELL] KEY[=VALUE]")]
    words: Vec<String>,
    /// Remove a key
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    #[command(flatten)]
    revision: RevisionArg,
}

/// Shows or changes metadata.
pub(super) fn meta(args: &MetaArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let request = MetadataRequest {
        path: args.path.as_path().into(),
        cell: None,
        words: args.words.clone(),
        remove: args.remove.clone(),
        revision: args.revision.base(),
    };
    match show_or_change(&request, engine)? {
        MetadataResult::Changed(report) => show_change(&report, console),
        MetadataResult::Shown(report) if console.json => console.print_json(&report),
        MetadataResult::Shown(report) => {
            console.print_notices(&report.notices);
            console.print(&report.text)?;
            console.note(&format!("revision: {}", report.revision));
            Ok(())
        }
    }
}
