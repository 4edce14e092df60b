//! Two people work on one notebook: what each of them meant is in what comes of it.

use std::collections::{HashMap, HashSet};

use cellwright_notebook::{Cells, Marks, Merged, Notebook, Remark, three_way};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::generate::layout;
use crate::support::cases;
use crate::support::relayout::{Layout, Order, Spacing, relayout};

/// A cell as a person thinks of it.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    /// Its place in the base, if it was there.
    origin: Option<usize>,
    id: String,
    lines: Vec<String>,
    output: String,
    tags: Vec<String>,
}

#[derive(Clone, Debug)]
enum Action {
    Edit(Index, Index),
    Append(Index),
    Run(Index),
    Tag(Index),
    Delete(Index),
    Move(Index, Index),
    Insert(Index),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => any::<(Index, Index)>().prop_map(|(cell, line)| Action::Edit(cell, line)),
        2 => any::<Index>().prop_map(Action::Append),
        2 => any::<Index>().prop_map(Action::Run),
        1 => any::<Index>().prop_map(Action::Tag),
        2 => any::<Index>().prop_map(Action::Delete),
        1 => any::<(Index, Index)>().prop_map(|(from, to)| Action::Move(from, to)),
        2 => any::<Index>().prop_map(Action::Insert),
    ]
}

/// A notebook as a person thinks of it.
#[derive(Clone, Debug)]
struct Side(Vec<Cell>);

impl Side {
    fn base(count: usize) -> Self {
        let cells = (0..count).map(|cell| Cell {
            origin: Some(cell),
            id: format!("base-{cell}"),
            lines: (0..5)
                .map(|line| format!("cell {cell} line {line}"))
                .collect(),
            output: format!("output {cell}"),
            tags: vec!["old".to_owned()],
        });
        Self(cells.collect())
    }

    fn after(&self, name: &str, actions: &[Action]) -> Self {
        let mut cells = self.0.clone();
        for (number, action) in actions.iter().enumerate() {
            let new = format!("{name} {number}");
            if let Action::Insert(at) = action {
                let cell = Cell {
                    origin: None,
                    id: format!("{name}-{number}"),
                    lines: vec![format!("{new} inserted"), format!("{new} inserted, too")],
                    output: String::new(),
                    tags: Vec::new(),
                };
                cells.insert(at.index(cells.len() + 1), cell);
                continue;
            }
            let count = cells.len();
            if count == 0 {
                continue;
            }
            match action {
                Action::Edit(cell, line) => {
                    let lines = &mut cells[cell.index(count)].lines;
                    let line = line.index(lines.len());
                    lines[line] = format!("{new} edited");
                }
                Action::Append(cell) => {
                    cells[cell.index(count)]
                        .lines
                        .push(format!("{new} appended"));
                }
                Action::Run(cell) => cells[cell.index(count)].output = format!("{new} output"),
                Action::Tag(cell) => cells[cell.index(count)].tags.push(format!("{new} tag")),
                Action::Delete(cell) => {
                    cells.remove(cell.index(count));
                }
                Action::Move(from, to) => {
                    let cell = cells.remove(from.index(count));
                    cells.insert(to.index(count), cell);
                }
                Action::Insert(_) => {}
            }
        }
        Self(cells)
    }

    fn bytes(&self, ids: bool, layout: &Layout) -> Vec<u8> {
        let cells = self.0.iter().map(|cell| {
            let outputs = if cell.output.is_empty() {
                json!([])
            } else {
                json!([{"output_type": "stream", "name": "stdout", "text": [cell.output]}])
            };
            let mut value = json!({
                "cell_type": "code",
                "execution_count": null,
                "metadata": {"tags": cell.tags},
                "outputs": outputs,
                "source": cell.lines.join("\n"),
            });
            if ids {
                value["id"] = json!(cell.id);
            }
            value
        });
        let cells: Vec<Value> = cells.collect();
        let notebook = json!({
            "cells": cells,
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": if ids { 5 } else { 4 },
        });
        relayout(&notebook.to_string(), layout)
    }

    fn cell(&self, origin: usize) -> Option<&Cell> {
        self.0.iter().find(|cell| cell.origin == Some(origin))
    }

    fn order(&self) -> Vec<usize> {
        self.0.iter().filter_map(|cell| cell.origin).collect()
    }

    fn has_moved(&self) -> bool {
        !self.order().is_sorted()
    }
}

