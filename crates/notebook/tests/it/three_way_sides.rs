//! Two users change one notebook: the merge has the changes of both.

use std::collections::{HashMap, HashSet};

use cellwright_notebook::{
    Cells, ConflictMarkers, MergeNotice, MergedNotebook, Notebook, merge_three_way,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::generate::layout;
use crate::support::cases;
use crate::support::relayout::{Layout, Order, Spacing, relayout};

/// A cell as a user sees it.
#[derive(Clone, Debug, PartialEq)]
struct ModelCell {
    /// Its index in the base, if it was there.
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

/// A notebook as a user sees it.
#[derive(Clone, Debug)]
struct EditedSide(Vec<ModelCell>);

impl EditedSide {
    fn base(count: usize) -> Self {
        let cells = (0..count).map(|cell| ModelCell {
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
                let cell = ModelCell {
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

    fn cell(&self, origin: usize) -> Option<&ModelCell> {
        self.0.iter().find(|cell| cell.origin == Some(origin))
    }

    fn order(&self) -> Vec<usize> {
        self.0.iter().filter_map(|cell| cell.origin).collect()
    }

    fn has_moved(&self) -> bool {
        !self.order().is_sorted()
    }
}

/// The cells of a notebook file.
fn read(bytes: &[u8]) -> Vec<ModelCell> {
    let document: Value =
        serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).unwrap();
    let notebook = Notebook::parse(bytes).unwrap();
    (0..notebook.count())
        .map(|index| {
            let cell = &document["cells"][index];
            ModelCell {
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

struct MergeFixture {
    base: EditedSide,
    ours: EditedSide,
    theirs: EditedSide,
    /// The files: base, ours, theirs.
    files: [Vec<u8>; 3],
    merged: MergedNotebook,
    cells: Vec<ModelCell>,
}

impl MergeFixture {
    fn new(
        base: EditedSide,
        ours: EditedSide,
        theirs: EditedSide,
        ids: bool,
        layouts: [&Layout; 3],
    ) -> Self {
        let files = [
            base.bytes(ids, layouts[0]),
            ours.bytes(ids, layouts[1]),
            theirs.bytes(ids, layouts[2]),
        ];
        let [one, two, three] = files
            .each_ref()
            .map(|bytes| Notebook::parse(bytes.as_slice()).unwrap());
        let merged = merge_three_way(&one, &two, &three, &ConflictMarkers::default());
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

    /// Asserts that their changes are in our layout; only the order of members stays theirs. If
    /// we changed nothing, the result is their file.
    fn assert_layout(&self, layout: &Layout, their: &Layout) {
        let [base, ours, theirs] = &self.files;
        if ours == base {
            assert_eq!(self.merged.bytes, *theirs);
            return;
        }
        let text = std::str::from_utf8(&self.merged.bytes).unwrap();
        let is_regular = !matches!(layout.spacing, Spacing::Ragged(_));
        // A file without cells does not show its whole layout.
        let is_sorted = |layout: &Layout| matches!(layout.order, Order::Sorted);
        if is_regular && is_sorted(layout) && is_sorted(their) && !self.ours.0.is_empty() {
            let again = relayout(text.trim_start_matches('\u{feff}'), layout);
            assert_eq!(text, String::from_utf8(again).unwrap());
        }
    }

    /// Asserts that every line that either side wrote is there exactly once.
    fn assert_nothing_lost(&self) {
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

    fn notices_for(&self, index: usize) -> Vec<&MergeNotice> {
        let concerns_cell = |notice: &&MergeNotice| match notice {
            MergeNotice::SourceConflict { cell }
            | MergeNotice::DeletedAndChanged { cell, .. }
            | MergeNotice::KindConflict { cell }
            | MergeNotice::MoveConflict { cell }
            | MergeNotice::OutputsCleared { cell }
            | MergeNotice::IdReplaced { cell, .. } => *cell == index,
            MergeNotice::MemberConflict { cell, .. } => *cell == Some(index),
        };
        self.merged.notices.iter().filter(concerns_cell).collect()
    }

    /// Asserts that each cell has the changes of both sides.
    fn assert_cells(&self) {
        for base in &self.base.0 {
            let origin = base.origin.unwrap();
            let (ours, theirs) = (self.ours.cell(origin), self.theirs.cell(origin));
            let index = self.cells.iter().position(|cell| cell.id == base.id);
            let is_changed = |cell: &ModelCell| cell.lines != base.lines || cell.tags != base.tags;
            match (ours, theirs, index) {
                (Some(ours), Some(theirs), Some(index)) => {
                    self.assert_cell(base, ours, theirs, index);
                }
                (Some(side), None, Some(index)) | (None, Some(side), Some(index)) => {
                    assert!(is_changed(side), "{base:?} was deleted");
                    assert_eq!(self.cells[index].lines, side.lines);
                    let notices = self.notices_for(index);
                    assert!(
                        notices
                            .iter()
                            .any(|notice| matches!(notice, MergeNotice::DeletedAndChanged { .. }))
                    );
                }
                (Some(side), None, None) | (None, Some(side), None) => {
                    assert!(!is_changed(side));
                }
                (None, None, None) => {}
                other => panic!("{base:?}: {other:?}"),
            }
        }
    }

    fn assert_cell(&self, base: &ModelCell, ours: &ModelCell, theirs: &ModelCell, index: usize) {
        let cell = &self.cells[index];
        let notices = self.notices_for(index);
        let conflict = notices
            .iter()
            .any(|notice| matches!(notice, MergeNotice::SourceConflict { .. }));
        // Which side the source comes from.
        if theirs.lines == base.lines || ours.lines == theirs.lines {
            assert_eq!(cell.lines, ours.lines);
        } else if ours.lines == base.lines {
            assert_eq!(cell.lines, theirs.lines);
        } else {
            assert_eq!(conflict, cell.lines.contains(&"=======".to_owned()));
            assert_eq!(cell.output, "", "outputs that fit no source");
            assert!(
                notices
                    .iter()
                    .any(|notice| matches!(notice, MergeNotice::OutputsCleared { .. }))
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
            &ModelCell {
                output: String::new(),
                ..base.clone()
            }
        };
        assert_eq!(cell.output, from.output);
        let mut tags = ours.tags.clone();
        tags.extend(theirs.tags.iter().filter(|tag| *tag != "old").cloned());
        assert_eq!(cell.tags, tags);
    }

    /// Asserts that cells moved by one side are in that side's order.
    fn assert_order(&self) {
        let index = |id: &String| self.cells.iter().position(|cell| cell.id == *id);
        for (side, other) in [(&self.ours, &self.theirs), (&self.theirs, &self.ours)] {
            if other.has_moved() {
                continue;
            }
            let indexes: Vec<usize> = side.0.iter().filter_map(|cell| index(&cell.id)).collect();
            assert!(indexes.is_sorted(), "{side:?} became {:?}", self.cells);
        }
        let is_move_conflict =
            |notice: &MergeNotice| matches!(notice, MergeNotice::MoveConflict { .. });
        if self.merged.notices.iter().any(is_move_conflict) {
            assert!(self.ours.has_moved() && self.theirs.has_moved());
        }
    }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn merge_contains_the_changes_of_both_sides(
        count in 0..6usize,
        ours in vec(action(), 0..6),
        theirs in vec(action(), 0..6),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = EditedSide::base(count);
        let (ours, theirs) = (base.after("us", &ours), base.after("them", &theirs));
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        let fixture = MergeFixture::new(base, ours, theirs, true, layouts);
        fixture.assert_layout(layouts[1], layouts[2]);
        fixture.assert_nothing_lost();
        fixture.assert_cells();
        fixture.assert_order();
        let ids: HashSet<&String> = fixture.cells.iter().map(|cell| &cell.id).collect();
        prop_assert_eq!(ids.len(), fixture.cells.len());
    }

    #[test]
    fn nothing_is_lost_without_ids(
        count in 0..6usize,
        ours in vec(action(), 0..6),
        theirs in vec(action(), 0..6),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = EditedSide::base(count);
        let (ours, theirs) = (base.after("us", &ours), base.after("them", &theirs));
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        MergeFixture::new(base, ours, theirs, false, layouts).assert_nothing_lost();
    }

    #[test]
    fn edits_to_different_cells_merge_cleanly(
        ours in vec((0..3usize, 0..5usize), 1..4),
        theirs in vec((3..6usize, 0..5usize), 1..4),
        ids in any::<bool>(),
        layouts in (layout(), layout(), layout()),
    ) {
        let base = EditedSide::base(6);
        let edited = |name: &str, edits: &[(usize, usize)]| {
            let mut side = base.clone();
            for (number, (cell, line)) in edits.iter().enumerate() {
                side.0[*cell].lines[*line] = format!("cell {cell} line {line} {name} {number}");
                side.0[*cell].output = format!("{name} {number} output");
            }
            side
        };
        let (ours, theirs) = (edited("us", &ours), edited("them", &theirs));
        let expected: Vec<ModelCell> = (0..6).map(|n| if n < 3 { &ours } else { &theirs }.0[n].clone()).collect();
        let layouts = [&layouts.0, &layouts.1, &layouts.2];
        let fixture = MergeFixture::new(base, ours, theirs, ids, layouts);
        prop_assert_eq!(&fixture.merged.notices, &[]);
        prop_assert_eq!(fixture.cells.len(), 6);
        for (found, expected) in fixture.cells.iter().zip(&expected) {
            prop_assert_eq!(&found.lines, &expected.lines);
            prop_assert_eq!(&found.output, &expected.output);
        }
    }
}
