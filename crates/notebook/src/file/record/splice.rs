//! The new file: the old one around the values that change. Cells are written one after the other, so that the results
//! of all cells are never in memory.

use std::io;

use super::{RecordRequest, Segment};
use crate::file::save::{Chunk, ChunkWriter};
use crate::file::survey::{Survey, SurveyedCell};
use crate::json::format::format_at_depth;
use crate::json::object;
use crate::json::style::Style;
use crate::layout::CELL_DEPTH;
use crate::span::Span;

/// A span of the old file, and its replacement.
type Splice = (Span, Vec<Segment>);

/// Writes the notebook `now` with the results of the cells at `cell_indexes`.
pub(super) fn write_spliced(
    now: &Survey,
    request: RecordRequest<'_>,
    cell_indexes: &[Option<usize>],
    write: ChunkWriter<'_>,
) -> io::Result<()> {
    let updates = cell_indexes.iter().enumerate();
    let mut updates: Vec<(usize, usize)> = updates
        .filter_map(|(at, index)| Some(((*index)?, at)))
        .collect();
    updates.sort_unstable();
    let metadata = metadata_splice(now, request);
    let (before, after): (Vec<Splice>, Vec<Splice>) = metadata
        .into_iter()
        .partition(|(span, _)| span.start < now.spans.cells.start);
    let cells = updates
        .into_iter()
        .flat_map(|(index, at)| cell_splices(now, index, &request.updates.update(at)));
    let mut done = 0;
    let mut copy_until = |at: usize, end: usize, write: ChunkWriter<'_>| {
        let from = std::mem::replace(&mut done, end);
        write(Chunk::Stored(&now.file, from as u64, (at - from) as u64))
    };
    for (span, segments) in before.into_iter().chain(cells).chain(after) {
        copy_until(span.start(), span.end(), write)?;
        for segment in &segments {
            write(match segment {
                Segment::Bytes(bytes) => Chunk::Bytes(bytes),
                Segment::Stored {
                    file,
                    start,
                    length,
                } => Chunk::Stored(file, *start, *length),
            })?;
        }
    }
    let end = usize::try_from(now.stamp.size).unwrap_or(usize::MAX);
    copy_until(end, end, write)
}

/// The changes of a cell, in the order of the file.
fn cell_splices(now: &Survey, index: usize, update: &super::CellUpdate) -> Vec<Splice> {
    let style = now.style();
    let cell: &SurveyedCell = &now.cells[index];
    let mut splices = Vec::new();
    let count = update
        .execution_count
        .map_or_else(|| "null".to_owned(), |count| count.to_string());
    let mut missing = Vec::new();
    let mut set = |name: &str, span: Span, value: Vec<Segment>| {
        if span.is_empty() {
            missing.push(text_segment(&format!(
                "{}\"{name}\"{}",
                style.between(CELL_DEPTH),
                style.colon
            )));
            missing.extend(value);
        } else {
            splices.push((span, value));
        }
    };
    set(
        "execution_count",
        cell.spans.execution_count,
        vec![text_segment(&count)],
    );
    let outputs = if update.outputs.is_empty() {
        vec![text_segment("[]")]
    } else {
        update.outputs.clone()
    };
    set("outputs", cell.spans.outputs, outputs);
    if let Some((name, value)) = &update.metadata {
        let metadata = set_member(now.cell_metadata(index), name, value, style, CELL_DEPTH);
        set(
            "metadata",
            cell.spans.metadata,
            vec![bytes_segment(metadata)],
        );
    }
    if !missing.is_empty() {
        splices.push((Span::new(cell.spans.end(), cell.spans.end()), missing));
    }
    splices.sort_by_key(|(span, _)| (span.start, span.end));
    splices
}

/// The change of the notebook's metadata.
fn metadata_splice(now: &Survey, request: RecordRequest<'_>) -> Option<Splice> {
    if request.metadata.is_empty() {
        return None;
    }
    let style = now.style();
    let mut metadata = now.metadata().to_vec();
    for (name, value) in request.metadata {
        // A concurrent change by another program wins.
        if compact_member(&request.base.metadata, name) == compact_member(now.metadata(), name) {
            metadata = set_member(&metadata, name, value, style, 1);
        }
    }
    let at = now.spans.metadata;
    if metadata.is_empty() {
        // There is no metadata, and none to add.
        return None;
    }
    if !at.is_empty() {
        return Some((at, vec![bytes_segment(metadata)]));
    }
    // After the cells, which exist, so a comma is right.
    let name = format!("{}\"metadata\"{}", style.between(1), style.colon);
    let end = now.spans.cells.end();
    let segments = vec![text_segment(&name), bytes_segment(metadata)];
    Some((Span::new(end, end), segments))
}

/// The object with a member set. Any other value becomes an object. Everything else keeps its
/// bytes.
fn set_member(object: &[u8], name: &str, value: &str, style: &Style, depth: usize) -> Vec<u8> {
    let formatted = format_at_depth(value.as_bytes(), style, depth + 1);
    let members = object::members(object, Span::new(0, object.len()));
    if let Some(member) = object::find_member(&members, name) {
        let (before, after) = (member.value.start(), member.value.end());
        return [&object[..before], &formatted[..], &object[after..]].concat();
    }
    let named = [format!("\"{name}\"{}", style.colon).as_bytes(), &formatted].concat();
    // Sorted by name, as in Jupyter.
    let predecessor = members
        .iter()
        .rev()
        .find(|member| member.name.as_str() < name);
    match (predecessor, members.first()) {
        (Some(member), _) => {
            let at = member.value.end();
            let between = style.between(depth + 1);
            [&object[..at], between.as_bytes(), &named, &object[at..]].concat()
        }
        (None, Some(first)) => {
            let at = first.key.start();
            let between = style.between(depth + 1);
            [&object[..at], &named, between.as_bytes(), &object[at..]].concat()
        }
        (None, None) => {
            let (open, close) = (style.line(depth + 1), style.line(depth));
            [b"{", open.as_bytes(), &named, close.as_bytes(), b"}"].concat()
        }
    }
}

/// The value of a member, without white space.
fn compact_member(object: &[u8], name: &str) -> Option<Vec<u8>> {
    let dense = Style {
        newline: String::new(),
        colon: ":".to_owned(),
        comma: ",".to_owned(),
        ..Style::default()
    };
    let members = object::members(object, Span::new(0, object.len()));
    let value = object::find_member(&members, name)?.value;
    Some(format_at_depth(&object[value.range()], &dense, 0))
}

fn text_segment(text: &str) -> Segment {
    Segment::Bytes(text.as_bytes().into())
}

fn bytes_segment(bytes: Vec<u8>) -> Segment {
    Segment::Bytes(bytes.into())
}
