//! The changes of metadata as lines of a diff.

use crate::compare::members;
use crate::compose::EditedNotebook;
use crate::document::{Cells, Notebook};
use crate::json::object_edit::Object;
use crate::plan::Plan;
use crate::span::Span;
use crate::text::marker;

/// The changes of metadata in a notebook, in the form of `diff`.
pub(super) fn metadata_diff(
    notebook: &Notebook,
    plan: &Plan,
    edited: &EditedNotebook<'_>,
) -> String {
    let mut out = String::new();
    for (cell, new) in &edited.new_metadata {
        let origin = cell.and_then(|cell| plan.slots[cell].origin);
        let old = origin.map_or(notebook.metadata(), |origin| notebook.cell_metadata(origin));
        let old = if old.is_empty() { b"{}" } else { old };
        let whole = |json: &[u8]| Span::new(0, json.len());
        let (Some(old), Some(new)) = (
            Object::parse(old, whole(old)),
            Object::parse(new.as_bytes(), whole(new.as_bytes())),
        ) else {
            continue;
        };
        let marker = match (cell, origin) {
            (Some(cell), Some(origin)) => {
                let mut marker = String::from(" ");
                let kind = plan.slots[*cell].kind;
                let id = notebook.id(origin);
                marker::write_marker(kind, Some(*cell), id.as_deref(), &[], &mut marker);
                marker
            }
            _ => String::new(),
        };
        out.push_str(&format!("@@ metadata @@{marker}\n"));
        for difference in members::compare(&old, &new, &[]) {
            out.push_str(&difference.line());
        }
    }
    out
}
