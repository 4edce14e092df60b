//! Two sides change one notebook at random and are merged: one-sided changes are exact, nothing
//! that either side added is lost, and the result is a notebook.

use std::collections::BTreeMap;

use cellwright_notebook::{ConflictMarkers, MergedNotebook, Notebook, merge_three_way};
use proptest::prelude::*;

use crate::generate::{Generated, layout, notebook};
use crate::support::json::{self, Document, Node, Value};
use crate::support::relayout::{Layout, Order, relayout};
use crate::support::{cases, lossy};

fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> MergedNotebook {
    let parse = |bytes: &[u8]| Notebook::parse(bytes).unwrap();
    merge_three_way(
        &parse(base),
        &parse(ours),
        &parse(theirs),
        &ConflictMarkers::default(),
    )
}

/// The content of a value: members sorted by name, of duplicates the last.
fn content(node: &Node, bytes: &[u8], skip: &[&str], out: &mut String) {
    match &node.value {
        Value::Object(members) => {
            let members: BTreeMap<&str, &Node> = members
                .iter()
                .map(|member| (member.name.as_str(), &member.node))
                .collect();
            out.push('{');
            for (name, node) in members {
                let is_source = name == "source";
                // A missing source equals an empty one.
                if skip.contains(&name) || (is_source && node.text().is_empty()) {
                    continue;
                }
                out.push_str(&format!("{name:?}:"));
                if is_source {
                    out.push_str(&format!("{:?}", node.text()));
                } else {
                    content(node, bytes, skip, out);
                }
                out.push('\n');
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                content(element, bytes, skip, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Text(text) => out.push_str(&format!("{text:?}")),
        Value::Other => out.push_str(&lossy(node.raw(bytes))),
    }
}

fn content_of(bytes: &[u8], skip: &[&str]) -> String {
    let mut out = String::new();
    content(&json::read(bytes).unwrap(), bytes, skip, &mut out);
    out
}

/// The same notebook in another layout. Duplicate members keep their order.
fn with_layout(bytes: &[u8], layout: &Layout) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap();
    let layout = Layout {
        order: match layout.order {
            Order::Sorted => Order::Sorted,
            _ => Order::AsIs,
        },
        ..layout.clone()
    };
    relayout(text.trim_start_matches('\u{feff}'), &layout)
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn our_only_changes_stay_byte_for_byte(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        layout in layout(),
    ) {
        let merged = merge(&base, &ours, &base);
        prop_assert_eq!(lossy(&merged.bytes), lossy(&ours));
        // They changed only the layout.
        let theirs = with_layout(&base, &layout);
        let merged = merge(&base, &ours, &theirs);
        prop_assert_eq!(lossy(&merged.bytes), lossy(&ours));
        prop_assert_eq!(merged.notices, []);
    }

    #[test]
    fn same_change_on_both_sides_appears_once(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        layout in layout(),
    ) {
        let theirs = with_layout(&ours, &layout);
        let merged = merge(&base, &ours, &theirs);
        // The layout of an unchanged side does not count.
        let written = if base == ours { &theirs } else { &ours };
        prop_assert_eq!(lossy(&merged.bytes), lossy(written));
        prop_assert_eq!(merged.notices, []);
    }

    #[test]
    fn their_only_changes_are_all_merged(
        Generated(base) in notebook(),
        Generated(theirs) in notebook(),
        layout in layout(),
    ) {
        let ours = with_layout(&base, &layout);
        let merged = merge(&base, &ours, &theirs);
        // If one format has ids and the other has none, ids are added or removed.
        let skip = ["id", "nbformat_minor"];
        prop_assert_eq!(content_of(&merged.bytes, &skip), content_of(&theirs, &skip));
        prop_assert!(merged.is_clean());
    }

    #[test]
    fn any_merge_yields_a_notebook(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        Generated(theirs) in notebook(),
    ) {
        let merged = merge(&base, &ours, &theirs);
        prop_assert!(Notebook::parse(&merged.bytes[..]).is_ok(), "{}", lossy(&merged.bytes));
        Document::read(&merged.bytes);
    }
}
