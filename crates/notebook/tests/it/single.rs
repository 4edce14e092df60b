//! One operation on one cell changes only the members that it names.

use cellwright_notebook::edit::{Address, Operation};
use cellwright_notebook::{CellKind, Cells, Notebook, compose, upgrade};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::generate::{Generated, notebook_with_cells};
use crate::support::json::{Document, Node, Value};
use crate::support::text::typed;
use crate::support::{cases, lossy};

/// The file after an operation.
fn apply(notebook: &Notebook, operation: &Operation) -> Vec<u8> {
    let draft = operation.draft(notebook).unwrap();
    compose(notebook, &draft.plan).to_bytes()
}

/// Asserts that `new` is `old` with nothing changed outside of `span`.
pub(crate) fn assert_only_changed(old: &[u8], new: &[u8], span: std::ops::Range<usize>) {
    let (head, tail) = (&old[..span.start], &old[span.end..]);
    assert!(
        new.len() >= head.len() + tail.len() && new.starts_with(head) && new.ends_with(tail),
        "bytes outside of {span:?} changed in\n{}\nto\n{}",
        lossy(old),
        lossy(new)
    );
}

/// All members of a cell except those named, as bytes.
fn other_members<'b>(cell: &Node, bytes: &'b [u8], except: &[&str]) -> Vec<(String, &'b [u8])> {
    cell.members()
        .iter()
        .filter(|member| !except.contains(&member.name.as_str()))
        .map(|member| (member.name.clone(), member.node.raw(bytes)))
        .collect()
}

/// Number of elements of a source that lie before its last line.
fn elements_of_whole_lines(value: &Node) -> usize {
    let end = value.text().rfind('\n').map_or(0, |at| at + 1);
    let mut done = 0;
    let mut whole = 0;
    for (index, element) in value.elements().iter().enumerate() {
        done += element.text().len();
        if done > end {
            break;
        }
        // Empty elements at the border may belong to the last line.
        if !element.text().is_empty() {
            whole = index + 1;
        }
    }
    whole
}

