//! [`Edit`]: a change to a notebook that is applied together with a run.

use cellwright_notebook::CellKind;
use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_notebook::metadata::MetadataChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One change to a notebook, as the command line and MCP clients write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edit {
    /// `edit`, `insert`, `delete`, `move`, `type`, `clear`, `tag` or `meta`.
    pub action: String,
    /// Cell to change: an index, or `id:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// New source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// New cell type: `code`, `markdown` or `raw`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Cell after which the cell is placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Cell before which the cell is placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// New index.
    #[serde(alias = "to", skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Tags of an edited or inserted cell. For `tag`, the changes: `x` or `+x` adds, `-x` removes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// For `meta`, the metadata to set, as a JSON merge patch: `null` removes a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Why an edit is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEdit {
    /// Unknown action.
    #[error("unknown action `{0}`; expected edit, insert, delete, move, type, clear, tag or meta")]
    UnknownAction(String),
    /// A field that the action requires is missing.
    #[error("the action `{action}` requires `{field}`")]
    MissingField {
        /// The action.
        action: String,
        /// The missing field.
        field: &'static str,
    },
    /// A field that the action does not use.
    #[error("the action `{action}` does not use `{field}`")]
    UnusedField {
        /// The action.
        action: String,
        /// The field.
        field: &'static str,
    },
    /// Text that is not the address of a cell.
    #[error("`{0}` is not a cell: expected an index such as 3, or id:…")]
    InvalidAddress(String),
    /// Unknown cell type.
    #[error("unknown cell type `{0}`; expected code, markdown or raw")]
    UnknownCellType(String),
}

impl Edit {
    /// An edit that sets the source of a cell.
    pub fn source(cell: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            action: "edit".to_owned(),
            cell: Some(cell.into()),
            source: Some(source.into()),
            ..Self::default()
        }
    }

    /// Converts the edit to an operation of the notebook crate.
    pub fn to_operation(&self) -> Result<Operation, InvalidEdit> {
        let missing = |field| InvalidEdit::MissingField {
            action: self.action.clone(),
            field,
        };
        let cell = || {
            let text = self.cell.as_deref().ok_or_else(|| missing("cell"))?;
            parse_address(text)
        };
        let source = || self.source.clone().ok_or_else(|| missing("source"));
        let action = self.action.as_str();
        for (field, is_given, actions) in [
            ("tags", self.tags.is_some(), &["edit", "insert", "tag"][..]),
            ("metadata", self.metadata.is_some(), &["meta"]),
        ] {
            if is_given && !actions.contains(&action) {
                let action = action.to_owned();
                return Err(InvalidEdit::UnusedField { action, field });
            }
        }
        Ok(match self.action.as_str() {
            "edit" => Operation::Edit {
                cell: cell()?,
                source: source()?,
                tags: self.tags.clone(),
            },
            "insert" => Operation::Insert {
                position: match self.cell.as_deref().map(parse_address).transpose()? {
                    Some(Address::Index(index)) if self.place()?.is_none() => {
                        CellPosition::At(index)
                    }
                    _ => self.place()?.unwrap_or(CellPosition::End),
                },
                kind: self.kind()?.unwrap_or(CellKind::Code),
                source: source()?,
                tags: self.tags.clone().unwrap_or_default(),
            },
            "delete" => Operation::Delete { cell: cell()? },
            "move" => Operation::Move {
                cell: cell()?,
                position: self.place()?.ok_or_else(|| missing("index"))?,
            },
            "type" => Operation::Type {
                cell: cell()?,
                kind: self.kind()?.ok_or_else(|| missing("type"))?,
            },
            "clear" => Operation::Clear {
                cell: self.cell.as_deref().map(parse_address).transpose()?,
            },
            "tag" => Operation::Metadata {
                cell: Some(cell()?),
                changes: tag_changes(self.tags.as_deref().ok_or_else(|| missing("tags"))?),
            },
            "meta" => {
                let patch = self.metadata.as_ref().ok_or_else(|| missing("metadata"))?;
                let mut changes = Vec::new();
                append_patch(patch, &mut Vec::new(), &mut changes);
                Operation::Metadata {
                    cell: self.cell.as_deref().map(parse_address).transpose()?,
                    changes,
                }
            }
            other => return Err(InvalidEdit::UnknownAction(other.to_owned())),
        })
    }

    fn place(&self) -> Result<Option<CellPosition>, InvalidEdit> {
        Ok(match (&self.after, &self.before, self.index) {
            (Some(after), _, _) => Some(CellPosition::After(parse_address(after)?)),
            (None, Some(before), _) => Some(CellPosition::Before(parse_address(before)?)),
            (None, None, Some(index)) => Some(CellPosition::At(index)),
            (None, None, None) => None,
        })
    }

    fn kind(&self) -> Result<Option<CellKind>, InvalidEdit> {
        self.kind
            .as_deref()
            .map(|name| {
                CellKind::from_name(name)
                    .ok_or_else(|| InvalidEdit::UnknownCellType(name.to_owned()))
            })
            .transpose()
    }
}

/// The changes that words such as `x`, `+x` and `-x` describe.
pub fn tag_changes(words: &[String]) -> Vec<MetadataChange> {
    let change = |word: &String| match word.strip_prefix('-') {
        Some(tag) => MetadataChange::RemoveTag(tag.to_owned()),
        None => MetadataChange::AddTag(word.strip_prefix('+').unwrap_or(word).to_owned()),
    };
    words.iter().map(change).collect()
}

/// The changes of a JSON merge patch (RFC 7396).
fn append_patch(
    patch: &Map<String, Value>,
    path: &mut Vec<String>,
    changes: &mut Vec<MetadataChange>,
) {
    for (name, value) in patch {
        path.push(name.clone());
        match value {
            Value::Null => changes.push(MetadataChange::Remove { path: path.clone() }),
            Value::Object(inner) => append_patch(inner, path, changes),
            other => changes.push(MetadataChange::Set {
                path: path.clone(),
                json: other.to_string(),
            }),
        }
        path.pop();
    }
}

fn parse_address(text: &str) -> Result<Address, InvalidEdit> {
    Address::parse(text).ok_or_else(|| InvalidEdit::InvalidAddress(text.to_owned()))
}

/// Converts edits to operations of the notebook crate.
pub(crate) fn to_operations(edits: &[Edit]) -> Result<Vec<Operation>, InvalidEdit> {
    edits.iter().map(Edit::to_operation).collect()
}
