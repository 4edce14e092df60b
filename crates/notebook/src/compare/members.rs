//! Compares two objects down to their values.

use crate::json::object_edit::Object;
use crate::json::style::Style;

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDifference {
    /// The path of member names, joined by dots.
    pub name: String,
    /// The old value, as JSON on one line.
    pub old: Option<String>,
    /// The new value, as JSON on one line.
    pub new: Option<String>,
}

impl MemberDifference {
    /// The difference as one line of a diff.
    pub fn line(&self) -> String {
        let name = &self.name;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => format!(" {name}: {} → {}\n", shorten(old), shorten(new)),
            (Some(old), None) => format!("-{name}: {}\n", shorten(old)),
            (None, Some(new)) => format!("+{name}: {}\n", shorten(new)),
            (None, None) => String::new(),
        }
    }
}

/// The start of a long value.
fn shorten(value: &str) -> String {
    const CHARS_MAX: usize = 80;
    let length = value.chars().count();
    if length <= CHARS_MAX {
        return value.to_owned();
    }
    let start: String = value.chars().take(CHARS_MAX).collect();
    format!("{start}… ({length} characters)")
}

/// Objects nested deeper are compared as a whole.
const DEPTH_LIMIT: usize = 16;

/// The differences between two objects, without the members in `skip`.
pub(crate) fn compare(old: &Object<'_>, new: &Object<'_>, skip: &[&str]) -> Vec<MemberDifference> {
    let mut found = Vec::new();
    compare_level(old, new, skip, &mut Vec::new(), &mut found);
    found
}

fn compare_level(
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
        if skip.contains(&name) || new.same_member(Some(old), name) {
            continue;
        }
        path.push(name.to_owned());
        match (old.get_object(name), new.get_object(name)) {
            (Some(old), Some(new)) if path.len() < DEPTH_LIMIT => {
                compare_level(&old, &new, &[], path, found);
            }
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
    let style = Style {
        newline: String::new(),
        ..Style::default()
    };
    style.format(&String::from_utf8_lossy(value), None)
}
