//! Removes the results of running a notebook, for version control.

use std::borrow::Cow;

use crate::cell::{CellKind, EXECUTION_KEY};
use crate::document::Notebook;
use crate::error::FormatError;
use crate::json::object::{self, Member};
use crate::json::object_edit::{MemberChange, MemberChanges, Object, string_array};
use crate::json::style::Style;
use crate::json::text;
use crate::scan::{BOM, scan_slice};
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
    strip(notebook.bytes(), notebook.spans().top, &["execution_count"])
}

/// Like [`strip_outputs`], also for nbformat 3 and older. Returns an error if the bytes are not a notebook: then it is not
/// known where outputs are.
pub fn strip_file(bytes: &[u8]) -> Result<Cow<'_, [u8]>, FormatError> {
    let count_names: &[&str] = match scan_slice(bytes) {
        Ok(_) => &["execution_count"],
        Err(FormatError::OldFormat { .. }) => &["prompt_number"],
        Err(error) => return Err(error),
    };
    let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
    let top = Span::new(start, bytes.len());
    check_places_of_cells(bytes, top).map_err(|problem| FormatError::CellsNotFound { problem })?;
    Ok(strip(bytes, top, count_names))
}

/// Checks that all cells are in the arrays in which [`cells`] finds them. The scan checks those that readers see.
fn check_places_of_cells(bytes: &[u8], top: Span) -> Result<(), &'static str> {
    let starts_with = |span: Span, start: u8| bytes[span.range()].first() == Some(&start);
    let check_cells = |members: &[Member]| {
        let mut arrays = members.iter().filter(|member| member.name == "cells");
        let is_valid = |span| {
            let elements = object::elements(bytes, span);
            starts_with(span, b'[') && elements.iter().all(|cell| starts_with(*cell, b'{'))
        };
        let is_readable = arrays.all(|cells| is_valid(cells.value));
        is_readable
            .then_some(())
            .ok_or("`cells` is not an array of objects")
    };
    let top = object::members(bytes, top);
    check_cells(&top)?;
    for worksheets in top.iter().filter(|member| member.name == "worksheets") {
        if !starts_with(worksheets.value, b'[') {
            return Err("`worksheets` is not an array");
        }
        for sheet in object::elements(bytes, worksheets.value) {
            if !starts_with(sheet, b'{') {
                return Err("`worksheets` is not an array of objects");
            }
            check_cells(&object::members(bytes, sheet))?;
        }
    }
    Ok(())
}

/// Strips the notebook whose top-level object is at `top`. `count_names` are the members for execution counts.
fn strip<'b>(bytes: &'b [u8], top: Span, count_names: &[&str]) -> Cow<'b, [u8]> {
    let mut splices = Vec::new();
    let top = object::members(bytes, top);
    let metadata = all_metadata(bytes, &top);
    let keep_all = metadata
        .last()
        .is_some_and(|(metadata, _)| metadata.get(KEEP_OUTPUT) == Some(b"true"));
    for (metadata, span) in &metadata {
        splices.extend(without_members(metadata, &NOTEBOOK_STATE, *span));
    }
    for cell in cells(bytes, &top) {
        let members = object::members(bytes, cell);
        strip_cell(bytes, &members, keep_all, count_names, &mut splices);
    }
    if splices.is_empty() {
        return Cow::Borrowed(bytes);
    }
    splices.sort_by_key(|(span, _)| span.start());
    let mut out = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for (span, text) in splices {
        out.extend_from_slice(&bytes[done..span.start()]);
        out.extend_from_slice(text.as_bytes());
        done = span.end();
    }
    out.extend_from_slice(&bytes[done..]);
    Cow::Owned(out)
}

/// All cells: those of nbformat 4, those in the worksheets of older formats, and those of repeated members. Readers ignore
/// some of them, but a commit contains them.
fn cells(bytes: &[u8], top: &[Member]) -> Vec<Span> {
    let named = |members: &[Member], name: &str| -> Vec<Span> {
        let named = members.iter().filter(|member| member.name == name);
        named.map(|member| member.value).collect()
    };
    let mut arrays = named(top, "cells");
    for worksheets in named(top, "worksheets") {
        for sheet in object::elements(bytes, worksheets) {
            arrays.extend(named(&object::members(bytes, sheet), "cells"));
        }
    }
    let arrays = arrays.into_iter();
    arrays
        .flat_map(|array| object::elements(bytes, array))
        .collect()
}

/// The metadata of a notebook or a cell. Readers use the last of several members, but a commit contains all.
fn all_metadata<'b>(bytes: &'b [u8], members: &[Member]) -> Vec<(Object<'b>, Span)> {
    let all = members.iter().filter(|member| member.name == "metadata");
    all.filter_map(|member| Some((Object::parse(bytes, member.value)?, member.value)))
        .collect()
}

fn strip_cell(
    bytes: &[u8],
    members: &[Member],
    keep_all: bool,
    count_names: &[&str],
    splices: &mut Vec<(Span, String)>,
) {
    let metadata = all_metadata(bytes, members);
    let keep = metadata
        .last()
        .map_or(keep_all, |(metadata, _)| keeps_output(metadata, keep_all));
    // nbformat 1 has one `output`.
    let is_old = !count_names.contains(&"execution_count");
    for output in members.iter().filter(|member| member.name == "output") {
        if is_old && !keep && &bytes[output.value.range()] != b"null" {
            splices.push((output.value, "null".to_owned()));
        }
    }
    for outputs in members.iter().filter(|member| member.name == "outputs") {
        let elements = object::elements(bytes, outputs.value);
        if keep {
            for output in elements {
                // In nbformat 3, the count of an output is required.
                let members = object::members(bytes, output);
                strip_counts(bytes, &members, &["execution_count"], splices);
            }
        } else if !elements.is_empty() || !is_empty(&bytes[outputs.value.range()]) {
            splices.push((outputs.value, "[]".to_owned()));
        }
    }
    strip_counts(bytes, members, count_names, splices);
    let is_code = object::find_member(members, "cell_type").is_some_and(|kind| {
        let kind = &bytes[kind.value.range()];
        kind.starts_with(b"\"") && text::decode(kind) == CellKind::Code.name()
    });
    for (metadata, span) in metadata.iter().filter(|_| is_code) {
        splices.extend(without_members(metadata, &CELL_STATE, *span));
    }
}

/// Whether the value of `outputs` is null or an array without elements.
fn is_empty(value: &[u8]) -> bool {
    value.starts_with(b"[") || value == b"null"
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
fn strip_counts(
    bytes: &[u8],
    members: &[Member],
    names: &[&str],
    splices: &mut Vec<(Span, String)>,
) {
    for count in members {
        if names.contains(&count.name.as_str()) && &bytes[count.value.range()] != b"null" {
            splices.push((count.value, "null".to_owned()));
        }
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
