//! Applies a [`Plan`]: the old file's bytes with new text spliced in.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::error::Notice;
use crate::ids;
use crate::json::object::{self, Member};
use crate::layout::{Layout, MEMBER_ORDER};
use crate::metadata;
use crate::plan::{OutputAction, Plan, Slot};
use crate::revision::{Digest, Revision};
use crate::source::{self, SourceShape};
use crate::span::Span;

/// A notebook after an edit: mostly spans of the old one. Bytes are copied only when it is
/// written.
#[derive(Debug)]
pub struct EditedNotebook<'n> {
    notebook: &'n Notebook,
    pieces: Vec<Piece>,
    /// Notices from applying the plan.
    pub notices: Vec<Notice>,
    /// The ids of new cells, by index in the plan.
    pub(crate) new_ids: HashMap<usize, String>,
    /// Number of cells that the plan changes but that already had the requested content.
    pub(crate) unchanged_cells: usize,
    /// New metadata, by index in the plan; `None` is the notebook.
    pub(crate) new_metadata: Vec<(Option<usize>, String)>,
}

#[derive(Clone, Debug)]
enum Piece {
    Old(Span),
    New(String),
}

/// Applies `plan` to `notebook`.
pub fn compose<'n>(notebook: &'n Notebook, plan: &Plan) -> EditedNotebook<'n> {
    let mut composer = Composer {
        notebook,
        layout: None,
        pieces: Vec::new(),
        notices: Vec::new(),
        ids: HashSet::new(),
        new_ids: HashMap::new(),
        unchanged_cells: 0,
        new_metadata: Vec::new(),
        notebook_metadata: None,
    };
    composer.compose_notebook_metadata(plan);
    let end = notebook.bytes().len();
    if plan.keeps_order(notebook.count()) {
        let mut done = 0;
        for (index, slot) in plan.slots.iter().enumerate() {
            if slot.is_kept(notebook) {
                continue;
            }
            let span = notebook.cell(index).span;
            composer.push_old(done, span.start());
            composer.compose_cell(index, slot);
            done = span.end();
        }
        composer.push_old(done, end);
    } else {
        composer.compose_array(plan);
    }
    EditedNotebook {
        notebook,
        pieces: composer.pieces,
        notices: composer.notices,
        new_ids: composer.new_ids,
        unchanged_cells: composer.unchanged_cells,
        new_metadata: composer.new_metadata,
    }
}

impl EditedNotebook<'_> {
    /// The bytes of the new file, in chunks.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Old(span) => self.notebook.slice(*span),
            Piece::New(text) => text.as_bytes(),
        })
    }

    /// Writes the new file.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.chunks().try_for_each(|chunk| out.write_all(chunk))
    }

    /// The bytes of the new file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.chunks().map(<[u8]>::len).sum());
        self.chunks()
            .for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }

    /// Whether the result is the old file.
    pub(crate) fn is_unchanged(&self) -> bool {
        let whole = self.notebook.bytes().len();
        matches!(self.pieces[..], [Piece::Old(span)] if span.len() == whole)
    }

    /// The revision of the new file.
    pub fn revision(&self) -> Revision {
        let mut digest = Digest::new();
        self.chunks().for_each(|chunk| digest.update(chunk));
        digest.finish()
    }
}

struct Composer<'n> {
    notebook: &'n Notebook,
    layout: Option<Layout>,
    pieces: Vec<Piece>,
    notices: Vec<Notice>,
    /// Ids in use. Filled when the first new id is needed.
    ids: HashSet<String>,
    new_ids: HashMap<usize, String>,
    unchanged_cells: usize,
    new_metadata: Vec<(Option<usize>, String)>,
    /// The replacement of the metadata of the notebook, which is outside of the cells.
    notebook_metadata: Option<(Span, String)>,
}

