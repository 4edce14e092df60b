//! Writes the merged file: ours, with their changes spliced in.

use std::collections::{HashMap, HashSet};

use super::cell::{CellMerger, CellRef, MergedCell};
use super::members::{MemberMerger, ThreeObjects, as_text};
use super::order::{CellOrigin, PlacedCell, order_cells};
use super::{ConflictMarkers, MergeNotice, MergedNotebook};
use crate::document::{Cells, Notebook};
use crate::ids;
use crate::json::object_edit::{MemberChange, MemberChanges, Object, trailing_indentation};
use crate::json::style::Style;
use crate::json::text::{self, Escapes};
use crate::layout::Layout;
use crate::source::{self, ArrayLayout, SourceShape};
use crate::span::Span;

/// The minor version since which cells have ids.
const MINOR_WITH_IDS: u32 = 5;

/// Top-level members with their own merge rules.
const HANDLED_MEMBERS: [&str; 2] = ["cells", "nbformat_minor"];

pub(super) struct FileMerger<'n> {
    base: &'n Notebook,
    ours: &'n Notebook,
    theirs: &'n Notebook,
    markers: &'n ConflictMarkers,
    layout: Layout,
    style: Style,
    /// The indentation of cells, if each starts on its own line.
    cell_indentation: Option<String>,
    /// The minor version of the result.
    minor: u32,
    used_ids: UsedIds,
    notices: Vec<MergeNotice>,
}

/// Ids in use.
#[derive(Default)]
struct UsedIds {
    /// By our cells in the result.
    ours: HashSet<String>,
    /// By their cells, with the number of cells.
    theirs: HashMap<String, usize>,
    /// By any cell.
    all: HashSet<String>,
}

impl<'n> FileMerger<'n> {
    pub(super) fn new(
        base: &'n Notebook,
        ours: &'n Notebook,
        theirs: &'n Notebook,
        markers: &'n ConflictMarkers,
    ) -> Self {
        let layout = Layout::detect(ours, 0);
        Self {
            base,
            ours,
            theirs,
            markers,
            style: detect_style(ours, layout.escapes),
            cell_indentation: trailing_indentation(&layout.cells.open),
            layout,
            minor: merged_minor(base.minor(), ours.minor(), theirs.minor()),
            used_ids: UsedIds::default(),
            notices: Vec::new(),
        }
    }

    pub(super) fn merge(mut self) -> MergedNotebook {
        let placed = order_cells(self.base, self.ours, self.theirs);
        self.used_ids = UsedIds::collect(self.ours, self.theirs, &placed);
        let (bytes, top) = (self.ours.bytes(), self.ours.spans().top);
        let cells = self.cells(&placed);
        let Some(three) = self.top_objects() else {
            // Unreachable: a notebook is an object.
            return MergedNotebook {
                bytes: bytes.to_vec(),
                notices: self.notices,
            };
        };
        let mut members = MemberMerger {
            style: &self.style,
            conflicts: Vec::new(),
        };
        let mut changes = members.merge(&three, &HANDLED_MEMBERS, Some(""), &mut Vec::new());
        let conflicts = members.conflicts.into_iter();
        let conflicts = conflicts.map(|name| MergeNotice::MemberConflict { cell: None, name });
        self.notices.extend(conflicts);
        if let Some(cells) = cells {
            changes.insert("cells".to_owned(), MemberChange::Set(cells));
        }
        if self.minor != self.ours.minor() {
            let minor = MemberChange::Set(self.minor.to_string());
            changes.insert("nbformat_minor".to_owned(), minor);
        }
        let mut merged = bytes[..top.start()].to_vec();
        if changes.is_empty() {
            merged.extend_from_slice(&bytes[top.range()]);
        } else {
            let like = three.theirs.names();
            let text = three
                .ours
                .with_changes(&changes, &like, Some(""), &self.style);
            merged.extend_from_slice(text.as_bytes());
        }
        merged.extend_from_slice(&bytes[top.end()..]);
        MergedNotebook {
            bytes: merged,
            notices: self.notices,
        }
    }

