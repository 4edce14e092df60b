//! Removes the results of running a notebook, for version control.

use std::borrow::Cow;

use crate::cell::{CellKind, EXECUTION_KEY};
use crate::document::{Cells, Notebook};
use crate::json::object::{self, Member};
use crate::json::object_edit::{MemberChange, MemberChanges, Object};
use crate::json::style::Style;
use crate::span::Span;

/// The notebook's bytes without outputs and execution counts. Cells that had either also lose
/// their execution times. Every other byte stays.
pub fn strip_outputs(notebook: &Notebook) -> Cow<'_, [u8]> {
    let mut splices = Vec::new();
    for index in (0..notebook.count()).filter(|&index| notebook.kind(index) == CellKind::Code) {
        strip_cell(notebook, &notebook.members(index), &mut splices);
    }
    if splices.is_empty() {
        return Cow::Borrowed(notebook.bytes());
    }
    splices.sort_by_key(|(span, _)| span.start());
    let mut out = Vec::with_capacity(notebook.bytes().len());
    let mut done = 0;
    for (span, text) in splices {
        out.extend_from_slice(&notebook.bytes()[done..span.start()]);
        out.extend_from_slice(text.as_bytes());
        done = span.end();
    }
    out.extend_from_slice(&notebook.bytes()[done..]);
    Cow::Owned(out)
}

fn strip_cell(notebook: &Notebook, members: &[Member], splices: &mut Vec<(Span, String)>) {
    let before = splices.len();
    let outputs = object::find_member(members, "outputs");
    if let Some(outputs) = outputs
        && !object::elements(notebook.bytes(), outputs.value).is_empty()
    {
        splices.push((outputs.value, "[]".to_owned()));
    }
    let count = object::find_member(members, "execution_count");
    if let Some(count) = count
        && notebook.slice(count.value) != b"null"
    {
        splices.push((count.value, "null".to_owned()));
    }
    let has_run = splices.len() > before;
    let metadata = object::find_member(members, "metadata");
    if let Some(metadata) = metadata
        && has_run
        && let Some(object) = Object::parse(notebook.bytes(), metadata.value)
        && object.get(EXECUTION_KEY).is_some()
    {
        let changes = MemberChanges::from([(EXECUTION_KEY.to_owned(), MemberChange::Remove)]);
        let text = object.with_changes(&changes, &[], None, &Style::default());
        splices.push((metadata.value, text));
    }
}
