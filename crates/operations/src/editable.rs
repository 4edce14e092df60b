//! The text of a cell or of a notebook, for an editor of the user.

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_engine::engine::Engine;
use cellwright_execution::Listing;
use cellwright_notebook::edit::Address;
use cellwright_notebook::{
    CellKind, Cells, MarkerStyle, Notebook, NotebookError, append_cell, file,
};

use super::change::BaseRevision;
use super::file_path::FilePath;

/// A text to edit.
#[derive(Debug)]
pub struct EditableText {
    pub text: String,
    /// The revision that the text is from.
    pub revision: BaseRevision,
    /// A name for a file with the text; its extension is that of the language.
    pub file_name: String,
}

/// The source of a cell. `given` is the revision that the caller names, if any: it must be the present one.
pub fn cell_text(
    path: &FilePath,
    cell: &Address,
    given: &BaseRevision,
    engine: &Engine,
) -> Result<EditableText, Failure> {
    let notebook = load(path, given, engine)?;
    let index = cell.resolve(&notebook).map_err(|error| {
        let path = path.display_path().to_owned();
        Failure::from_change_error(NotebookError::Edit { path, error })
    })?;
    let extension = match notebook.kind(index) {
        CellKind::Code => code_extension(&notebook),
        CellKind::Markdown => "md".to_owned(),
        CellKind::Raw => "txt".to_owned(),
    };
    Ok(EditableText {
        text: notebook.source(index).into_owned(),
        revision: BaseRevision::new(Some(notebook.revision().to_string())),
        file_name: format!("{}-cell-{index}.{extension}", stem(path)),
    })
}

/// The text view of a notebook, without its final line break.
pub fn notebook_text(
    path: &FilePath,
    given: &BaseRevision,
    engine: &Engine,
) -> Result<EditableText, Failure> {
    let notebook = load(path, given, engine)?;
    let mut text = String::new();
    for index in 0..notebook.count() {
        let (kind, source) = (notebook.kind(index), notebook.source(index));
        let style = MarkerStyle::Indexes;
        append_cell(&mut text, index, kind, None, &source, style);
    }
    Ok(EditableText {
        text,
        revision: BaseRevision::new(Some(notebook.revision().to_string())),
        file_name: format!("{}.{}", stem(path), code_extension(&notebook)),
    })
}

/// Loads the notebook and stores its baseline, so that the edit can be merged with later changes.
fn load(path: &FilePath, given: &BaseRevision, engine: &Engine) -> Result<Notebook, Failure> {
    let (notebook, _) = file::load_with_notices(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    if !given.includes(notebook.revision()) {
        let message = format!("{} has another revision", path.to_text());
        return Err(Failure::new(Kind::Conflict, message)
            .hint(hint![
                "an editor shows the present text; leave out ",
                flag("rev"),
            ])
            .hint("nothing was written"));
    }
    Ok(notebook)
}

fn stem(path: &FilePath) -> String {
    let stem = path.display_path().file_stem().unwrap_or_default();
    let plain = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    stem.to_string_lossy().chars().map(plain).collect()
}

/// The extension of files in the language of a notebook.
fn code_extension(notebook: &Notebook) -> String {
    let listing = Listing::from_notebook(notebook);
    let language = listing.language().unwrap_or("python").to_lowercase();
    let extension = match language.as_str() {
        "python" | "ipython" => "py",
        "julia" => "jl",
        "javascript" | "node" => "js",
        "typescript" => "ts",
        "bash" | "sh" | "shell" => "sh",
        "rust" => "rs",
        "c++" | "c++11" | "c++14" | "c++17" | "c++20" => "cpp",
        "c#" | "csharp" => "cs",
        "f#" | "fsharp" => "fs",
        "ruby" => "rb",
        "perl" => "pl",
        "haskell" => "hs",
        "kotlin" => "kt",
        "ocaml" => "ml",
        // r, go, sql, lua, scala, java, c and others: the name itself.
        other if other.bytes().all(|b| b.is_ascii_alphanumeric()) => other,
        _ => "txt",
    };
    extension.to_owned()
}
