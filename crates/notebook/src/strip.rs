//! Removes the results of running a notebook, for version control.

use std::borrow::Cow;

use crate::cell::{CellKind, EXECUTION_KEY};
use crate::document::{Cells, Notebook};
use crate::json::object::{self, Member};
use crate::json::object_edit::{MemberChange, MemberChanges, Object, string_array};
use crate::json::style::Style;
use crate::span::Span;

/// Members of a cell's metadata that a run or a viewer sets.
const CELL_STATE: [&str; 4] = [EXECUTION_KEY, "ExecuteTime", "collapsed", "scrolled"];
/// Members of the notebook's metadata that a run sets.
const NOTEBOOK_STATE: [&str; 1] = ["widgets"];
/// The tag or member that keeps the outputs of a cell, or of the notebook.
const KEEP_OUTPUT: &str = "keep_output";

/// The notebook's bytes without the results of a run: outputs, execution counts, execution times,
/// collapsed outputs and the state of widgets. Outputs stay where the tag or metadata
/// `keep_output`, or the metadata `init_cell`, requests it. Every other byte stays.
pub fn strip_outputs(notebook: &Notebook) -> Cow<'_, [u8]> {
    let mut splices = Vec::new();
    let metadata = Object::parse(notebook.bytes(), notebook.spans().metadata);
    let keep_all = metadata
        .as_ref()
        .is_some_and(|metadata| metadata.get(KEEP_OUTPUT) == Some(b"true"));
    if let Some(metadata) = &metadata {
        splices.extend(without_members(
            metadata,
            &NOTEBOOK_STATE,
            notebook.spans().metadata,
        ));
    }
    for index in (0..notebook.count()).filter(|&index| notebook.kind(index) == CellKind::Code) {
        strip_cell(notebook, &notebook.members(index), keep_all, &mut splices);
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

fn strip_cell(
    notebook: &Notebook,
    members: &[Member],
    keep_all: bool,
    splices: &mut Vec<(Span, String)>,
) {
    let metadata = object::find_member(members, "metadata").map(|member| member.value);
    let state = metadata.and_then(|span| Object::parse(notebook.bytes(), span));
    let keep = state
        .as_ref()
        .map_or(keep_all, |state| keeps_output(state, keep_all));
    if let Some(outputs) = object::find_member(members, "outputs") {
        let elements = object::elements(notebook.bytes(), outputs.value);
        if keep {
            for output in elements {
                let members = object::members(notebook.bytes(), output);
                strip_count(notebook, &members, splices);
            }
        } else if !elements.is_empty() {
            splices.push((outputs.value, "[]".to_owned()));
        }
    }
    strip_count(notebook, members, splices);
    if let (Some(state), Some(span)) = (state, metadata) {
        splices.extend(without_members(&state, &CELL_STATE, span));
    }
}

/// Whether the metadata of a cell requests that its outputs stay.
fn keeps_output(metadata: &Object<'_>, default: bool) -> bool {
    let is_tagged = || {
        let tags = metadata.get("tags").and_then(string_array);
        tags.is_some_and(|tags| tags.iter().any(|tag| tag == KEEP_OUTPUT))
    };
    match (metadata.get("init_cell"), metadata.get(KEEP_OUTPUT)) {
        (Some(value), _) => value == b"true",
        (None, Some(value)) => value == b"true" || is_tagged(),
        (None, None) => default || is_tagged(),
    }
}

/// Sets the execution count of a cell or an output to null.
fn strip_count(notebook: &Notebook, members: &[Member], splices: &mut Vec<(Span, String)>) {
    if let Some(count) = object::find_member(members, "execution_count")
        && notebook.slice(count.value) != b"null"
    {
        splices.push((count.value, "null".to_owned()));
    }
}

/// The object at `span` without some members; `None` if it has none of them.
fn without_members(object: &Object<'_>, names: &[&str], span: Span) -> Option<(Span, String)> {
    let changes: MemberChanges = names
        .iter()
        .filter(|name| object.get(name).is_some())
        .map(|name| ((*name).to_owned(), MemberChange::Remove))
        .collect();
    let text = || object.with_changes(&changes, &[], None, &Style::default());
    (!changes.is_empty()).then(|| (span, text()))
}
