//! `read`: a notebook as text, or an artifact.

use std::ffi::OsString;
use std::path::Path;

use cellwright_notebook::select::{self, Part, Selector, View};
use cellwright_notebook::{
    Cells, Markers, Notebook, NotebookError, append_cell, file, outline, outputs,
};
use clap::Args;
use serde::Serialize;

use super::notebook::OutlineAnswer;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::notice::{self, Told};
use crate::screen::Screen;

/// Arguments of `read`.
#[derive(Debug, Args)]
#[command(after_help = "\
Selectors, behind the path:
  :10  :10-20  :10-  :10+5  :3,7-9    lines of the text
  :cells=3  :cells=3-5,8  :id=ab12    cells by index (from 0) or id
  :ids                                cell ids in the markers
  :outputs                            outputs too, fenced; `write` ignores them
  :outline                            one line for each cell
  :raw  :raw:1-20                     the file's JSON

Examples:
  cellwright read analysis.ipynb
  cellwright read analysis.ipynb:cells=3-5
  cellwright read analysis.ipynb:outputs --json
  cellwright read artifact://12:1-40
  cellwright read a.ipynb | sed 's/colour/color/' | cellwright write a.ipynb")]
pub(crate) struct ReadArgs {
    /// The notebook (or `artifact://N`), with a selector behind it if only a part is wanted
    #[arg(value_name = "PATH[:SELECTOR]")]
    pub(crate) path: OsString,
}

/// What `read` answers.
#[derive(Debug)]
pub(crate) enum ReadAnswer {
    /// Printed as it is read: it may be larger than memory.
    Artifact(String),
    Text(TextAnswer),
    Outline(OutlineAnswer),
}

/// A notebook, or a part of it, as text.
#[derive(Debug, Serialize)]
pub(crate) struct TextAnswer {
    path: String,
    view: &'static str,
    revision: String,
    /// `null` for `:raw`, where nothing is counted.
    total_cells: Option<usize>,
    /// The text as printed, final newline included.
    pub(crate) text: String,
    notices: Vec<Told>,
    /// The bytes of `:raw`, when they are no text.
    #[serde(skip)]
    bytes: Option<Vec<u8>>,
}

impl ReadAnswer {
    pub(crate) fn show(&self, engine: &Engine, screen: &Screen) -> Result<(), Failure> {
        match self {
            Self::Artifact(address) => super::artifact::read(address, engine, screen),
            Self::Outline(answer) => answer.show(screen),
            Self::Text(answer) if screen.json => screen.document(answer),
            Self::Text(answer) => {
                screen.notices(&answer.notices);
                match &answer.bytes {
                    Some(bytes) => screen.raw(bytes)?,
                    None if answer.view == "raw" => screen.raw(answer.text.as_bytes())?,
                    None => screen.data(&answer.text)?,
                }
                screen.remark(&format!("revision: {}", answer.revision));
                Ok(())
            }
        }
    }
}

/// Reads a notebook or a part of it.
pub(crate) fn read(args: &ReadArgs, engine: &Engine) -> Result<ReadAnswer, Failure> {
    // A name that is not UTF-8 has no selector that could be told apart from it.
    let Some(argument) = args.path.to_str() else {
        return text(Path::new(&args.path), &Selector::default(), engine).map(ReadAnswer::Text);
    };
    if argument.starts_with("artifact://") {
        return Ok(ReadAnswer::Artifact(argument.to_owned()));
    }
    if let Some((scheme, _)) = argument.split_once("://") {
        let message = format!("`{scheme}://` addresses cannot be read in this version");
        return Err(Failure::new(Kind::BadArguments, message)
            .hint("give the path of a notebook, or artifact://N"));
    }
    let exists = |path: &str| Path::new(path).symlink_metadata().is_ok();
    let (path, selector) = select::split(argument, &exists)?;
    read_selected(Path::new(path), &selector, engine)
}

