//! [`Edit`]: a change to a notebook that is applied together with a run.

use cellwright_notebook::CellKind;
use cellwright_notebook::edit::{Address, CellPosition, Operation};
use serde::{Deserialize, Serialize};

/// One change to a notebook, as the command line and MCP clients write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edit {
    /// `edit`, `insert`, `delete`, `move`, `type` or `clear`.
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
    /// Tags of an inserted cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Why an edit is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEdit {
    /// Unknown action.
    #[error("unknown action `{0}`; expected edit, insert, delete, move, type or clear")]
    UnknownAction(String),
    /// A field that the action requires is missing.
    #[error("the action `{action}` requires `{field}`")]
    MissingField {
        /// The action.
        action: String,
        /// The missing field.
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
        Ok(match self.action.as_str() {
            "edit" => Operation::Edit {
                cell: cell()?,
                source: source()?,
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
                tags: self.tags.clone(),
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

fn parse_address(text: &str) -> Result<Address, InvalidEdit> {
    Address::parse(text).ok_or_else(|| InvalidEdit::InvalidAddress(text.to_owned()))
}

/// Converts edits to operations of the notebook crate.
pub(crate) fn to_operations(edits: &[Edit]) -> Result<Vec<Operation>, InvalidEdit> {
    edits.iter().map(Edit::to_operation).collect()
}