/// What is read in a notebook.
fn read(bytes: &[u8]) -> Vec<Cell> {
    let document: Value =
        serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).unwrap();
    let notebook = Notebook::parse(bytes).unwrap();
    (0..notebook.count())
        .map(|index| {
            let cell = &document["cells"][index];
            Cell {
                origin: None,
                id: notebook.id(index).unwrap_or_default().into_owned(),
                lines: notebook
                    .source(index)
                    .split('\n')
                    .map(str::to_owned)
                    .collect(),
                output: cell["outputs"][0]["text"][0]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                tags: serde_json::from_value(cell["metadata"]["tags"].clone()).unwrap(),
            }
        })
        .collect()
}

struct Scene {
    base: Side,
    ours: Side,
    theirs: Side,
    /// The files of the three.
    files: [Vec<u8>; 3],
    merged: Merged,
    cells: Vec<Cell>,
}

impl Scene {
    fn new(base: Side, ours: Side, theirs: Side, ids: bool, layouts: [&Layout; 3]) -> Self {
        let files = [
            base.bytes(ids, layouts[0]),
            ours.bytes(ids, layouts[1]),
            theirs.bytes(ids, layouts[2]),
        ];
        let [one, two, three] = files
            .each_ref()
            .map(|bytes| Notebook::parse(bytes.as_slice()).unwrap());
        let merged = three_way(&one, &two, &three, &Marks::default());
        let cells = read(&merged.bytes);
        Self {
            base,
            ours,
            theirs,
            files,
            merged,
            cells,
        }
    }

    /// What came from them looks like the rest of our file; only the order of members stays theirs. If we have
    /// done nothing at all, it is their file.
    fn is_laid_out(&self, layout: &Layout, their: &Layout) {
        let [base, ours, theirs] = &self.files;
        if ours == base {
            assert_eq!(self.merged.bytes, *theirs);
            return;
        }
        let text = std::str::from_utf8(&self.merged.bytes).unwrap();
        let is_regular = !matches!(layout.spacing, Spacing::Ragged(_));
        // A file without a cell does not show its layout everywhere.
        let is_sorted = |layout: &Layout| matches!(layout.order, Order::Sorted);
        if is_regular && is_sorted(layout) && is_sorted(their) && !self.ours.0.is_empty() {
            let again = relayout(text.trim_start_matches('\u{feff}'), layout);
            assert_eq!(text, String::from_utf8(again).unwrap());
        }
    }

    /// Every line that one of them wrote is there, and once unless it stands between marks.
    fn nothing_is_lost(&self) {
        let old: HashSet<&String> = self.base.0.iter().flat_map(|cell| &cell.lines).collect();
        let mut found: HashMap<&String, usize> = HashMap::new();
        for line in self.cells.iter().flat_map(|cell| &cell.lines) {
            *found.entry(line).or_default() += 1;
        }
        for line in self
            .ours
            .0
            .iter()
            .chain(&self.theirs.0)
            .flat_map(|cell| &cell.lines)
        {
            if !old.contains(line) {
                assert_eq!(found.get(line), Some(&1), "{line} in {:?}", self.cells);
            }
        }
    }

    fn remarks_of(&self, index: usize) -> Vec<&Remark> {
        let of_it = |remark: &&Remark| match remark {
            Remark::Source { cell }
            | Remark::Deleted { cell, .. }
            | Remark::Kind { cell }
            | Remark::Moved { cell }
            | Remark::Cleared { cell }
            | Remark::Renamed { cell, .. } => *cell == index,
            Remark::Member { cell, .. } => *cell == Some(index),
            _ => false,
        };
        self.merged.remarks.iter().filter(of_it).collect()
    }

    /// Each cell is what those who touched it meant.
    fn cells_are_right(&self) {
        for base in &self.base.0 {
            let origin = base.origin.unwrap();
            let (ours, theirs) = (self.ours.cell(origin), self.theirs.cell(origin));
            let place = self.cells.iter().position(|cell| cell.id == base.id);
            let touched = |cell: &Cell| cell.lines != base.lines || cell.tags != base.tags;
            match (ours, theirs, place) {
                (Some(ours), Some(theirs), Some(place)) => {
                    self.cell_is_right(base, ours, theirs, place);
                }
                (Some(side), None, Some(place)) | (None, Some(side), Some(place)) => {
                    assert!(touched(side), "{base:?} was deleted");
                    assert_eq!(self.cells[place].lines, side.lines);
                    let told = self.remarks_of(place);
                    assert!(
                        told.iter()
                            .any(|remark| matches!(remark, Remark::Deleted { .. }))
                    );
                }
                (Some(side), None, None) | (None, Some(side), None) => assert!(!touched(side)),
                (None, None, None) => {}
                other => panic!("{base:?}: {other:?}"),
            }
        }
    }

