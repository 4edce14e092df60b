//! `read`: a notebook or another file as text, or an artifact.

use std::ffi::OsString;
use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::select;
use cellwright_operations::artifact::current_project_store;
use cellwright_operations::read::{ReadRequest, ReadResult, read as read_notebook, read_selected};
use cellwright_operations::stored_outputs::OutputExtent;
use clap::Args;

use super::artifact::print_artifact;
use super::notebook::{show_figures, show_outline};
use super::notebook_input::NotebookInput;
use crate::console::Console;

/// Arguments of `read`.
#[derive(Debug, Args)]
#[command(after_help = "\
Selectors, after the path:
  :10  :10-20  :10-  :10+5  :3,7-9    lines of the text, also of other text files
  :cells=3  :cells=3-5,8  :id=ab12    cells by index (from 0) or id
  :ids                                cell ids in the markers
  :outputs                            outputs too, fenced; `write` ignores them
  :images                             the images, stored as artifacts
  :outline                            one line for each cell
  :raw  :raw:1-20                     the file's JSON

Examples:
  cellwright read analysis.ipynb
  cellwright read analysis.ipynb:cells=3-5
  cellwright read analysis.ipynb:outputs --json
  cellwright read artifact://12:1-40
  git show HEAD:a.ipynb | cellwright read -
  cellwright read a.ipynb | sed 's/colour/color/' | cellwright write a.ipynb")]
pub(crate) struct ReadArgs {
    /// Notebook, text file, `artifact://N`, or `-` for stdin, with an optional selector
    #[arg(value_name = "PATH[:SELECTOR]")]
    path: OsString,

    /// Show whole outputs, not only their beginning and end
    #[arg(long)]
    full: bool,
}

/// Reads what the argument names: `-` is stdin.
fn find(args: &ReadArgs, engine: &Engine, console: &Console) -> Result<ReadResult, Failure> {
    let outputs = if args.full {
        OutputExtent::Full
    } else {
        OutputExtent::Bounded
    };
    let is_stdin = |path: &str| path == "-";
    let from_stdin = args.path.to_str().filter(|path| {
        is_stdin(path)
            || path
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(':'))
    });
    let Some(address) = from_stdin else {
        let address = args.path.clone();
        return read_notebook(&ReadRequest { address, outputs }, engine);
    };
    let (path, selector) = select::split(address, &is_stdin)?;
    let input = NotebookInput::open(Path::new(path), console)?;
    read_selected(input.file(), &selector, outputs, engine)
}

/// Reads a notebook, or a part of it, and prints it.
pub(crate) fn read(args: &ReadArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    match find(args, engine, console)? {
        ReadResult::Artifact(address) => print_artifact(&address, engine, console),
        ReadResult::Outline(report) => show_outline(&report, console),
        ReadResult::Figures(mut report) => {
            report.store_as_artifacts(&current_project_store(engine)?)?;
            show_figures(&report, console)
        }
        ReadResult::Text(text) if console.json => console.print_json(&text),
        ReadResult::Text(text) => {
            console.print_notices(&text.notices);
            match &text.bytes {
                Some(bytes) => console.print_bytes_as_text(bytes)?,
                None if matches!(text.view, "raw" | "file") => {
                    console.print_bytes_as_text(text.text.as_bytes())?;
                }
                None => console.print(&text.text)?,
            }
            // Only notebooks can be edited.
            if text.view != "file" {
                console.note(&format!("revision: {}", text.revision));
            }
            Ok(())
        }
    }
}
