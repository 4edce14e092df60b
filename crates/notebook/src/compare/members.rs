//! What differs between two objects, down to the values.

use crate::json::alter::Object;
use crate::layout::Style;

/// A value that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDifference {
    /// The names that lead to it, joined by dots.
    pub name: String,
    /// What it was, as JSON on one line.
    pub old: Option<String>,
    /// What it is.
    pub new: Option<String>,
}

/// Objects nested deeper are compared as a whole.
const DEEPEST: usize = 16;

/// What differs between two objects, apart from the members in `skip`.
pub(super) fn compare(old: &Object<'_>, new: &Object<'_>, skip: &[&str]) -> Vec<MemberDifference> {
    let mut found = Vec::new();
    level(old, new, skip, &mut Vec::new(), &mut found);
    found
}

fn level(
    old: &Object<'_>,
    new: &Object<'_>,
    skip: &[&str],
    path: &mut Vec<String>,
    found: &mut Vec<MemberDifference>,
) {
    let only_new = new
        .names()
        .into_iter()
        .filter(|name| old.get(name).is_none());
    for name in old.names().into_iter().chain(only_new) {
        if skip.contains(&name) || new.agrees(Some(old), name) {
            continue;
        }
        path.push(name.to_owned());
        match (old.object(name), new.object(name)) {
            (Some(old), Some(new)) if path.len() < DEEPEST => level(&old, &new, &[], path, found),
            _ => found.push(MemberDifference {
                name: path.join("."),
                old: old.get(name).map(on_one_line),
                new: new.get(name).map(on_one_line),
            }),
        }
        path.pop();
    }
}

fn on_one_line(value: &[u8]) -> String {
    let spacing = Style {
        newline: String::new(),
        ..Style::default()
    };
    spacing.lay_out(&String::from_utf8_lossy(value), None)
}
