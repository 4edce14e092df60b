//! Reads a notebook or another file as text.

mod plain;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{self, NoticeKind, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::select::{self, Part, Selector, View};
use cellwright_notebook::{
    Cells, MarkerStyle, Notebook, NotebookError, Notice, append_tagged_cell, file, images, outline,
    outputs,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::figures::FiguresReport;
use super::file_path::FilePath;
use super::outline::OutlineReport;
use super::stored_outputs::{self, OutputExtent};

/// A request of `read`.
#[derive(Debug)]
pub struct ReadRequest {
    /// A path or `artifact://N`, with a selector after it.
    pub address: OsString,
    /// How much of the outputs is shown.
    pub outputs: OutputExtent,
}

/// The result of `read`.
#[derive(Debug)]
pub enum ReadResult {
    /// The address of an artifact. The front end reads it in pieces: it can be larger than memory.
    Artifact(String),
    Text(TextResult),
    Outline(OutlineReport),
    Figures(FiguresReport),
}

/// A notebook, or a part of it, as text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TextResult {
    /// Path of the notebook.
    path: String,
    /// The view that the selector names.
    pub view: &'static str,
    /// Revision of the notebook.
    pub revision: String,
    /// `null` for `:raw` and for files that are not notebooks.
    pub total_cells: Option<usize>,
    /// The text as printed, final newline included.
    pub text: String,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// The bytes of `:raw`, if they are not UTF-8.
    #[serde(skip)]
    pub bytes: Option<Vec<u8>>,
    /// Images of the shown outputs.
    #[serde(skip)]
    pub images: Vec<images::StoredImage>,
}

/// Maximum number of images of one view.
const IMAGES_MAX: usize = 50;

/// Reads a notebook or a part of it.
pub fn read(request: &ReadRequest, engine: &Engine) -> Result<ReadResult, Failure> {
    // In a path that is not UTF-8 a selector cannot be recognised.
    let address: &OsStr = &request.address;
    let Some(argument) = address.to_str() else {
        let path = Path::new(address).into();
        return read_selected(&path, &Selector::default(), request.outputs, engine);
    };
    if argument.starts_with("artifact://") {
        return Ok(ReadResult::Artifact(argument.to_owned()));
    }
    if let Some((scheme, _)) = argument.split_once("://") {
        let message = format!("`{scheme}://` addresses cannot be read");
        return Err(Failure::new(Kind::BadArguments, message)
            .hint("give the path of a notebook, or artifact://N"));
    }
    let exists = |path: &str| Path::new(path).symlink_metadata().is_ok();
    let (path, selector) = select::split(argument, &exists)?;
    let path = Path::new(path).into();
    read_selected(&path, &selector, request.outputs, engine)
}

/// Reads the part of a notebook that the selector names.
pub fn read_selected(
    path: &FilePath,
    selector: &Selector,
    extent: OutputExtent,
    engine: &Engine,
) -> Result<ReadResult, Failure> {
    if let Some(text) = plain::read(path, selector, engine)? {
        return Ok(ReadResult::Text(text));
    }
    match selector.view {
        View::Raw => {
            // Only to remember the revision: a file that is not a notebook can be read as well.
            file::read_view(path.open_path(), None, engine.baselines.as_ref()).ok();
            raw(path, &selector.part).map(ReadResult::Text)
        }
        View::Outline => {
            let (notebook, notices) = load(path, engine)?;
            let cells = selected_cells(path, &selector.part, &notebook)?;
            let mut entries = outline::outline(&notebook);
            entries.retain(|entry| cells.contains(&entry.index));
            let mut report = OutlineReport::new(path, &notebook, entries, &notices);
            report.notices.extend(overwritten(path, engine));
            Ok(ReadResult::Outline(report))
        }
        View::Images => {
            let (notebook, notices) = load(path, engine)?;
            let cells = selected_cells(path, &selector.part, &notebook)?;
            let report = FiguresReport::new(path, &notebook, &cells, &notices);
            Ok(ReadResult::Figures(report))
        }
        View::Text => text(path, selector, extent, engine).map(ReadResult::Text),
    }
}

fn text(
    path: &FilePath,
    selector: &Selector,
    extent: OutputExtent,
    engine: &Engine,
) -> Result<TextResult, Failure> {
    let markers = if selector.ids {
        MarkerStyle::Ids
    } else {
        MarkerStyle::Indexes
    };
    let whole = matches!(selector.part, Part::All | Part::Lines(_)) && !selector.outputs;
    let mut stored_images = Vec::new();
    let mut truncated_cells = Vec::new();
    let (mut view, revision, total, notices) = if whole {
        // The whole view is built while the file is scanned, so that outputs never stay in memory.
        let view = file::read_view(path.open_path(), Some(markers), engine.baselines.as_ref())
            .map_err(|error| path.failure(error))?;
        (view.text, view.revision, view.count, view.notices)
    } else {
        let (notebook, notices) = load(path, engine)?;
        let cells = selected_cells(path, &selector.part, &notebook)?;
        let mut view = String::new();
        for &cell in &cells {
            append_source(&mut view, &notebook, cell, markers);
            if selector.outputs {
                let stored = outputs::stored_outputs(&notebook, cell);
                let shown = stored_outputs::render(stored, extent);
                outputs::append_output_text(&mut view, cell, &shown.text);
                if shown.is_truncated {
                    truncated_cells.push(cell);
                }
                let left = IMAGES_MAX - stored_images.len();
                stored_images.extend(images::images(&notebook, cell).into_iter().take(left));
            }
        }
        (view, notebook.revision(), notebook.count(), notices)
    };
    let mut notices = notice::describe(&notices);
    notices.extend(truncation_notice(&truncated_cells));
    notices.extend(overwritten(path, engine));
    let text = if let Part::Lines(ranges) = &selector.part {
        let (text, skipped) = select::select_lines(&view, ranges)?;
        notices.extend(notice::describe(&skipped));
        text
    } else {
        view.push('\n');
        view
    };
    Ok(TextResult {
        path: path.to_text(),
        view: if selector.outputs { "outputs" } else { "text" },
        revision: revision.to_string(),
        total_cells: Some(total),
        text,
        notices,
        bytes: None,
        images: stored_images,
    })
}

/// The notice that an earlier write has been overwritten by a page.
fn overwritten(path: &FilePath, engine: &Engine) -> Vec<UserNotice> {
    let notice = engine.open_notebooks.overwritten(path.open_path());
    notice::describe(&Vec::from_iter(notice))
}

fn load(path: &FilePath, engine: &Engine) -> Result<(Notebook, Vec<Notice>), Failure> {
    file::load_any_format(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))
}

