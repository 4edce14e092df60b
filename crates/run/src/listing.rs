//! [`Listing`]: a notebook's cells as far as it matters which of them run.

use std::borrow::Cow;
use std::time::Duration;

use cellwright_notebook::file::Survey;
use cellwright_notebook::{CellKind, Cells, Notebook};
use serde_json::Value;

use crate::{about, lenient};

/// The cells of a notebook.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    cells: Vec<Listed>,
    metadata: Value,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its kind.
    pub kind: CellKind,
    /// Its id.
    pub id: Option<String>,
    /// Its source.
    pub source: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// How long it took when it ran before, if the notebook tells.
    pub took: Option<Duration>,
}

impl Listing {
    /// These cells.
    pub fn new(cells: Vec<Listed>) -> Self {
        Self {
            cells,
            metadata: Value::Null,
        }
    }

    /// The cells of a file.
    pub fn of_survey(survey: &Survey) -> Self {
        Self::of(survey, survey.metadata(), |index| {
            survey.cell_metadata(index)
        })
    }

    /// The cells of a notebook that is in memory.
    pub fn of_notebook(notebook: &Notebook) -> Self {
        Self::of(notebook, notebook.metadata(), |index| {
            notebook.cell_metadata(index)
        })
    }

    fn of<'c>(cells: &'c dyn Cells, metadata: &[u8], said: impl Fn(usize) -> &'c [u8]) -> Self {
        let listed = |index: usize| {
            let said = about(said(index));
            Listed {
                kind: cells.kind(index),
                id: cells.id(index).map(Cow::into_owned),
                source: cells.source(index).into_owned(),
                tags: tags(&said),
                took: about::took(&said["execution"]),
            }
        };
        Self {
            cells: (0..cells.count()).map(listed).collect(),
            metadata: lenient::read(metadata),
        }
    }

    /// The cells.
    pub fn cells(&self) -> &[Listed] {
        &self.cells
    }

    /// Whether a cell has a tag.
    pub fn has_tag(&self, index: usize, tag: &str) -> bool {
        self.cells[index].tags.iter().any(|own| own == tag)
    }

    /// The name of the kernel that the notebook asks for.
    pub fn kernel(&self) -> Option<&str> {
        self.metadata["kernelspec"]["name"]
            .as_str()
            .filter(|name| !name.is_empty())
    }

    /// What the notebook says about its kernel.
    pub fn kernelspec(&self) -> &Value {
        &self.metadata["kernelspec"]
    }

    /// What the notebook says about its language.
    pub fn language_info(&self) -> &Value {
        &self.metadata["language_info"]
    }

    /// The language that the notebook says it is in.
    pub fn language(&self) -> Option<&str> {
        let said = [
            &self.metadata["kernelspec"]["language"],
            &self.metadata["language_info"]["name"],
        ];
        said.into_iter()
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

/// What a cell says about itself.
fn about(metadata: &[u8]) -> Value {
    // Most cells say nothing, and a notebook may have very many cells.
    if metadata.len() <= 2 {
        return Value::Null;
    }
    lenient::read(metadata)
}

fn tags(said: &Value) -> Vec<String> {
    let tags = said["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag.as_str().map(str::to_owned))
        .collect()
}
