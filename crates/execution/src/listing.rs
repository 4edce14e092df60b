//! [`Listing`]: the cells of a notebook with the data that decides which of them run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cellwright_notebook::file::Survey;
use cellwright_notebook::{CellKind, CellTexts, Cells, Notebook};
use serde_json::Value;

use crate::{lenient_json, notebook_metadata};

/// The cells of a notebook and its metadata.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    texts: Arc<CellTexts>,
    /// Tags and durations of the cells that have some, by index. Most cells of a large notebook have none.
    tags: BTreeMap<usize, Vec<String>>,
    last_durations: BTreeMap<usize, Duration>,
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
        let mut listing = Self::default();
        let mut texts = CellTexts::default();
        for (index, cell) in cells.into_iter().enumerate() {
            texts.push(cell.kind, cell.id.as_deref(), &cell.source);
            listing.add_details(index, cell.tags, cell.last_duration);
        }
        listing.texts = Arc::new(texts);
        listing
    }

    /// Lists the cells of a file.
    pub fn from_survey(survey: &Survey) -> Self {
        Self::from_texts(survey.texts(), survey.metadata(), |index| {
            survey.cell_metadata(index)
        })
    }

    /// Lists the cells of a notebook in memory.
    pub fn from_notebook(notebook: &Notebook) -> Self {
        let mut texts = CellTexts::default();
        for index in 0..notebook.count() {
            let (kind, id) = (notebook.kind(index), notebook.id(index));
            texts.push(kind, id.as_deref(), &notebook.source(index));
        }
        Self::from_texts(Arc::new(texts), notebook.metadata(), |index| {
            notebook.cell_metadata(index)
        })
    }

    fn from_texts<'c>(
        texts: Arc<CellTexts>,
        metadata: &[u8],
        metadata_of: impl Fn(usize) -> &'c [u8],
    ) -> Self {
        let mut listing = Self {
            texts,
            metadata: lenient_json::parse(metadata),
            ..Self::default()
        };
        for index in 0..listing.count() {
            let metadata = parse_metadata(metadata_of(index));
            let last_duration = notebook_metadata::execution_duration(&metadata["execution"]);
            listing.add_details(index, tags(&metadata), last_duration);
        }
        listing
    }

    fn add_details(&mut self, index: usize, tags: Vec<String>, last_duration: Option<Duration>) {
        if !tags.is_empty() {
            self.tags.insert(index, tags);
        }
        if let Some(last_duration) = last_duration {
            self.last_durations.insert(index, last_duration);
        }
    }

    /// The ids of all cells that have one.
    pub fn ids(&self) -> Vec<String> {
        let ids = (0..self.count()).filter_map(|index| self.id(index));
        ids.map(Cow::into_owned).collect()
    }

    /// Types, ids and sources of the cells.
    pub(crate) fn texts(&self) -> Arc<CellTexts> {
        Arc::clone(&self.texts)
    }

    /// Copies of the cells.
    pub fn cells(&self) -> impl Iterator<Item = ListedCell> {
        (0..self.count()).map(|index| ListedCell {
            kind: self.kind(index),
            id: self.id(index).map(Cow::into_owned),
            source: self.source(index).into_owned(),
            tags: self.cell_tags(index).to_vec(),
            last_duration: self.last_duration(index),
        })
    }

    /// The tags of a cell.
    pub fn cell_tags(&self, index: usize) -> &[String] {
        self.tags.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Duration of the last execution of a cell, if its metadata has the times.
    pub fn last_duration(&self, index: usize) -> Option<Duration> {
        self.last_durations.get(&index).copied()
    }

    /// Whether a cell has a tag.
    pub fn has_tag(&self, index: usize, tag: &str) -> bool {
        self.cell_tags(index).iter().any(|own| own == tag)
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
        self.texts.count()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.texts.kind(index)
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        self.texts.source(index)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.texts.id(index)
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
