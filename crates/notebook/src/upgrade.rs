//! Upgrades a notebook to nbformat 4.5: from nbformat 2 and 3, which store cells in worksheets
//! and use other names, and from 4.0 to 4.4, whose cells have no ids. The result of every upgrade
//! is compared with the original before it is returned.

mod legacy;
mod verify;

use std::collections::HashSet;

use crate::document::{Cells, Notebook};
use crate::error::{FormatError, Notice};
use crate::ids;
use crate::json::object;
use crate::revision::Revision;
use crate::scan;
use crate::span::Span;
use legacy::LegacyNotebook;

/// The result of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpgradeOutcome {
    /// Major and minor version before.
    pub from: (u32, u32),
    /// Number of cells that got an id.
    pub ids_added: usize,
}

/// Returns the upgraded file, or `None` if there is nothing to do.
pub fn upgrade(bytes: &[u8]) -> Result<Option<(UpgradeOutcome, Vec<u8>)>, FormatError> {
    match Notebook::parse(bytes) {
        Ok(notebook) => {
            let Some((outcome, new)) = add_ids(&notebook) else {
                return Ok(None);
            };
            verify::same_except_ids(&notebook, &Notebook::parse(&new[..])?)?;
            Ok(Some((outcome, new)))
        }
        Err(FormatError::OldFormat {
            major: major @ 2..=3,
        }) => {
            let (outcome, new) = LegacyNotebook { bytes }.convert(major)?;
            verify::same_content_as_legacy(bytes, &Notebook::parse(&new[..])?)?;
            Ok(Some((outcome, new)))
        }
        Err(other) => Err(other),
    }
}

/// Parses a notebook of nbformat 2, 3 or 4. An old one is converted as [`upgrade`] does, which the notice reports; its
/// revision stays that of the given bytes.
pub fn parse_any_format(bytes: Vec<u8>) -> Result<(Notebook, Option<Notice>), FormatError> {
    let is_old = matches!(
        scan::scan_slice(&bytes),
        Err(FormatError::OldFormat { major: 2..=3 })
    );
    if !is_old {
        return Ok((Notebook::parse(bytes)?, None));
    }
    let Some((outcome, new)) = upgrade(&bytes)? else {
        return Ok((Notebook::parse(bytes)?, None));
    };
    let revision = Revision::compute(&bytes);
    let notebook = Notebook::parse(new)?.converted_from(revision, outcome.from);
    let notice = Notice::OldFormat { from: outcome.from };
    Ok((notebook, Some(notice)))
}

/// Adds the ids and the minor version of 4.5 to a notebook in nbformat 4. Everything else keeps
/// its bytes.
fn add_ids(notebook: &Notebook) -> Option<(UpgradeOutcome, Vec<u8>)> {
    let mut taken: HashSet<String> = (0..notebook.count())
        .filter_map(|cell| notebook.id(cell).map(std::borrow::Cow::into_owned))
        .collect();
    let mut splices: Vec<(Span, String)> = Vec::new();
    let mut ids_added = 0;
    for index in 0..notebook.count() {
        if notebook.id(index).is_some() {
            continue;
        }
        let id = ids::derive_id(notebook.kind(index), &notebook.source(index), index, &taken);
        taken.insert(id.clone());
        ids_added += 1;
        splices.push(id_splice(notebook, index, &id));
    }
    if notebook.minor() < 5 {
        let members = object::members(notebook.bytes(), notebook.spans().top);
        match (
            object::find_member(&members, "nbformat_minor"),
            object::find_member(&members, "nbformat"),
        ) {
            (Some(minor), _) => splices.push((minor.value, "5".to_owned())),
            (None, Some(major)) => {
                let end = major.value.end();
                splices.push((Span::new(end, end), ", \"nbformat_minor\": 5".to_owned()));
            }
            (None, None) => {}
        }
    }
    if splices.is_empty() {
        return None;
    }
    splices.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(notebook.bytes().len() + 24 * splices.len());
    let mut done = 0;
    for (span, new) in splices {
        out.extend_from_slice(&notebook.bytes()[done..span.start()]);
        out.extend_from_slice(new.as_bytes());
        done = span.end();
    }
    out.extend_from_slice(&notebook.bytes()[done..]);
    let upgraded = UpgradeOutcome {
        from: (4, notebook.minor()),
        ids_added,
    };
    Some((upgraded, out))
}

/// Inserts an id after the member that precedes it in Jupyter's order, or replaces an id that is
/// not a string.
fn id_splice(notebook: &Notebook, index: usize, id: &str) -> (Span, String) {
    let members = notebook.members(index);
    if let Some(old) = object::find_member(&members, "id") {
        return (old.value, format!("\"{id}\""));
    }
    // In the layout of this cell. Detecting the layout of the whole file for each cell would be
    // quadratic.
    let between = |start, end| String::from_utf8_lossy(notebook.slice(Span::new(start, end)));
    let (colon, comma) = match &members[..] {
        [first, second, ..] => (
            between(first.key.end(), first.value.start()),
            between(first.value.end(), second.key.start()),
        ),
        _ => (": ".into(), ", ".into()),
    };
    let member = format!("\"id\"{colon}\"{id}\"");
    let before = ["execution_count", "cell_type"]
        .iter()
        .find_map(|name| object::find_member(&members, name));
    if let Some(before) = before {
        let end = before.value.end();
        return (Span::new(end, end), format!("{comma}{member}"));
    }
    let start = notebook.cell(index).span.start() + 1;
    (Span::new(start, start), format!("{member},"))
}
