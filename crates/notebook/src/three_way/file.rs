//! The file that comes of two: ours, with what they changed spliced in.

use std::collections::{HashMap, HashSet};

use super::cell::{Cell, CellMerger, MergedCell};
use super::members::{Members, Three, text_of};
use super::order::{Item, Placed, arrange};
use super::{Marks, Merged, Remark};
use crate::document::{Cells, Notebook};
use crate::ids;
use crate::json::alter::{Change, Changes, Object, indentation};
use crate::json::text::{self, Escapes};
use crate::layout::Layout;
use crate::layout::Style;
use crate::source::{self, ArrayLayout, Shape};
use crate::span::Span;

/// Since this minor number cells have ids.
const WITH_IDS: u32 = 5;

/// Members of the file that have rules of their own.
const OWN: [&str; 2] = ["cells", "nbformat_minor"];

pub(super) struct Merger<'n> {
    base: &'n Notebook,
    ours: &'n Notebook,
    theirs: &'n Notebook,
    marks: &'n Marks,
    layout: Layout,
    spacing: Style,
    /// How the lines of cells are indented, if they have lines of their own.
    at: Option<String>,
    /// The minor number of the result.
    minor: u32,
    taken: Ids,
    remarks: Vec<Remark>,
}

/// Ids that are in use.
#[derive(Default)]
struct Ids {
    /// By our cells that are in the result.
    ours: HashSet<String>,
    /// By how many of their cells.
    theirs: HashMap<String, usize>,
    /// By any cell.
    all: HashSet<String>,
}

impl<'n> Merger<'n> {
    pub(super) fn new(
        base: &'n Notebook,
        ours: &'n Notebook,
        theirs: &'n Notebook,
        marks: &'n Marks,
    ) -> Self {
        let layout = Layout::of(ours, 0);
        Self {
            base,
            ours,
            theirs,
            marks,
            spacing: spacing(ours, layout.escapes),
            at: indentation(&layout.cells.open),
            layout,
            minor: minor(base.minor(), ours.minor(), theirs.minor()),
            taken: Ids::default(),
            remarks: Vec::new(),
        }
    }

    pub(super) fn merge(mut self) -> Merged {
        let placed = arrange(self.base, self.ours, self.theirs);
        self.taken = Ids::of(self.ours, self.theirs, &placed);
        let (bytes, top) = (self.ours.bytes(), self.ours.frame().top);
        let cells = self.cells(&placed);
        let Some(three) = self.tops() else {
            // Not reached: a notebook is an object.
            return Merged {
                bytes: bytes.to_vec(),
                remarks: self.remarks,
            };
        };
        let mut members = Members {
            spacing: &self.spacing,
            clashes: Vec::new(),
        };
        let mut changes = members.merge(&three, &OWN, Some(""), &mut Vec::new());
        let clashes = members.clashes.into_iter();
        let clashes = clashes.map(|name| Remark::Member { cell: None, name });
        self.remarks.extend(clashes);
        if let Some(cells) = cells {
            changes.insert("cells".to_owned(), Change::Set(cells));
        }
        if self.minor != self.ours.minor() {
            let minor = Change::Set(self.minor.to_string());
            changes.insert("nbformat_minor".to_owned(), minor);
        }
        let mut merged = bytes[..top.start()].to_vec();
        if changes.is_empty() {
            merged.extend_from_slice(&bytes[top.range()]);
        } else {
            let like = three.theirs.names();
            let text = three.ours.with(&changes, &like, Some(""), &self.spacing);
            merged.extend_from_slice(text.as_bytes());
        }
        merged.extend_from_slice(&bytes[top.end()..]);
        Merged {
            bytes: merged,
            remarks: self.remarks,
        }
    }

