//! The representations of one displayed value, by MIME type, in the order in which they came.

use serde_json::{Map, Value};

use crate::stored::Stored;

/// One representation.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Text, such as `text/plain` or `image/svg+xml`.
    Text(String),
    /// A JSON value, such as `application/json`.
    Json(Value),
    /// Bytes, such as `image/png`. They become base64 only when notebook outputs are written.
    Bytes(Vec<u8>),
    /// Any of these, not in memory.
    Stored(Stored),
}

impl Data {
    /// About how many bytes the value takes, in memory or in a file.
    pub fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Json(value) => json_size(value),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stored(stored) => stored.size(),
        }
    }

    /// About how many bytes the value takes in memory.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Stored(_) => 0,
            held => held.size(),
        }
    }
}

/// All representations of one value, and what is said about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// MIME type and representation, in the order in which they came.
    pub data: Vec<(String, Data)>,
    /// Metadata, such as an image's width.
    pub metadata: Map<String, Value>,
}

impl Bundle {
    /// A bundle with one text representation.
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

    /// The representation of a MIME type.
    pub fn get(&self, mime: &str) -> Option<&Data> {
        self.data
            .iter()
            .find_map(|(name, data)| (name == mime).then_some(data))
    }

    /// About how many bytes the bundle takes.
    pub fn size(&self) -> u64 {
        self.measure(Data::size)
    }

    /// About how many bytes the bundle takes in memory.
    pub(crate) fn held(&self) -> u64 {
        self.measure(Data::held)
    }

    fn measure(&self, one: fn(&Data) -> u64) -> u64 {
        let data = self.data.iter();
        let data: u64 = data.map(|(mime, data)| mime.len() as u64 + one(data)).sum();
        data + map_size(&self.metadata)
    }
}

/// What metadata costs in memory.
pub(crate) fn map_size(map: &Map<String, Value>) -> u64 {
    map.iter()
        .map(|(key, value)| key.len() as u64 + json_size(value))
        .sum()
}

/// What a value costs in memory, which is more than its text: a list of ones takes 32 bytes an item.
pub(crate) fn json_size(value: &Value) -> u64 {
    const NODE: u64 = size_of::<Value>() as u64;
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(json_size).sum(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| 2 * NODE + key.len() as u64 + json_size(value))
            .sum(),
    }
}