    fn top_objects(&self) -> Option<ThreeObjects<'n>> {
        let top = |notebook: &'n Notebook| Object::parse(notebook.bytes(), notebook.spans().top);
        Some(ThreeObjects {
            base: top(self.base),
            ours: top(self.ours)?,
            theirs: top(self.theirs)?,
        })
    }

    /// The `cells` array; `None` if it is unchanged.
    fn cells(&mut self, placed: &[PlacedCell]) -> Option<String> {
        let texts: Vec<Option<String>> = placed
            .iter()
            .enumerate()
            .map(|(index, placed)| self.cell(index, placed))
            .collect();
        let our_indexes = placed.iter().map(|placed| match placed.origin {
            CellOrigin::Ours { ours, .. } => Some(ours),
            CellOrigin::Theirs(_) => None,
        });
        let our_indexes: Vec<Option<usize>> = our_indexes.collect();
        let in_place =
            our_indexes.len() == self.ours.count() && our_indexes.iter().flatten().is_sorted();
        if in_place && texts.iter().all(Option::is_none) {
            return None;
        }
        if placed.is_empty() {
            return Some("[]".to_owned());
        }
        let layout = &self.layout.cells;
        let mut out = format!("[{}", layout.open);
        let mut before = None;
        for (index, (&our_index, text)) in our_indexes.iter().zip(&texts).enumerate() {
            match (before, our_index) {
                _ if index == 0 => {}
                (Some(one), Some(two)) if one + 1 == two => {
                    let (one, two) = (self.ours.cell(one).span, self.ours.cell(two).span);
                    let gap = Span::new(one.end(), two.start());
                    out.push_str(&as_text(self.ours.slice(gap)));
                }
                _ => out.push_str(&layout.between),
            }
            match (text, our_index) {
                (Some(text), _) => out.push_str(text),
                (None, Some(our_index)) => {
                    let span = self.ours.cell(our_index).span;
                    out.push_str(&as_text(self.ours.slice(span)));
                }
                (None, None) => {}
            }
            before = our_index;
        }
        out.push_str(&layout.close);
        out.push(']');
        Some(out)
    }

    /// One cell of the result; `None` if it is our cell, unchanged.
    fn cell(&mut self, index: usize, placed: &PlacedCell) -> Option<String> {
        if let Some(by) = placed.deleted_by {
            self.notices
                .push(MergeNotice::DeletedAndChanged { cell: index, by });
        }
        if placed.moved_by_both {
            self.notices.push(MergeNotice::MoveConflict { cell: index });
        }
        match placed.origin {
            CellOrigin::Ours { base, ours, theirs } => self.our_cell(index, base, ours, theirs),
            CellOrigin::Theirs(theirs) => self.their_cell(index, theirs),
        }
    }

    fn our_cell(
        &mut self,
        index: usize,
        base: Option<usize>,
        ours: usize,
        theirs: Option<usize>,
    ) -> Option<String> {
        let cell = |notebook: &'n Notebook, index: usize| CellRef { notebook, index };
        let (our, their) = (cell(self.ours, ours), theirs.map(|n| cell(self.theirs, n)));
        let mut merged = MergedCell::default();
        if let Some(their) = their {
            let mut merger = CellMerger {
                members: MemberMerger {
                    style: &self.style,
                    conflicts: Vec::new(),
                },
                layout: &self.layout,
                markers: self.markers,
                cell_indentation: self.cell_indentation.as_deref(),
            };
            merged = merger.merge(base.map(|base| cell(self.base, base)), our, their);
        }
        self.push_notices(index, &merged);
        self.reconcile_our_id(index, our, their, &mut merged.changes);
        if merged.changes.is_empty() {
            return None;
        }
        let object = our.object()?;
        let their = their.and_then(CellRef::object);
        let like = their.as_ref().map(Object::names).unwrap_or_default();
        Some(object.with_changes(
            &merged.changes,
            &like,
            self.cell_indentation.as_deref(),
            &self.style,
        ))
    }

    fn push_notices(&mut self, cell: usize, merged: &MergedCell) {
        let candidates = [
            (merged.kind_conflict, MergeNotice::KindConflict { cell }),
            (merged.source_conflict, MergeNotice::SourceConflict { cell }),
            (merged.outputs_cleared, MergeNotice::OutputsCleared { cell }),
        ];
        let candidates = candidates.into_iter().filter(|(applies, _)| *applies);
        self.notices.extend(candidates.map(|(_, notice)| notice));
        let conflicts = merged
            .member_conflicts
            .iter()
            .map(|name| MergeNotice::MemberConflict {
                cell: Some(cell),
                name: name.clone(),
            });
        self.notices.extend(conflicts);
    }

    /// Adds an id to our cell if the result has ids and our file has none, and vice versa.
    fn reconcile_our_id(
        &mut self,
        index: usize,
        ours: CellRef<'_>,
        theirs: Option<CellRef<'_>>,
        changes: &mut MemberChanges,
    ) {
        let their_id = theirs.and_then(|their| their.notebook.id(their.index));
        if let (Some(MemberChange::Set(_)), Some(id)) = (changes.get("id"), their_id)
            && self.used_ids.ours.contains(&*id)
        {
            changes.remove("id");
        }
        let has_id = match changes.get("id") {
            Some(MemberChange::Set(_)) => true,
            Some(MemberChange::Remove) => false,
            None => ours.notebook.id(ours.index).is_some(),
        };
        if self.minor >= MINOR_WITH_IDS && self.ours.minor() < MINOR_WITH_IDS && !has_id {
            let id = self.new_id(index, ours);
            changes.insert("id".to_owned(), MemberChange::Set(id));
        } else if self.minor < MINOR_WITH_IDS && self.ours.minor() >= MINOR_WITH_IDS && has_id {
            changes.insert("id".to_owned(), MemberChange::Remove);
        }
    }

    fn new_id(&mut self, index: usize, cell: CellRef<'_>) -> String {
        let id = ids::derive_id(cell.kind(), &cell.source(), index, &self.used_ids.all);
        self.used_ids.all.insert(id.clone());
        text::encode(&id, self.layout.escapes)
    }

    /// A cell that only they have, in our layout.
    fn their_cell(&mut self, index: usize, theirs: usize) -> Option<String> {
        let cell = CellRef {
            notebook: self.theirs,
            index: theirs,
        };
        let mut changes = MemberChanges::new();
        if let Some(source) = self.their_source(cell) {
            changes.insert("source".to_owned(), MemberChange::Set(source));
        }
        let has_had_ids = self.theirs.minor() >= MINOR_WITH_IDS;
        match self.theirs.id(theirs) {
            Some(_) if self.minor < MINOR_WITH_IDS && has_had_ids => {
                changes.insert("id".to_owned(), MemberChange::Remove);
            }
            Some(id)
                if self.used_ids.ours.contains(&*id)
                    && self.used_ids.theirs.get(&*id) == Some(&1) =>
            {
                let new = self.new_id(index, cell);
                changes.insert("id".to_owned(), MemberChange::Set(new));
                let id = id.into_owned();
                self.notices
                    .push(MergeNotice::IdReplaced { cell: index, id });
            }
            None if self.minor >= MINOR_WITH_IDS && !has_had_ids => {
                let new = self.new_id(index, cell);
                changes.insert("id".to_owned(), MemberChange::Set(new));
            }
            _ => {}
        }
        let text = cell
            .object()?
            .with_changes(&changes, &[], None, &self.style);
        let at = self
            .cell_indentation
            .as_deref()
            .filter(|_| self.has_multiline_cells());
        Some(self.style.format(&text, at))
    }

    /// Their source in the shape of our sources, if it differs.
    fn their_source(&self, cell: CellRef<'_>) -> Option<String> {
        let value = cell.notebook.slice(cell.notebook.cell(cell.index).source);
        let shape = match (&self.layout.shape, value.first()?) {
            (SourceShape::Text, b'[') => SourceShape::Text,
            (SourceShape::Lines(_), b'"') => SourceShape::Lines(ArrayLayout {
                open: String::new(),
                between: ",".to_owned(),
                close: String::new(),
            }),
            _ => return None,
        };
        let source = cell.source();
        // U+FFFD may stand for a lone surrogate, which would be lost.
        let is_text = !source.contains(char::REPLACEMENT_CHARACTER);
        is_text.then(|| source::new_value(&source, &shape, self.layout.escapes))
    }

    /// Whether each member of our cells is on its own line.
    fn has_multiline_cells(&self) -> bool {
        if self.ours.count() == 0 {
            return true;
        }
        let span = self.ours.cell(0).span;
        let first = Object::parse(self.ours.bytes(), span);
        first.is_some_and(|cell| cell.member_indentation(None, &self.style).is_some())
    }
}

impl UsedIds {
    fn collect(ours: &Notebook, theirs: &Notebook, placed: &[PlacedCell]) -> Self {
        let mut ids = Self::default();
        for placed in placed {
            if let CellOrigin::Ours { ours: cell, .. } = placed.origin {
                ids.ours.extend(ours.id(cell).map(String::from));
            }
        }
        for id in (0..theirs.count()).filter_map(|cell| theirs.id(cell)) {
            *ids.theirs.entry(id.into_owned()).or_default() += 1;
        }
        ids.all.extend(ids.ours.iter().cloned());
        ids.all.extend(ids.theirs.keys().cloned());
        ids
    }
}

/// The merged minor version.
fn merged_minor(base: u32, ours: u32, theirs: u32) -> u32 {
    if theirs == base {
        ours
    } else if ours == base {
        theirs
    } else {
        ours.max(theirs)
    }
}

/// The style of a file, detected from its beginning.
fn detect_style(notebook: &Notebook, escapes: Escapes) -> Style {
    let top = notebook.slice(notebook.spans().top);
    Style::detect(top, escapes == Escapes::Ascii)
}
