//! Shows and changes tags and metadata.

use cellwright_diagnostics::failure::{Failure, Kind, flag_value, hint};
use cellwright_diagnostics::json_schema::AnyJson;
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::edit::{Address, Operation};
use cellwright_notebook::metadata::{self, MetadataChange};
use cellwright_notebook::{Cells, Notebook, NotebookError, file};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::cells::{CellRequest, change_cell};
use super::change::{BaseRevision, ChangeReport};
use super::file_path::FilePath;

/// The cells of a notebook that have tags.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TagsReport {
    /// Path of the notebook.
    path: String,
    /// Revision of the notebook.
    pub revision: String,
    /// The cells.
    cells: Vec<TaggedCell>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TaggedCell {
    /// Index in the notebook, from 0.
    index: usize,
    /// Cell id.
    id: Option<String>,
    /// Cell type.
    #[schemars(extend("enum" = ["code", "markdown", "raw"]))]
    cell_type: &'static str,
    /// Tags of the cell.
    tags: Vec<String>,
}

/// Lists the tags of a cell, or of all cells that have some.
pub fn list_tags(
    path: &FilePath,
    cell: Option<&Address>,
    engine: &Engine,
) -> Result<TagsReport, Failure> {
    let (notebook, notices) = load(path, engine)?;
    let only = cell
        .map(|cell| resolve(path, cell, &notebook))
        .transpose()?;
    let cells = (0..notebook.count()).map(|index| TaggedCell {
        index,
        id: notebook.id(index).map(std::borrow::Cow::into_owned),
        cell_type: notebook.kind(index).name(),
        tags: notebook.tags(index).unwrap_or_default(),
    });
    let is_shown = |cell: &TaggedCell| match only {
        Some(only) => cell.index == only,
        None => !cell.tags.is_empty(),
    };
    Ok(TagsReport {
        path: path.to_text(),
        revision: notebook.revision().to_string(),
        cells: cells.filter(is_shown).collect(),
        notices,
    })
}

impl TagsReport {
    /// One line for each cell.
    pub fn text(&self) -> String {
        let line = |cell: &TaggedCell| {
            let id = cell.id.as_deref().map(|id| format!(" id:{id}"));
            let id = id.unwrap_or_default();
            format!("cell:{}{id}  {}\n", cell.index, cell.tags.join(", "))
        };
        self.cells.iter().map(line).collect()
    }
}

/// A request to show or change metadata.
#[derive(Debug)]
pub struct MetadataRequest {
    pub path: FilePath,
    /// The cell; `None` for the notebook, unless the first word names a cell.
    pub cell: Option<Address>,
    /// Keys to show, or `KEY=VALUE` to set. The first may name the cell.
    pub words: Vec<String>,
    /// Keys to remove.
    pub remove: Vec<String>,
    pub revision: BaseRevision,
}

/// The result of a request.
#[derive(Debug)]
pub enum MetadataResult {
    Shown(MetadataReport),
    Changed(ChangeReport),
}

/// Metadata of a cell or of the notebook.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MetadataReport {
    /// Path of the notebook.
    path: String,
    /// Revision of the notebook.
    pub revision: String,
    /// Index of the cell, from 0; `null` for the metadata of the notebook.
    index: Option<usize>,
    /// Cell id.
    id: Option<String>,
    /// The requested key; `null` for all metadata.
    key: Option<String>,
    /// The value of the key; `null` if the key does not exist.
    #[schemars(with = "AnyJson")]
    value: Value,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// The value as JSON, with the spelling of the file.
    #[serde(skip)]
    pub text: String,
}

/// Shows or changes metadata.
pub fn metadata(request: &MetadataRequest, engine: &Engine) -> Result<MetadataResult, Failure> {
    let (notebook, notices) = load(&request.path, engine)?;
    let mut words = &request.words[..];
    let mut cell = request.cell.clone();
    if let (None, Some((first, rest))) = (&cell, words.split_first())
        && let Some(address) = cell_word(first, &notebook)
    {
        cell = Some(address);
        words = rest;
    }
    let (set, shown): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.contains('='));
    let is_change = !set.is_empty() || !request.remove.is_empty();
    if shown.len() > usize::from(!is_change) {
        let message = if is_change {
            format!("`{}` has no value", shown[0])
        } else {
            "Only one key can be shown".to_owned()
        };
        let failure = Failure::new(Kind::BadArguments, message).hint("`KEY=VALUE` sets a value");
        let remove = hint![flag_value("remove", "KEY"), " removes one"];
        return Err(failure.hint(remove).hint("nothing was written"));
    }
    if is_change {
        let mut changes = Vec::new();
        for word in set {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            changes.push(MetadataChange::Set {
                path: metadata::key_path(key),
                json: json_value(value)?,
            });
        }
        changes.extend(request.remove.iter().map(|key| MetadataChange::Remove {
            path: metadata::key_path(key),
        }));
        let request = CellRequest {
            path: request.path.clone(),
            operation: Operation::Metadata { cell, changes },
            revision: request.revision.clone(),
            create: false,
        };
        return change_cell(&request, engine).map(MetadataResult::Changed);
    }
    let index = cell
        .map(|cell| resolve(&request.path, &cell, &notebook))
        .transpose()?;
    let whole = index.map_or(notebook.metadata(), |index| notebook.cell_metadata(index));
    let key = shown.first().map(|key| (*key).clone());
    let json = match &key {
        Some(key) => metadata::find_value(whole, &metadata::key_path(key)),
        None => Some(if whole.is_empty() { b"{}" } else { whole }),
    };
    if let (None, Some(key)) = (json, &key) {
        let message = format!("There is no `{key}` in the metadata");
        return Err(Failure::new(Kind::BadArguments, message).hint("`KEY=VALUE` sets a value"));
    }
    let json = json.unwrap_or_default();
    Ok(MetadataResult::Shown(MetadataReport {
        path: request.path.to_text(),
        revision: notebook.revision().to_string(),
        index,
        id: index.and_then(|index| Some(notebook.id(index)?.into_owned())),
        key,
        value: serde_json::from_slice(json)
            .unwrap_or_else(|_| String::from_utf8_lossy(json).into_owned().into()),
        notices,
        text: metadata::format_json(json) + "\n",
    }))
}

/// The cell that a word names. A word without a prefix is a cell only if a cell has that id.
fn cell_word(word: &str, notebook: &Notebook) -> Option<Address> {
    let address = Address::parse(word)?;
    let is_cell = !matches!(address, Address::ExactId(_)) || address.resolve(notebook).is_ok();
    is_cell.then_some(address)
}

/// The JSON of a value on the command line. Text that does not look like JSON is a string.
fn json_value(text: &str) -> Result<String, Failure> {
    if metadata::is_json(text) {
        return Ok(text.to_owned());
    }
    if text.starts_with(['{', '[', '"']) {
        let failure = Failure::new(Kind::BadArguments, format!("`{text}` is not JSON"));
        return Err(failure.hint("nothing was written"));
    }
    Ok(Value::from(text).to_string())
}

fn load(path: &FilePath, engine: &Engine) -> Result<(Notebook, Vec<UserNotice>), Failure> {
    let (notebook, notices) = file::load_any_format(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    Ok((notebook, notice::describe(&notices)))
}

fn resolve(path: &FilePath, cell: &Address, notebook: &Notebook) -> Result<usize, Failure> {
    cell.resolve(notebook).map_err(|error| {
        let path = path.display_path().to_owned();
        NotebookError::Edit { path, error }.into()
    })
}
