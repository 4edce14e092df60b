//! [`Listing`]: the cells of a notebook with the data that decides which of them run.

use std::borrow::Cow;
use std::time::Duration;

use cellwright_notebook::file::Survey;
use cellwright_notebook::{CellKind, Cells, Notebook};
use serde_json::Value;

use crate::{lenient_json, notebook_metadata};

/// The cells of a notebook and its metadata.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    cells: Vec<ListedCell>,
    metadata: Value,
}

/// One cell of a [`Listing`].
#[derive(Clone, Debug)]
pub struct ListedCell {
    /// Cell type.
    pub kind: CellKind,
    /// Cell id.
    pub id: Option<String>,
    /// Source.
    pub source: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Duration of the last execution, if the cell metadata has its times.
    pub last_duration: Option<Duration>,
}

impl Listing {
    /// A listing of these cells, without notebook metadata.
    pub fn new(cells: Vec<ListedCell>) -> Self {
        Self {
            cells,
            metadata: Value::Null,
        }
    }

    /// Lists the cells of a file.
    pub fn from_survey(survey: &Survey) -> Self {
        Self::from_cells(survey, survey.metadata(), |index| {
            survey.cell_metadata(index)
        })
    }

    /// Lists the cells of a notebook in memory.
    pub fn from_notebook(notebook: &Notebook) -> Self {
        Self::from_cells(notebook, notebook.metadata(), |index| {
            notebook.cell_metadata(index)
        })
    }

    fn from_cells<'c>(
        cells: &'c dyn Cells,
        metadata: &[u8],
        metadata_of: impl Fn(usize) -> &'c [u8],
    ) -> Self {
        let listed = |index: usize| {
            let metadata = parse_metadata(metadata_of(index));
            ListedCell {
                kind: cells.kind(index),
                id: cells.id(index).map(Cow::into_owned),
                source: cells.source(index).into_owned(),
                tags: tags(&metadata),
                last_duration: notebook_metadata::execution_duration(&metadata["execution"]),
            }
        };
        Self {
            cells: (0..cells.count()).map(listed).collect(),
            metadata: lenient_json::parse(metadata),
        }
    }

    /// The cells.
    pub fn cells(&self) -> &[ListedCell] {
        &self.cells
    }

    /// The ids of all cells that have one.
    pub fn ids(&self) -> Vec<String> {
        let ids = self.cells.iter().filter_map(|cell| cell.id.clone());
        ids.collect()
    }

    /// Whether a cell has a tag.
    pub fn has_tag(&self, index: usize, tag: &str) -> bool {
        self.cells[index].tags.iter().any(|own| own == tag)
    }

    /// Name of the kernelspec in the notebook metadata.
    pub fn kernel_name(&self) -> Option<&str> {
        self.metadata["kernelspec"]["name"]
            .as_str()
            .filter(|name| !name.is_empty())
    }

    /// The `kernelspec` metadata of the notebook.
    pub fn kernelspec(&self) -> &Value {
        &self.metadata["kernelspec"]
    }

    /// The `language_info` metadata of the notebook.
    pub fn language_info(&self) -> &Value {
        &self.metadata["language_info"]
    }

    /// Language of the notebook, from its metadata.
    pub fn language(&self) -> Option<&str> {
        let names = [
            &self.metadata["kernelspec"]["language"],
            &self.metadata["language_info"]["name"],
        ];
        names
            .into_iter()
            .filter_map(Value::as_str)
            .find(|name| !name.is_empty())
    }
}

impl Cells for Listing {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.cells[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        Cow::Borrowed(&self.cells[index].source)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.cells[index].id.as_deref().map(Cow::Borrowed)
    }
}

/// Parses the metadata of a cell.
fn parse_metadata(metadata: &[u8]) -> Value {
    // Most cells have none (`{}`), and a notebook may have very many cells.
    if metadata.len() <= 2 {
        return Value::Null;
    }
    lenient_json::parse(metadata)
}

fn tags(metadata: &Value) -> Vec<String> {
    let tags = metadata["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect()
}
