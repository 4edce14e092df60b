//! Arguments of tools: their schemas, and their values as models write them.
//!
//! One table per tool ([`Argument`]) is the source of its JSON Schema and of [`parse`], which accepts other names and
//! other types of the same value: numbers as text, one cell instead of a list, JSON as text. Hosts check calls against
//! the schema before they send them, so the schema allows the same types.

mod normalize;

use cellwright_engine::settings::Backend;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use normalize::parse;

/// An argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// Names that models know from other tools.
    aliases: &'static [&'static str],
    kind: ArgumentKind,
    description: &'static str,
    is_required: bool,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentKind {
    Text,
    Boolean,
    Integer,
    /// A number of seconds.
    Seconds,
    /// A number from 0 up to 1.
    Fraction,
    /// A cell: an index or an id.
    Cell,
    /// Several cells: a selection as text, one cell, or a list.
    Cells,
    /// A list of texts, or one text.
    Texts,
    OneOf(&'static [&'static str]),
    /// The name of a backend.
    Backend,
    /// An object with any members.
    Object,
    /// A list of objects with these members. A text stands for an object with only the first member.
    Objects(&'static [Argument]),
}

impl Argument {
    /// An optional argument.
    pub(super) const fn new(name: &'static str, kind: ArgumentKind) -> Self {
        Self {
            name,
            aliases: &[],
            kind,
            description: "",
            is_required: false,
        }
    }

    /// Adds other names.
    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Adds a description for models.
    pub(super) const fn describe(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Makes the argument required.
    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            ArgumentKind::Text => json!({"type": "string"}),
            ArgumentKind::Boolean => json!({"type": ["boolean", "string"]}),
            ArgumentKind::Integer => json!({"type": ["integer", "string"]}),
            ArgumentKind::Seconds | ArgumentKind::Fraction => json!({"type": ["number", "string"]}),
            ArgumentKind::Cell => json!({"type": ["string", "integer"]}),
            ArgumentKind::Cells => json!({
                "type": ["string", "integer", "array"], "items": {"type": ["string", "integer"]},
            }),
            ArgumentKind::Texts => json!({
                "type": ["array", "string"], "items": {"type": "string"},
            }),
            ArgumentKind::OneOf(names) => json!({"type": "string", "enum": names}),
            ArgumentKind::Backend => json!({"type": "string", "enum": Backend::NAMES}),
            ArgumentKind::Object => json!({"type": "object"}),
            ArgumentKind::Objects(members) => {
                json!({"type": "array", "items": object_schema(members)})
            }
        };
        if !self.description.is_empty() {
            schema["description"] = self.description.into();
        }
        schema
    }

    /// Whether a name means this argument.
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// The JSON Schema of an object with these members.
pub(super) fn object_schema(arguments: &[Argument]) -> Value {
    let mut properties = JsonObject::new();
    for argument in arguments {
        properties.insert(argument.name.to_owned(), argument.schema());
    }
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.is_required)
        .map(|argument| argument.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A number of seconds from 0 up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) std::time::Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = cellwright_operations::seconds::parse_seconds(&text);
        time.map(Self).map_err(serde::de::Error::custom)
    }
}

/// The path of a notebook, which most tools take.
pub(super) const PATH: Argument = Argument::new("path", ArgumentKind::Text)
    .or(&["file_path", "notebook_path", "notebook", "file", "filename"])
    .required();

/// The revision that a change is based on.
pub(super) const REVISION: Argument = Argument::new("revision", ArgumentKind::Text)
    .or(&["rev"])
    .describe("revision you read");

/// Whether to write although a collaboration room has the notebook.
pub(super) const FORCE: Argument =
    Argument::new("force", ArgumentKind::Boolean).describe("write although open in a live room");

/// The session of a call.
pub(super) const SESSION: Argument =
    Argument::new("session", ArgumentKind::Text).or(&["name", "session_name", "session_id"]);

/// The operations on a cell, which `notebook` and the edits of `run` take.
pub(super) const CELL: Argument =
    Argument::new("cell", ArgumentKind::Cell).or(&["cell_id", "cell_index", "cell_number", "id"]);
pub(super) const SOURCE: Argument = Argument::new("source", ArgumentKind::Text).or(&[
    "new_source",
    "content",
    "code",
    "text",
    "new_string",
]);
pub(super) const TYPE: Argument =
    Argument::new("type", ArgumentKind::OneOf(&["code", "markdown", "raw"])).or(&["cell_type"]);
pub(super) const AFTER: Argument = Argument::new("after", ArgumentKind::Cell);
pub(super) const BEFORE: Argument = Argument::new("before", ArgumentKind::Cell);
pub(super) const INDEX: Argument =
    Argument::new("index", ArgumentKind::Integer).or(&["to", "position", "at", "new_index"]);
pub(super) const TAGS: Argument = Argument::new("tags", ArgumentKind::Texts);
pub(super) const METADATA: Argument = Argument::new("metadata", ArgumentKind::Object);

/// Kernel selection, which `run`, `eval` and `check` take.
pub(super) const KERNEL: Argument = Argument::new("kernel", ArgumentKind::Text)
    .or(&["kernel_name"])
    .describe("kernelspec");
pub(super) const BACKEND: Argument = Argument::new("backend", ArgumentKind::Backend);
pub(super) const GATEWAY: Argument =
    Argument::new("gateway", ArgumentKind::Text).describe("configured Jupyter server, by name");
pub(super) const PYTHON: Argument =
    Argument::new("python", ArgumentKind::Text).describe("interpreter or environment");
pub(super) const START_TIMEOUT: Argument = Argument::new("start_timeout", ArgumentKind::Seconds);

/// How a call waits, which `run` and `eval` take.
pub(super) const ANSWER: Argument = Argument::new("answer", ArgumentKind::Texts)
    .or(&["answers"])
    .describe("replies to input()");
pub(super) const BACKGROUND: Argument =
    Argument::new("background", ArgumentKind::Boolean).describe("do not wait");
pub(super) const WAIT: Argument =
    Argument::new("wait", ArgumentKind::Seconds).describe("seconds to wait, default 50");
pub(super) const TIMEOUT: Argument = Argument::new("timeout", ArgumentKind::Seconds);
