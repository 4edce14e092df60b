//! The representations of one displayed value by MIME type, in order of arrival.

use serde_json::{Map, Value};

use crate::stored_value::StoredValue;

/// One representation.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Text, such as `text/plain` or `image/svg+xml`.
    Text(String),
    /// A JSON value, such as `application/json`.
    Json(Value),
    /// Bytes, such as `image/png`. Notebook outputs contain them as base64.
    Bytes(Vec<u8>),
    /// Any of these, stored in a file.
    Stored(StoredValue),
}

impl Data {
    /// Returns the approximate size in bytes, in memory or in a file.
    pub fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Json(value) => json_memory_size(value),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored(stored) => stored.size(),
        }
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn memory_size(&self) -> u64 {
        match self {
            Self::Stored(_) => 0,
            data => data.size(),
        }
    }
}

/// All representations of one value, with their metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// MIME types and representations, in order of arrival.
    pub data: Vec<(String, Data)>,
    /// Metadata, such as an image's width.
    pub metadata: Map<String, Value>,
}

impl Bundle {
    /// Creates a bundle with one text representation.
    pub fn text(mime: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            data: vec![(mime.into(), Data::Text(text.into()))],
            metadata: Map::new(),
        }
    }

    /// Adds a representation.
    #[must_use]
    pub fn with(mut self, mime: impl Into<String>, data: Data) -> Self {
        self.data.push((mime.into(), data));
        self
    }

    /// Returns the representation with a MIME type.
    pub fn get(&self, mime: &str) -> Option<&Data> {
        self.data
            .iter()
            .find_map(|(name, data)| (name == mime).then_some(data))
    }

    /// Returns the approximate size in bytes, in memory and in files.
    pub fn size(&self) -> u64 {
        self.sum_sizes(Data::size)
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn memory_size(&self) -> u64 {
        self.sum_sizes(Data::memory_size)
    }

    fn sum_sizes(&self, one: fn(&Data) -> u64) -> u64 {
        let data = self.data.iter();
        let data: u64 = data.map(|(mime, data)| mime.len() as u64 + one(data)).sum();
        data + map_memory_size(&self.metadata)
    }
}

/// Returns the size of metadata in memory, in bytes.
pub(crate) fn map_memory_size(map: &Map<String, Value>) -> u64 {
    map.iter()
        .map(|(key, value)| key.len() as u64 + json_memory_size(value))
        .sum()
}

/// Returns the size of a value in memory, in bytes. That is more than its text: a list takes 32 bytes per
/// item.
pub(crate) fn json_memory_size(value: &Value) -> u64 {
    const NODE: u64 = size_of::<Value>() as u64;
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(json_memory_size).sum(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| 2 * NODE + key.len() as u64 + json_memory_size(value))
            .sum(),
    }
}