impl Composer<'_> {
    fn push_old(&mut self, start: usize, end: usize) {
        let replacement = self
            .notebook_metadata
            .take_if(|(span, _)| start <= span.start() && span.end() <= end);
        if let Some((span, text)) = replacement {
            self.push_old(start, span.start());
            self.push_new(text);
            self.push_old(span.end(), end);
            return;
        }
        if start == end {
            return;
        }
        if let Some(Piece::Old(last)) = self.pieces.last_mut()
            && last.end() == start
        {
            *last = Span::new(last.start(), end);
            return;
        }
        self.pieces.push(Piece::Old(Span::new(start, end)));
    }

    /// Finds the replacement of the metadata of the notebook.
    fn compose_notebook_metadata(&mut self, plan: &Plan) {
        if plan.metadata.is_empty() {
            return;
        }
        let notebook = self.notebook;
        let span = notebook.spans().metadata;
        let style = self.layout(0).json_style();
        let old: &[u8] = if span.is_empty() {
            b"{}"
        } else {
            notebook.metadata()
        };
        let members = object::members(notebook.bytes(), notebook.spans().top);
        let indentation = match object::find_member(&members, "metadata") {
            Some(member) => line_indentation(notebook.bytes(), member.key.start()),
            None => (!style.newline.is_empty()).then(|| style.unit.clone()),
        };
        let new = metadata::apply(old, &plan.metadata, indentation.as_deref(), &style);
        let Some(new) = new.ok().filter(|new| new.as_bytes() != old) else {
            return;
        };
        self.new_metadata.push((None, new.clone()));
        self.notebook_metadata = Some(if span.is_empty() {
            let end = notebook.spans().cells.end();
            let (between, colon) = (style.between(1), &style.colon);
            (
                Span::new(end, end),
                format!("{between}\"metadata\"{colon}{new}"),
            )
        } else {
            (span, new)
        });
    }

    /// The new metadata of a cell; `None` if it stays.
    fn cell_metadata(&mut self, index: usize, origin: usize, slot: &Slot) -> Option<String> {
        if slot.metadata.is_empty() {
            return None;
        }
        let notebook = self.notebook;
        let members = notebook.members(origin);
        let member = object::find_member(&members, "metadata").or(members.first());
        let indentation =
            member.and_then(|member| line_indentation(notebook.bytes(), member.key.start()));
        let old = notebook.cell_metadata(origin);
        let old = if old.is_empty() { b"{}" } else { old };
        let style = self.layout(origin).json_style();
        let new = metadata::apply(old, &slot.metadata, indentation.as_deref(), &style);
        let new = new.ok().filter(|new| new.as_bytes() != old)?;
        self.new_metadata.push((Some(index), new.clone()));
        Some(new)
    }

    fn push_new(&mut self, text: String) {
        if !text.is_empty() {
            self.pieces.push(Piece::New(text));
        }
    }

    /// The layout of the notebook, detected on first use. One per edit is enough: the cells of
    /// one file look alike.
    fn layout(&mut self, near: usize) -> &Layout {
        let notebook = self.notebook;
        self.layout
            .get_or_insert_with(|| Layout::detect(notebook, near))
    }

    /// Writes the whole file with a new `cells` array.
    fn compose_array(&mut self, plan: &Plan) {
        let notebook = self.notebook;
        let array = notebook.spans().cells;
        let count = notebook.count();
        let (inner_start, inner_end) = if count == 0 {
            (array.start() + 1, array.end() - 1)
        } else {
            (
                notebook.cell(0).span.start(),
                notebook.cell(count - 1).span.end(),
            )
        };
        if plan.slots.is_empty() {
            self.push_old(0, array.start() + 1);
            self.push_old(array.end() - 1, notebook.bytes().len());
            return;
        }
        if count == 0 {
            self.push_old(0, array.start() + 1);
            let open = self.layout(0).cells.open.clone();
            self.push_new(open);
        } else {
            self.push_old(0, inner_start);
        }
        let mut before: Option<usize> = None;
        for (index, slot) in plan.slots.iter().enumerate() {
            if index > 0 {
                match (before, slot.origin) {
                    (Some(before), Some(origin)) if before + 1 == origin => {
                        let gap_start = notebook.cell(before).span.end();
                        self.push_old(gap_start, notebook.cell(origin).span.start());
                    }
                    _ => {
                        let between = self.layout(before.unwrap_or(0)).cells.between.clone();
                        self.push_new(between);
                    }
                }
            }
            self.compose_cell(index, slot);
            before = slot.origin;
        }
        if count == 0 {
            let close = self.layout(0).cells.close.clone();
            self.push_new(close);
        }
        self.push_old(inner_end, notebook.bytes().len());
    }

    /// Writes one cell of the result, at `index`.
    fn compose_cell(&mut self, index: usize, slot: &Slot) {
        match slot.origin {
            Some(origin) if slot.is_kept(self.notebook) => {
                let span = self.notebook.cell(origin).span;
                self.push_old(span.start(), span.end());
            }
            Some(origin) => self.compose_changed(index, origin, slot),
            None => {
                let source = slot.source.as_deref().unwrap_or_default();
                let id = self
                    .notebook
                    .requires_ids()
                    .then(|| self.new_id(slot.kind, source, index));
                let cell = self.layout(index.saturating_sub(1)).new_cell(
                    slot.kind,
                    id.as_deref(),
                    source,
                    &slot.metadata,
                );
                self.push_new(cell);
            }
        }
    }

    fn new_id(&mut self, kind: CellKind, source: &str, index: usize) -> String {
        if self.ids.is_empty() {
            let notebook = self.notebook;
            self.ids = (0..notebook.count())
                .filter_map(|cell| notebook.id(cell).map(std::borrow::Cow::into_owned))
                .collect();
        }
        let id = ids::derive_id(kind, source, index, &self.ids);
        self.ids.insert(id.clone());
        self.new_ids.insert(index, id.clone());
        id
    }

    /// Writes an existing cell with changed members.
    fn compose_changed(&mut self, index: usize, origin: usize, slot: &Slot) {
        let notebook = self.notebook;
        let span = notebook.cell(origin).span;
        let members = notebook.members(origin);
        let mut splices = Splices::default();
        let old_kind = notebook.kind(origin);
        if slot.kind != old_kind
            && let Some(member) = object::find_member(&members, "cell_type")
        {
            splices.replace(member.value, format!("\"{}\"", slot.kind));
        }
        let mut removed: &[&str] = &[];
        let mut added: Vec<(&str, String)> = Vec::new();
        if slot.kind != old_kind {
            match slot.kind {
                CellKind::Code => {
                    removed = &["attachments"];
                    if object::find_member(&members, "attachments").is_some() {
                        self.notices
                            .push(Notice::AttachmentsDropped { cell: index });
                    }
                    added.push(("execution_count", "null".to_owned()));
                    added.push(("outputs", "[]".to_owned()));
                }
                CellKind::Markdown | CellKind::Raw => {
                    removed = &["execution_count", "outputs"];
                    let outputs = object::find_member(&members, "outputs");
                    if outputs.is_some_and(|member| notebook.slice(member.value) != b"[]") {
                        self.notices.push(Notice::OutputsDropped { cell: index });
                    }
                }
            }
        }
        if let Some(new) = &slot.source {
            let written = self.source_value(origin, new);
            if written.surrogate_lost {
                self.notices.push(Notice::SurrogateLost { cell: index });
            }
            match object::find_member(&members, "source") {
                Some(member) => splices.replace(member.value, written.value),
                None => added.push(("source", written.value)),
            }
        }
        if let Some(new) = self.cell_metadata(index, origin, slot) {
            match object::find_member(&members, "metadata") {
                Some(member) => splices.replace(member.value, new),
                None => added.push(("metadata", new)),
            }
        }
        if slot.outputs == OutputAction::Clear && slot.kind == CellKind::Code {
            for (name, empty) in [("execution_count", "null"), ("outputs", "[]")] {
                if let Some(member) = object::find_member(&members, name)
                    && notebook.slice(member.value) != empty.as_bytes()
                {
                    splices.replace(member.value, empty.to_owned());
                }
            }
        }
        added.retain(|(name, _)| object::find_member(&members, name).is_none());
        splices.remove(&members, removed);
        let layout = self.layout(origin);
        for (name, value) in added {
            let text = layout.member(name, &value);
            splices.add(&members, removed, name, &text, layout.between());
        }
        let mut done = span.start();
        let splices = splices.sorted();
        self.unchanged_cells += usize::from(splices.is_empty());
        for (at, text) in splices {
            self.push_old(done, at.start());
            self.push_new(text);
            done = at.end();
        }
        self.push_old(done, span.end());
    }

    /// The new value of an existing cell's source, in its old shape.
    fn source_value(&mut self, origin: usize, new: &str) -> source::SourceValue {
        let notebook = self.notebook;
        let value = notebook.slice(notebook.cell(origin).source);
        let layout = self.layout(origin);
        let shape = match value.first() {
            Some(b'"') => SourceShape::Text,
            Some(b'[') => SourceShape::Lines(layout.array_like(value)),
            _ => layout.shape.clone(),
        };
        source::rewrite_value(value, new, &shape, layout.escapes)
    }
}