/// Reads what a selector says of a notebook.
pub(crate) fn read_selected(
    path: &Path,
    selector: &Selector,
    engine: &Engine,
) -> Result<ReadAnswer, Failure> {
    match selector.view {
        View::Raw => {
            // For the revision alone: what is no notebook can be looked at all the same.
            file::glance(path, None, engine.baselines.as_ref()).ok();
            raw(path, &selector.part).map(ReadAnswer::Text)
        }
        View::Outline => {
            let notebook = file::load(path)?;
            file::remember(&notebook, engine.baselines.as_ref());
            let cells = chosen(path, &selector.part, &notebook)?;
            let mut entries = outline::outline(&notebook);
            entries.retain(|entry| cells.contains(&entry.index));
            Ok(ReadAnswer::Outline(OutlineAnswer::new(
                path, &notebook, entries,
            )))
        }
        View::Text => text(path, selector, engine).map(ReadAnswer::Text),
    }
}

fn text(path: &Path, selector: &Selector, engine: &Engine) -> Result<TextAnswer, Failure> {
    let markers = if selector.ids {
        Markers::Ids
    } else {
        Markers::Indexes
    };
    let whole = matches!(selector.part, Part::All | Part::Lines(_)) && !selector.outputs;
    let glance = file::glance(path, whole.then_some(markers), engine.baselines.as_ref())?;
    let mut revision = glance.revision;
    let mut total = glance.count;
    let mut view = glance.text;
    if !whole {
        let notebook = file::load(path)?;
        let cells = chosen(path, &selector.part, &notebook)?;
        view = some_cells(&notebook, &cells, markers, selector.outputs);
        revision = notebook.revision();
        total = notebook.count();
    }
    let mut notices = notice::tell(&glance.notices);
    let text = if let Part::Lines(ranges) = &selector.part {
        let (text, skipped) = select::select_lines(&view, ranges)?;
        notices.extend(notice::tell(&skipped));
        text
    } else {
        view.push('\n');
        view
    };
    Ok(TextAnswer {
        path: path.display().to_string(),
        view: if selector.outputs { "outputs" } else { "text" },
        revision: revision.to_string(),
        total_cells: Some(total),
        text,
        notices,
        bytes: None,
    })
}

fn some_cells(notebook: &Notebook, cells: &[usize], markers: Markers, outputs: bool) -> String {
    let mut view = String::new();
    for &index in cells {
        let id = notebook.id(index);
        append_cell(
            &mut view,
            index,
            notebook.kind(index),
            id.as_deref(),
            &notebook.source(index),
            markers,
        );
        if outputs {
            outputs::append_with_outputs(&mut view, notebook, index, outputs::Cap::default());
        }
    }
    view
}

fn chosen(path: &Path, part: &Part, notebook: &Notebook) -> Result<Vec<usize>, Failure> {
    select::select_cells(part, notebook).map_err(|error| {
        let path = path.to_owned();
        NotebookError::Edit { path, error }.into()
    })
}

fn raw(path: &Path, part: &Part) -> Result<TextAnswer, Failure> {
    let bytes = file::load_raw(path)?;
    let revision = cellwright_notebook::Revision::of(&bytes).to_string();
    let mut notices = Vec::new();
    let (text, bytes) = match part {
        Part::Lines(ranges) => {
            let whole = String::from_utf8_lossy(&bytes);
            let whole = whole.strip_suffix('\n').unwrap_or(&whole);
            let (text, skipped) = select::select_lines(whole, ranges)?;
            notices = notice::tell(&skipped);
            (text, None)
        }
        _ => match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => (
                String::from_utf8_lossy(error.as_bytes()).into_owned(),
                Some(error.into_bytes()),
            ),
        },
    };
    Ok(TextAnswer {
        path: path.display().to_string(),
        view: "raw",
        revision,
        total_cells: None,
        text,
        notices,
        bytes,
    })
}