fn append_source(view: &mut String, notebook: &Notebook, index: usize, markers: MarkerStyle) {
    append_tagged_cell(
        view,
        index,
        notebook.kind(index),
        notebook.id(index).as_deref(),
        &notebook.tags(index).unwrap_or_default(),
        &notebook.source(index),
        markers,
    );
}

fn truncation_notice(cells: &[usize]) -> Option<UserNotice> {
    /// Maximum number of cells to name.
    const NAMED_MAX: usize = 5;
    let named = cells.iter().take(NAMED_MAX).map(usize::to_string);
    let mut named = named.collect::<Vec<_>>().join(", ");
    if cells.len() > NAMED_MAX {
        named.push_str(&format!(" and {} more", cells.len() - NAMED_MAX));
    }
    let text = match cells.len() {
        0 => return None,
        1 => format!("the output of cell {named} is shortened"),
        _ => format!("the outputs of cells {named} are shortened"),
    };
    Some(UserNotice::new(NoticeKind::StoredOutputTruncated, text))
}

fn selected_cells(
    path: &FilePath,
    part: &Part,
    notebook: &Notebook,
) -> Result<Vec<usize>, Failure> {
    select::select_cells(part, notebook).map_err(|error| {
        let path = path.display_path().to_owned();
        NotebookError::Edit { path, error }.into()
    })
}

fn raw(path: &FilePath, part: &Part) -> Result<TextResult, Failure> {
    let bytes = file::load_raw(path.open_path()).map_err(|error| path.failure(error))?;
    let revision = cellwright_notebook::Revision::compute(&bytes).to_string();
    let mut notices = Vec::new();
    let (text, bytes) = match part {
        Part::Lines(ranges) => {
            let whole = String::from_utf8_lossy(&bytes);
            let whole = whole.strip_suffix('\n').unwrap_or(&whole);
            let (text, skipped) = select::select_lines(whole, ranges)?;
            notices = notice::describe(&skipped);
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
    Ok(TextResult {
        path: path.to_text(),
        view: "raw",
        revision,
        total_cells: None,
        text,
        notices,
        bytes,
        images: Vec::new(),
    })
}