    fn cell_is_right(&self, base: &Cell, ours: &Cell, theirs: &Cell, place: usize) {
        let cell = &self.cells[place];
        let told = self.remarks_of(place);
        let conflict = told
            .iter()
            .any(|remark| matches!(remark, Remark::Source { .. }));
        // Whose source it is.
        if theirs.lines == base.lines || ours.lines == theirs.lines {
            assert_eq!(cell.lines, ours.lines);
        } else if ours.lines == base.lines {
            assert_eq!(cell.lines, theirs.lines);
        } else {
            assert_eq!(conflict, cell.lines.contains(&"=======".to_owned()));
            assert_eq!(cell.output, "", "outputs that fit no source");
            assert!(
                told.iter()
                    .any(|remark| matches!(remark, Remark::Cleared { .. }))
            );
        }
        assert!(!conflict || (ours.lines != base.lines && theirs.lines != base.lines));
        let from = if cell.lines == ours.lines && cell.lines == theirs.lines {
            if ours.output == base.output {
                theirs
            } else {
                ours
            }
        } else if cell.lines == ours.lines {
            ours
        } else if cell.lines == theirs.lines {
            theirs
        } else {
            &Cell {
                output: String::new(),
                ..base.clone()
            }
        };
        assert_eq!(cell.output, from.output);
        let mut tags = ours.tags.clone();
        tags.extend(theirs.tags.iter().filter(|tag| *tag != "old").cloned());
        assert_eq!(cell.tags, tags);
    }

    /// If one of them moved cells, they are in that order; new cells stand behind the cell that they
    /// were put behind, if that is where it was.
    fn order_is_right(&self) {
        let place = |id: &String| self.cells.iter().position(|cell| cell.id == *id);
        for (side, other) in [(&self.ours, &self.theirs), (&self.theirs, &self.ours)] {
            if other.has_moved() {
                continue;
            }
            let places: Vec<usize> = side.0.iter().filter_map(|cell| place(&cell.id)).collect();
            assert!(places.is_sorted(), "{side:?} became {:?}", self.cells);
        }
        let torn = |remark: &Remark| matches!(remark, Remark::Moved { .. });
        if self.merged.remarks.iter().any(torn) {
            assert!(self.ours.has_moved() && self.theirs.has_moved());
        }
    }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn what_each_of_them_meant_is_there(
        count in 0..6usize,
        ours in vec(action(), 0..6),
        theirs in vec(action(), 0..6),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = Side::base(count);
        let (ours, theirs) = (base.after("us", &ours), base.after("them", &theirs));
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        let scene = Scene::new(base, ours, theirs, true, layouts);
        scene.is_laid_out(layouts[1], layouts[2]);
        scene.nothing_is_lost();
        scene.cells_are_right();
        scene.order_is_right();
        let ids: HashSet<&String> = scene.cells.iter().map(|cell| &cell.id).collect();
        prop_assert_eq!(ids.len(), scene.cells.len());
    }

    #[test]
    fn nothing_is_lost_without_ids(
        count in 0..6usize,
        ours in vec(action(), 0..6),
        theirs in vec(action(), 0..6),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = Side::base(count);
        let (ours, theirs) = (base.after("us", &ours), base.after("them", &theirs));
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        Scene::new(base, ours, theirs, false, layouts).nothing_is_lost();
    }

    #[test]
    fn who_works_elsewhere_is_in_nobodys_way(
        ours in vec((0..3usize, 0..5usize), 1..4),
        theirs in vec((3..6usize, 0..5usize), 1..4),
        ids in any::<bool>(),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = Side::base(6);
        let edited = |name: &str, edits: &[(usize, usize)]| {
            let mut side = base.clone();
            for (number, (cell, line)) in edits.iter().enumerate() {
                side.0[*cell].lines[*line] = format!("cell {cell} line {line} {name} {number}");
                side.0[*cell].output = format!("{name} {number} output");
            }
            side
        };
        let (ours, theirs) = (edited("us", &ours), edited("them", &theirs));
        let expected: Vec<Cell> = (0..6).map(|n| if n < 3 { &ours } else { &theirs }.0[n].clone()).collect();
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        let scene = Scene::new(base, ours, theirs, ids, layouts);
        prop_assert_eq!(&scene.merged.remarks, &[]);
        prop_assert_eq!(scene.cells.len(), 6);
        for (found, expected) in scene.cells.iter().zip(&expected) {
            prop_assert_eq!(&found.lines, &expected.lines);
            prop_assert_eq!(&found.output, &expected.output);
        }
    }
}
