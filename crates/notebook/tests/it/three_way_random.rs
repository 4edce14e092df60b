//! Two sides change one notebook at random and are put together: what only one of them did is there
//! exactly, nothing that either of them added is lost, and what comes out is a notebook.

use std::collections::BTreeMap;

use cellwright_notebook::{Marks, Merged, Notebook, three_way};
use proptest::prelude::*;

use crate::generate::{Generated, layout, notebook};
use crate::support::json::{self, Document, Node, Value};
use crate::support::relayout::{Layout, Order, relayout};
use crate::support::{cases, shown};

fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merged {
    let parse = |bytes: &[u8]| Notebook::parse(bytes).unwrap();
    three_way(
        &parse(base),
        &parse(ours),
        &parse(theirs),
        &Marks::default(),
    )
}

/// What a value says: members in order of their names, of two with one name the last.
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
                // A source that is missing is an empty one.
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
        Value::Other => out.push_str(&shown(node.raw(bytes))),
    }
}

fn content_of(bytes: &[u8], skip: &[&str]) -> String {
    let mut out = String::new();
    content(&json::read(bytes).unwrap(), bytes, skip, &mut out);
    out
}

/// The same notebook, written in another way. Members that are there twice stay in order.
fn written_anew(bytes: &[u8], layout: &Layout) -> Vec<u8> {
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
    fn what_only_we_did_stays_byte_for_byte(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        layout in layout(),
    ) {
        let merged = merge(&base, &ours, &base);
        prop_assert_eq!(shown(&merged.bytes), shown(&ours));
        // They only wrote it in another way.
        let theirs = written_anew(&base, &layout);
        let merged = merge(&base, &ours, &theirs);
        prop_assert_eq!(shown(&merged.bytes), shown(&ours));
        prop_assert_eq!(merged.remarks, []);
    }

    #[test]
    fn what_both_did_is_there_once(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        layout in layout(),
    ) {
        let theirs = written_anew(&ours, &layout);
        let merged = merge(&base, &ours, &theirs);
        // Whoever did nothing has no say in how it is written, either.
        let written = if base == ours { &theirs } else { &ours };
        prop_assert_eq!(shown(&merged.bytes), shown(written));
        prop_assert_eq!(merged.remarks, []);
    }

    #[test]
    fn what_only_they_did_is_all_there(
        Generated(base) in notebook(),
        Generated(theirs) in notebook(),
        layout in layout(),
    ) {
        let ours = written_anew(&base, &layout);
        let merged = merge(&base, &ours, &theirs);
        // Where formats with and without ids meet, ids are made or dropped.
        let skip = ["id", "nbformat_minor"];
        prop_assert_eq!(content_of(&merged.bytes, &skip), content_of(&theirs, &skip));
        prop_assert!(merged.is_clean());
    }

    #[test]
    fn whatever_comes_together_is_a_notebook(
        Generated(base) in notebook(),
        Generated(ours) in notebook(),
        Generated(theirs) in notebook(),
    ) {
        let merged = merge(&base, &ours, &theirs);
        prop_assert!(Notebook::parse(&merged.bytes[..]).is_ok(), "{}", shown(&merged.bytes));
        Document::read(&merged.bytes);
    }
}
