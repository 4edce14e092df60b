//! An edited view makes the requested changes and no others.

use std::collections::HashSet;

use cellwright_notebook::{
    CellChangeCounts, CellKind, Cells, MarkerStyle, Notebook, Revision, append_cell, compose,
    parse, rewrite,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::generate::{Generated, notebook};
use crate::support::json::Document;
use crate::support::text::typed;
use crate::support::{cases, lossy};

/// A block of the edited view.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    origin: Option<usize>,
    kind: CellKind,
    source: String,
}

/// One change that a user makes to a view.
#[derive(Clone, Debug)]
enum Action {
    Change(Index, String),
    Append(Index, String),
    Delete(Index),
    Move(Index, Index),
    Insert(Index, CellKind, String),
    Kind(Index, CellKind),
}

fn action() -> impl Strategy<Value = Action> {
    let kind = || select(vec![CellKind::Code, CellKind::Markdown, CellKind::Raw]);
    prop_oneof![
        (any::<Index>(), typed()).prop_map(|(at, text)| Action::Change(at, text)),
        (any::<Index>(), typed()).prop_map(|(at, text)| Action::Append(at, text)),
        any::<Index>().prop_map(Action::Delete),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Action::Move(from, to)),
        (any::<Index>(), kind(), typed()).prop_map(|(at, k, t)| Action::Insert(at, k, t)),
        (any::<Index>(), kind()).prop_map(|(at, kind)| Action::Kind(at, kind)),
    ]
}

fn blocks_of(notebook: &Notebook) -> Vec<Block> {
    (0..notebook.count())
        .map(|cell| Block {
            origin: Some(cell),
            kind: notebook.kind(cell),
            source: notebook.source(cell).into_owned(),
        })
        .collect()
}

fn apply_action(blocks: &mut Vec<Block>, action: Action) {
    if let Action::Insert(at, kind, source) = action {
        let at = at.index(blocks.len() + 1);
        let origin = None;
        blocks.insert(
            at,
            Block {
                origin,
                kind,
                source,
            },
        );
        return;
    }
    if blocks.is_empty() {
        return;
    }
    let count = blocks.len();
    match action {
        Action::Change(at, source) => blocks[at.index(count)].source = source,
        Action::Append(at, source) => blocks[at.index(count)].source.push_str(&source),
        Action::Kind(at, kind) => blocks[at.index(count)].kind = kind,
        Action::Delete(at) => {
            blocks.remove(at.index(count));
        }
        Action::Move(from, to) => {
            let block = blocks.remove(from.index(count));
            blocks.insert(to.index(count), block);
        }
        Action::Insert(..) => {}
    }
}

/// An index beyond all cells.
const UNKNOWN_CELL: usize = 1000;

/// The view of edited blocks. The markers of new code blocks name no cell. Those of other new
/// blocks name an unknown one, because their text could also be in the percent format.
fn view(blocks: &[Block], notebook: &Notebook, markers: MarkerStyle) -> String {
    let mut text = String::new();
    for block in blocks {
        let Block { kind, source, .. } = block;
        if let Some(cell) = block.origin {
            let id = notebook.id(cell);
            append_cell(&mut text, cell, *kind, id.as_deref(), source, markers);
        } else {
            let markers = match kind {
                CellKind::Code => MarkerStyle::Stable,
                _ => MarkerStyle::Indexes,
            };
            append_cell(&mut text, UNKNOWN_CELL, *kind, None, source, markers);
        }
    }
    text
}

/// The file after an edit of the view.
fn edited(notebook: &Notebook, text: &str) -> Vec<u8> {
    let (plan, _) = rewrite(notebook, parse(text).unwrap());
    let edited = compose(notebook, &plan);
    let bytes = edited.to_bytes();
    let mut written = Vec::new();
    edited.write_to(&mut written).unwrap();
    assert_eq!(written, bytes);
    assert_eq!(edited.revision(), Revision::compute(&bytes));
    bytes
}

/// Checks the result of an edit against the edited blocks.
fn check(old: &[u8], new: &[u8], blocks: &[Block], notebook: &Notebook) {
    let before = Document::read(old);
    let after = Document::read(new);
    assert_eq!(after.around(), before.around());
    assert_eq!(after.cells().len(), blocks.len());
    let old_ids: HashSet<String> = (0..before.cells().len())
        .filter_map(|cell| before.id(cell))
        .collect();
    let mut new_ids = HashSet::new();
    for (cell, block) in blocks.iter().enumerate() {
        assert_eq!(after.kind(cell), block.kind.name());
        assert_eq!(
            after.source(cell),
            block.source,
            "{}",
            lossy(after.raw(cell))
        );
        match block.origin {
            Some(origin) => {
                let kept =
                    block.kind == notebook.kind(origin) && block.source == notebook.source(origin);
                if kept {
                    assert_eq!(lossy(after.raw(cell)), lossy(before.raw(origin)));
                }
                assert_eq!(after.id(cell), before.id(origin));
                let old_metadata = before.cells()[origin].get("metadata");
                let new_metadata = after.cells()[cell].get("metadata");
                assert_eq!(
                    old_metadata.map(|node| lossy(node.raw(old))),
                    new_metadata.map(|node| lossy(node.raw(new)))
                );
            }
            None => check_new_cell(&after, cell, block.kind, notebook.minor() >= 5),
        }
        if let (None, Some(id)) = (block.origin, after.id(cell)) {
            assert!(!old_ids.contains(&id), "id {id} is in use");
            assert!(new_ids.insert(id), "two new cells with one id");
        }
    }
    let reparsed = Notebook::parse(new).unwrap();
    assert_eq!(reparsed.count(), blocks.len());
}