    fn tops(&self) -> Option<Three<'n>> {
        let top = |notebook: &'n Notebook| Object::at(notebook.bytes(), notebook.frame().top);
        Some(Three {
            base: top(self.base),
            ours: top(self.ours)?,
            theirs: top(self.theirs)?,
        })
    }

    /// The `cells` array; `None` if it stays as it is.
    fn cells(&mut self, placed: &[Placed]) -> Option<String> {
        let texts: Vec<Option<String>> = placed
            .iter()
            .enumerate()
            .map(|(index, placed)| self.cell(index, placed))
            .collect();
        let places = placed.iter().map(|placed| match placed.item {
            Item::Ours { ours, .. } => Some(ours),
            Item::Theirs(_) => None,
        });
        let places: Vec<Option<usize>> = places.collect();
        let in_place = places.len() == self.ours.count() && places.iter().flatten().is_sorted();
        if in_place && texts.iter().all(Option::is_none) {
            return None;
        }
        if placed.is_empty() {
            return Some("[]".to_owned());
        }
        let layout = &self.layout.cells;
        let mut out = format!("[{}", layout.open);
        let mut before = None;
        for (index, (&place, text)) in places.iter().zip(&texts).enumerate() {
            match (before, place) {
                _ if index == 0 => {}
                (Some(one), Some(two)) if one + 1 == two => {
                    let (one, two) = (self.ours.cell(one).span, self.ours.cell(two).span);
                    let gap = Span::new(one.end(), two.start());
                    out.push_str(&text_of(self.ours.slice(gap)));
                }
                _ => out.push_str(&layout.between),
            }
            match (text, place) {
                (Some(text), _) => out.push_str(text),
                (None, Some(place)) => {
                    let span = self.ours.cell(place).span;
                    out.push_str(&text_of(self.ours.slice(span)));
                }
                (None, None) => {}
            }
            before = place;
        }
        out.push_str(&layout.close);
        out.push(']');
        Some(out)
    }

    /// One cell of the result; `None` if it is ours as it is.
    fn cell(&mut self, index: usize, placed: &Placed) -> Option<String> {
        if let Some(by) = placed.deleted_by {
            self.remarks.push(Remark::Deleted { cell: index, by });
        }
        if placed.torn {
            self.remarks.push(Remark::Moved { cell: index });
        }
        match placed.item {
            Item::Ours { base, ours, theirs } => self.our_cell(index, base, ours, theirs),
            Item::Theirs(theirs) => self.their_cell(index, theirs),
        }
    }

    fn our_cell(
        &mut self,
        index: usize,
        base: Option<usize>,
        ours: usize,
        theirs: Option<usize>,
    ) -> Option<String> {
        let cell = |notebook: &'n Notebook, index: usize| Cell { notebook, index };
        let (our, their) = (cell(self.ours, ours), theirs.map(|n| cell(self.theirs, n)));
        let mut merged = MergedCell::default();
        if let Some(their) = their {
            let mut merger = CellMerger {
                members: Members {
                    spacing: &self.spacing,
                    clashes: Vec::new(),
                },
                layout: &self.layout,
                marks: self.marks,
                at: self.at.as_deref(),
            };
            merged = merger.merge(base.map(|base| cell(self.base, base)), our, their);
        }
        self.tell(index, &merged);
        self.fit_our_id(index, our, their, &mut merged.changes);
        if merged.changes.is_empty() {
            return None;
        }
        let object = our.object()?;
        let their = their.and_then(Cell::object);
        let like = their.as_ref().map(Object::names).unwrap_or_default();
        Some(object.with(&merged.changes, &like, self.at.as_deref(), &self.spacing))
    }

    fn tell(&mut self, cell: usize, merged: &MergedCell) {
        let told = [
            (merged.kind_conflict, Remark::Kind { cell }),
            (merged.source_conflict, Remark::Source { cell }),
            (merged.cleared, Remark::Cleared { cell }),
        ];
        let told = told.into_iter().filter(|(is_so, _)| *is_so);
        self.remarks.extend(told.map(|(_, remark)| remark));
        let clashes = merged.clashes.iter().map(|name| Remark::Member {
            cell: Some(cell),
            name: name.clone(),
        });
        self.remarks.extend(clashes);
    }

    /// An id where the result wants one and our side had none, and the other way round.
    fn fit_our_id(
        &mut self,
        index: usize,
        ours: Cell<'_>,
        theirs: Option<Cell<'_>>,
        changes: &mut Changes,
    ) {
        let their_id = theirs.and_then(|their| their.notebook.id(their.index));
        if let (Some(Change::Set(_)), Some(id)) = (changes.get("id"), their_id)
            && self.taken.ours.contains(&*id)
        {
            changes.remove("id");
        }
        let has_id = match changes.get("id") {
            Some(Change::Set(_)) => true,
            Some(Change::Remove) => false,
            None => ours.notebook.id(ours.index).is_some(),
        };
        if self.minor >= WITH_IDS && self.ours.minor() < WITH_IDS && !has_id {
            let id = self.new_id(index, ours);
            changes.insert("id".to_owned(), Change::Set(id));
        } else if self.minor < WITH_IDS && self.ours.minor() >= WITH_IDS && has_id {
            changes.insert("id".to_owned(), Change::Remove);
        }
    }

    fn new_id(&mut self, index: usize, cell: Cell<'_>) -> String {
        let id = ids::derive(cell.kind(), &cell.source(), index, &self.taken.all);
        self.taken.all.insert(id.clone());
        text::encode(&id, self.layout.escapes)
    }

    /// A cell that only they have, in our layout.
    fn their_cell(&mut self, index: usize, theirs: usize) -> Option<String> {
        let cell = Cell {
            notebook: self.theirs,
            index: theirs,
        };
        let mut changes = Changes::new();
        if let Some(source) = self.their_source(cell) {
            changes.insert("source".to_owned(), Change::Set(source));
        }
        let has_had_ids = self.theirs.minor() >= WITH_IDS;
        match self.theirs.id(theirs) {
            Some(_) if self.minor < WITH_IDS && has_had_ids => {
                changes.insert("id".to_owned(), Change::Remove);
            }
            Some(id)
                if self.taken.ours.contains(&*id) && self.taken.theirs.get(&*id) == Some(&1) =>
            {
                let new = self.new_id(index, cell);
                changes.insert("id".to_owned(), Change::Set(new));
                let id = id.into_owned();
                self.remarks.push(Remark::Renamed { cell: index, id });
            }
            None if self.minor >= WITH_IDS && !has_had_ids => {
                let new = self.new_id(index, cell);
                changes.insert("id".to_owned(), Change::Set(new));
            }
            _ => {}
        }
        let text = cell.object()?.with(&changes, &[], None, &self.spacing);
        let at = self.at.as_deref().filter(|_| self.has_open_cells());
        Some(self.spacing.lay_out(&text, at))
    }

    /// Their source in the shape that ours have, if theirs is another.
    fn their_source(&self, cell: Cell<'_>) -> Option<String> {
        let value = cell.notebook.slice(cell.notebook.cell(cell.index).source);
        let shape = match (&self.layout.shape, value.first()?) {
            (Shape::Text, b'[') => Shape::Text,
            (Shape::Lines(_), b'"') => Shape::Lines(ArrayLayout {
                open: String::new(),
                between: ",".to_owned(),
                close: String::new(),
            }),
            _ => return None,
        };
        let source = cell.source();
        // It may stand for half of a surrogate pair, which would not survive.
        let is_text = !source.contains(char::REPLACEMENT_CHARACTER);
        is_text.then(|| source::fresh(&source, &shape, self.layout.escapes))
    }

    /// Whether the members of our cells have lines of their own.
    fn has_open_cells(&self) -> bool {
        if self.ours.count() == 0 {
            return true;
        }
        let span = self.ours.cell(0).span;
        let first = Object::at(self.ours.bytes(), span);
        first.is_some_and(|cell| cell.inside(None, &self.spacing).is_some())
    }
}

impl Ids {
    fn of(ours: &Notebook, theirs: &Notebook, placed: &[Placed]) -> Self {
        let mut ids = Self::default();
        for placed in placed {
            if let Item::Ours { ours: cell, .. } = placed.item {
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

/// The minor number that two sides agree on.
fn minor(base: u32, ours: u32, theirs: u32) -> u32 {
    if theirs == base {
        ours
    } else if ours == base {
        theirs
    } else {
        ours.max(theirs)
    }
}

/// How a file is laid out, as its beginning shows.
fn spacing(notebook: &Notebook, escapes: Escapes) -> Style {
    let top = notebook.slice(notebook.frame().top);
    Style::of(top, escapes == Escapes::Ascii)
}