/// The indentation of the line on which the text at `at` starts; `None` if other text precedes it.
fn line_indentation(bytes: &[u8], at: usize) -> Option<String> {
    let line = memchr::memrchr(b'\n', &bytes[..at])? + 1;
    let gap = std::str::from_utf8(&bytes[line..at]).ok()?;
    gap.trim().is_empty().then(|| gap.to_owned())
}

/// Replacements inside one cell.
#[derive(Default)]
struct Splices(Vec<(Span, String)>);

impl Splices {
    fn replace(&mut self, span: Span, text: String) {
        self.0.push((span, text));
    }

    /// Removes members together with their commas.
    fn remove(&mut self, members: &[Member], names: &[&str]) {
        let is_removed = |member: &Member| names.contains(&member.name.as_str());
        let mut index = 0;
        while index < members.len() {
            let run = members[index..]
                .iter()
                .take_while(|m| is_removed(m))
                .count();
            if run == 0 {
                index += 1;
                continue;
            }
            let (first, next) = (index, index + run);
            let span = if let Some(next) = members.get(next) {
                Span::new(members[first].key.start(), next.key.start())
            } else if first > 0 {
                Span::new(
                    members[first - 1].value.end(),
                    members[next - 1].value.end(),
                )
            } else {
                Span::new(members[first].key.start(), members[next - 1].value.end())
            };
            self.0.push((span, String::new()));
            index = next;
        }
    }

    /// Adds a member after the one that usually precedes it.
    fn add(&mut self, members: &[Member], removed: &[&str], name: &str, text: &str, between: &str) {
        let rank = |name: &str| MEMBER_ORDER.iter().position(|known| *known == name);
        let stays = |member: &&Member| !removed.contains(&member.name.as_str());
        let before = members
            .iter()
            .filter(stays)
            .filter(|member| rank(&member.name).is_some_and(|own| Some(own) < rank(name)))
            .max_by_key(|member| rank(&member.name));
        let (at, text) = match (before, members.first()) {
            (Some(before), _) => (before.value.end(), format!("{between}{text}")),
            (None, Some(first)) => (first.key.start(), format!("{text}{between}")),
            (None, None) => return,
        };
        self.0.push((Span::new(at, at), text));
    }

    /// Sorted by position. Insertions at one position keep the order in which they were added.
    fn sorted(mut self) -> Vec<(Span, String)> {
        self.0.sort_by_key(|(span, _)| (span.start, span.end));
        self.0
    }
}
