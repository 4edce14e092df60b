//! Edits that are made together with a run.

use cellwright_notebook::CellKind;
use cellwright_notebook::edit::{Address, Operation, Place};
use serde::{Deserialize, Serialize};

/// One change to a notebook, as people and programs say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edit {
    /// `edit`, `insert`, `delete`, `move`, `type` or `clear`.
    pub action: String,
    /// Which cell: an index, or `id:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The source that it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The type that it gets: `code`, `markdown` or `raw`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Behind which cell it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Before which cell it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Which index it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// The tags of a cell that is new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// What is wrong with an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEdit {
    /// There is no such action.
    #[error("there is no action `{0}`; there are edit, insert, delete, move, type and clear")]
    Action(String),
    /// Something is missing.
    #[error("the action `{action}` needs `{field}`")]
    Missing {
        /// For which action.
        action: String,
        /// What.
        field: &'static str,
    },
    /// Not a cell.
    #[error("`{0}` is not a cell: expected an index such as 3, or id:…")]
    Address(String),
    /// Not a type of cell.
    #[error("there is no cell type `{0}`; there are code, markdown and raw")]
    Kind(String),
}

impl Edit {
    /// A new source for a cell.
    pub fn source(cell: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            action: "edit".to_owned(),
            cell: Some(cell.into()),
            source: Some(source.into()),
            ..Self::default()
        }
    }

    /// The operation that it is.
    pub fn operation(&self) -> Result<Operation, BadEdit> {
        let missing = |field| BadEdit::Missing {
            action: self.action.clone(),
            field,
        };
        let cell = || {
            let text = self.cell.as_deref().ok_or_else(|| missing("cell"))?;
            address(text)
        };
        let source = || self.source.clone().ok_or_else(|| missing("source"));
        Ok(match self.action.as_str() {
            "edit" => Operation::Edit {
                cell: cell()?,
                source: source()?,
            },
            "insert" => Operation::Insert {
                place: match self.cell.as_deref().map(address).transpose()? {
                    Some(Address::Index(index)) if self.place()?.is_none() => Place::At(index),
                    _ => self.place()?.unwrap_or(Place::End),
                },
                kind: self.kind()?.unwrap_or(CellKind::Code),
                source: source()?,
                tags: self.tags.clone(),
            },
            "delete" => Operation::Delete { cell: cell()? },
            "move" => Operation::Move {
                cell: cell()?,
                place: self.place()?.ok_or_else(|| missing("to"))?,
            },
            "type" => Operation::Type {
                cell: cell()?,
                kind: self.kind()?.ok_or_else(|| missing("type"))?,
            },
            "clear" => Operation::Clear {
                cell: self.cell.as_deref().map(address).transpose()?,
            },
            other => return Err(BadEdit::Action(other.to_owned())),
        })
    }

    fn place(&self) -> Result<Option<Place>, BadEdit> {
        Ok(match (&self.after, &self.before, self.to) {
            (Some(after), _, _) => Some(Place::After(address(after)?)),
            (None, Some(before), _) => Some(Place::Before(address(before)?)),
            (None, None, Some(to)) => Some(Place::At(to)),
            (None, None, None) => None,
        })
    }

    fn kind(&self) -> Result<Option<CellKind>, BadEdit> {
        self.kind
            .as_deref()
            .map(|name| CellKind::from_name(name).ok_or_else(|| BadEdit::Kind(name.to_owned())))
            .transpose()
    }
}

fn address(text: &str) -> Result<Address, BadEdit> {
    Address::read(text).ok_or_else(|| BadEdit::Address(text.to_owned()))
}