/// The members that a change of kind may touch.
const TOUCHED_BY_KIND: [&str; 4] = ["cell_type", "execution_count", "outputs", "attachments"];

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn new_source_changes_only_its_own_bytes(
        Generated(bytes) in notebook_with_cells(),
        cell in any::<Index>(),
        source in typed(),
        append in any::<bool>(),
    ) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let cell = cell.index(notebook.count());
        let source = if append {
            format!("{}\n{source}", notebook.source(cell))
        } else {
            source
        };
        let operation = Operation::Edit { cell: Address::Index(cell), source: source.clone(), tags: None };
        let new = apply(&notebook, &operation);
        let before = Document::read(&bytes);
        let after = Document::read(&new);
        prop_assert_eq!(after.source(cell), &source[..], "in {}", lossy(after.raw(cell)));
        if let Some(value) = before.cells()[cell].get("source") {
            assert_only_changed(&bytes, &new, value.span.clone());
            let is_text = |node: &Node| matches!(node.value, Value::Text(_));
            let shape_before = is_text(value);
            let new_value = after.cells()[cell].get("source").unwrap();
            prop_assert_eq!(is_text(new_value), shape_before);
            if append {
                let whole = elements_of_whole_lines(value);
                for (old, kept) in value.elements()[..whole].iter().zip(new_value.elements()) {
                    prop_assert_eq!(lossy(old.raw(&bytes)), lossy(kept.raw(&new)));
                }
            }
        } else {
            assert_only_changed(&bytes, &new, before.cells()[cell].span.clone());
            prop_assert_eq!(
                other_members(&after.cells()[cell], &new, &["source"]),
                other_members(&before.cells()[cell], &bytes, &[])
            );
        }
        prop_assert_eq!(lossy(&apply(&notebook, &operation)), lossy(&new));
    }

    #[test]
    fn unchanged_source_changes_no_bytes(
        Generated(bytes) in notebook_with_cells(),
        cell in any::<Index>(),
    ) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let cell = cell.index(notebook.count());
        let source = notebook.source(cell).into_owned();
        let new = apply(&notebook, &Operation::Edit { cell: Address::Index(cell), source, tags: None });
        prop_assert_eq!(lossy(&new), lossy(&bytes));
    }

    #[test]
    fn kind_change_adds_and_removes_kind_members(
        Generated(bytes) in notebook_with_cells(),
        cell in any::<Index>(),
        kind in select(vec![CellKind::Code, CellKind::Markdown, CellKind::Raw]),
    ) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let cell = cell.index(notebook.count());
        let new = apply(&notebook, &Operation::Type { cell: Address::Index(cell), kind });
        if notebook.kind(cell) == kind {
            prop_assert_eq!(lossy(&new), lossy(&bytes));
            return Ok(());
        }
        let before = Document::read(&bytes);
        let after = Document::read(&new);
        let (old_cell, new_cell) = (&before.cells()[cell], &after.cells()[cell]);
        prop_assert_eq!(after.kind(cell), kind.name());
        assert_only_changed(&bytes, &new, old_cell.span.clone());
        prop_assert_eq!(
            other_members(old_cell, &bytes, &TOUCHED_BY_KIND),
            other_members(new_cell, &new, &TOUCHED_BY_KIND)
        );
        let names = new_cell.names();
        for name in ["execution_count", "outputs"] {
            prop_assert_eq!(names.contains(&name), kind == CellKind::Code, "{} {:?}", name, names);
            // Outputs that a Markdown cell had by mistake are kept when it becomes code.
            if let (Some(old), Some(new_value)) = (old_cell.get(name), new_cell.get(name)) {
                prop_assert_eq!(lossy(old.raw(&bytes)), lossy(new_value.raw(&new)));
            }
        }
        let had_attachments = old_cell.names().contains(&"attachments");
        let may_have = kind != CellKind::Code && had_attachments;
        prop_assert_eq!(names.contains(&"attachments"), may_have);
    }

    #[test]
    fn upgrade_adds_only_ids_and_minor_version(
        Generated(bytes) in notebook_with_cells(),
    ) {
        let Some((upgraded, new)) = upgrade(&bytes).unwrap() else {
            let document = Document::read(&bytes);
            prop_assert!((0..document.cells().len()).all(|cell| document.id(cell).is_some()));
            return Ok(());
        };
        let before = Document::read(&bytes);
        let after = Document::read(&new);
        let changed_count = ["cells", "nbformat_minor"];
        prop_assert_eq!(
            other_members(&before.top, &bytes, &changed_count),
            other_members(&after.top, &new, &changed_count)
        );
        let cells = before.cells().iter().zip(after.cells());
        for (index, (old_cell, new_cell)) in cells.enumerate() {
            prop_assert_eq!(
                other_members(old_cell, &bytes, &["id"]),
                other_members(new_cell, &new, &["id"])
            );
            prop_assert!(after.id(index).is_some());
            prop_assert!(before.id(index).is_none() || before.id(index) == after.id(index));
        }
        prop_assert_eq!(before.cells().len(), after.cells().len());
        let minor = Notebook::parse(&new[..]).unwrap().minor();
        prop_assert_eq!(minor, upgraded.from.1.max(5));
        prop_assert_eq!(upgrade(&new).unwrap(), None);
    }

    #[test]
    fn clear_removes_only_outputs_and_counts(Generated(bytes) in notebook_with_cells()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let new = apply(&notebook, &Operation::Clear { cell: None });
        let before = Document::read(&bytes);
        let after = Document::read(&new);
        for cell in 0..notebook.count() {
            let (old_cell, new_cell) = (&before.cells()[cell], &after.cells()[cell]);
            if notebook.kind(cell) == CellKind::Code {
                for (name, empty) in [("execution_count", "null"), ("outputs", "[]")] {
                    let value = new_cell.get(name).map(|node| lossy(node.raw(&new)));
                    prop_assert!(value.is_none_or(|value| value == empty));
                }
                let changed_count = ["execution_count", "outputs"];
                prop_assert_eq!(
                    other_members(old_cell, &bytes, &changed_count),
                    other_members(new_cell, &new, &changed_count)
                );
            } else {
                prop_assert_eq!(lossy(before.raw(cell)), lossy(after.raw(cell)));
            }
        }
    }
}

/// Unchanged lines must not appear in a diff of the file.
#[test]
fn unchanged_lines_keep_their_escapes() {
    let notebook = Notebook::parse(
        "{\"cells\": [{\"cell_type\": \"raw\", \"source\": [\n\"\\u00e9\\n\",\n\"b\\/\\n\",\n\"c\"]}], \
         \"nbformat\": 4}",
    )
    .unwrap();
    let edit = Operation::Edit {
        cell: Address::Index(0),
        source: "é\nX\nb/\nc\nd".to_owned(),
        tags: None,
    };
    assert!(
        lossy(&apply(&notebook, &edit))
            .contains("[\n\"\\u00e9\\n\",\n\"X\\n\",\n\"b\\/\\n\",\n\"c\\n\",\n\"d\"]")
    );
}

#[test]
fn adjacent_lone_surrogates_do_not_combine() {
    let notebook = Notebook::parse(
        r#"{"cells":[{"cell_type":"raw","source":["\ud83d-\ude00"]}],"nbformat":4}"#,
    )
    .unwrap();
    let edit = Operation::Edit {
        cell: Address::Index(0),
        source: "\u{fffd}\u{fffd}".to_owned(),
        tags: None,
    };
    let new = Notebook::parse(apply(&notebook, &edit)).unwrap();
    assert_eq!(new.source(0), "\u{fffd}\u{fffd}");
}