fn check_new_cell(after: &Document<'_>, cell: usize, kind: CellKind, wants_id: bool) {
    let node = &after.cells()[cell];
    let raw = |name: &str| node.get(name).map(|value| lossy(value.raw(after.bytes)));
    assert_eq!(raw("metadata").as_deref(), Some("{}"));
    assert_eq!(after.id(cell).is_some(), wants_id);
    let code = kind == CellKind::Code;
    assert_eq!(raw("execution_count").as_deref(), code.then_some("null"));
    assert_eq!(raw("outputs").as_deref(), code.then_some("[]"));
    assert_eq!(
        node.names().len(),
        3 + usize::from(wants_id) + 2 * usize::from(code)
    );
}

/// The largest number of cells that can keep their order, found by trying all subsets.
fn longest_increasing_len(origins: &[usize]) -> usize {
    let choices = 0..1u32 << origins.len();
    let rising = choices.filter_map(|choice| {
        let chosen: Vec<usize> = (0..origins.len())
            .filter(|index| choice >> index & 1 == 1)
            .map(|index| origins[index])
            .collect();
        chosen.is_sorted().then_some(chosen.len())
    });
    rising.max().unwrap_or(0)
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn edited_view_gives_the_requested_cells(
        Generated(bytes) in notebook(),
        actions in vec(action(), 0..6),
        ids in any::<bool>(),
    ) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let original = blocks_of(&notebook);
        let mut blocks = original.clone();
        for action in actions {
            apply_action(&mut blocks, action);
        }
        let markers = if ids { MarkerStyle::Ids } else { MarkerStyle::Indexes };
        let text = view(&blocks, &notebook, markers);
        let new = edited(&notebook, &text);
        check(&bytes, &new, &blocks, &notebook);
        if blocks == original {
            prop_assert_eq!(lossy(&new), lossy(&bytes));
        }
        // The same edit of the same file gives the same file, including ids.
        let again = Notebook::parse(&bytes[..]).unwrap();
        prop_assert_eq!(lossy(&edited(&again, &text)), lossy(&new));
        let (plan, _) = rewrite(&notebook, parse(&text).unwrap());
        let tally = CellChangeCounts::count(&plan, &notebook);
        let new_blocks = blocks.iter().filter(|block| block.origin.is_none()).count();
        prop_assert_eq!(tally.added, new_blocks);
        prop_assert_eq!(tally.kept + tally.changed + tally.removed, notebook.count());
        prop_assert_eq!(tally.kept + tally.changed + tally.added, blocks.len());
        let origins: Vec<usize> = blocks.iter().filter_map(|block| block.origin).collect();
        prop_assert_eq!(tally.moved, origins.len() - longest_increasing_len(&origins));
    }
}

#[test]
fn first_cell_of_empty_notebook_follows_file_layout() {
    for (empty, expected) in [
        (
            "{\"cells\":[],\"nbformat\":4,\"nbformat_minor\":4}",
            "{\"cells\":[{\"cell_type\":\"raw\",\"metadata\":{},\"source\":[\"a\\n\",\"b\"]}],\
             \"nbformat\":4,\"nbformat_minor\":4}",
        ),
        (
            "{\n  \"cells\": [],\n  \"nbformat\": 4\n}\n",
            "{\n  \"cells\": [\n    {\n      \"cell_type\": \"raw\",\n      \"metadata\": {},\n      \
             \"source\": [\n        \"a\\n\",\n        \"b\"\n      ]\n    }\n  ],\n  \"nbformat\": 4\n}\n",
        ),
        // Colons inside the first name do not belong to the layout.
        (
            "{\"a\\\"::b\":1,\"cells\":[],\"nbformat\":4}",
            "{\"a\\\"::b\":1,\"cells\":[{\"cell_type\": \"raw\",\"metadata\": {},\
             \"source\": [\"a\\n\",\"b\"]}],\"nbformat\":4}",
        ),
    ] {
        let notebook = Notebook::parse(empty).unwrap();
        let new = edited(&notebook, "# %% [raw]\na\nb");
        assert_eq!(lossy(&new), expected);
    }
}
