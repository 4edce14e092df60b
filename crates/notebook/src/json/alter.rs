//! Objects of a file, and the same with some members changed.

use std::collections::{BTreeMap, HashMap};

use super::content;
use super::object::{self, Member};
use super::text::{self, Escapes};
use crate::layout::Style;
use crate::span::Span;

/// An object in the bytes of a file.
pub(crate) struct Object<'n> {
    bytes: &'n [u8],
    span: Span,
    members: Vec<Member>,
    /// Where the member of each name is; of several the last.
    places: HashMap<String, usize>,
}

/// What becomes of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It gets this value, laid out for its place.
    Set(String),
    Remove,
}

/// Changes by the name of the member.
pub(crate) type Changes = BTreeMap<String, Change>;

impl<'n> Object<'n> {
    /// The object at `span`, if it is one.
    pub(crate) fn at(bytes: &'n [u8], span: Span) -> Option<Self> {
        if bytes.get(span.start()) != Some(&b'{') {
            return None;
        }
        let members = object::members(bytes, span);
        let places = members.iter().enumerate();
        Some(Self {
            bytes,
            span,
            places: places
                .map(|(place, member)| (member.name.clone(), place))
                .collect(),
            members,
        })
    }

    /// The value of a member; of several with that name the last.
    pub(crate) fn get(&self, name: &str) -> Option<&'n [u8]> {
        let member = &self.members[*self.places.get(name)?];
        Some(&self.bytes[member.value.range()])
    }

    /// The object that a member holds.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        let member = &self.members[*self.places.get(name)?];
        Self::at(self.bytes, member.value)
    }

    /// The names, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let members = self.members.iter().enumerate();
        members
            .filter(|(place, member)| self.places[&member.name] == *place)
            .map(|(_, member)| member.name.as_str())
            .collect()
    }

    /// Whether a member says the same here and there, or is in neither.
    pub(crate) fn agrees(&self, other: Option<&Self>, name: &str) -> bool {
        content::same(
            name,
            self.get(name),
            other.and_then(|other| other.get(name)),
        )
    }

    /// How the lines of its members are indented, if they have lines of their own. `at` is how its
    /// own line is.
    pub(crate) fn inside(&self, at: Option<&str>, spacing: &Style) -> Option<String> {
        match self.members.first() {
            Some(first) => indentation(self.gap(self.span.start() + 1, first.key.start())),
            None => at.map(|at| format!("{at}{}", spacing.unit)),
        }
    }

    fn gap(&self, start: usize, end: usize) -> &'n str {
        std::str::from_utf8(&self.bytes[start..end]).unwrap_or_default()
    }

    /// The object with changes. Members that are new go where `like` has them.
    pub(crate) fn with(
        &self,
        changes: &Changes,
        like: &[&str],
        at: Option<&str>,
        spacing: &Style,
    ) -> String {
        let entries = self.entries(changes, like, spacing);
        if entries.is_empty() {
            return "{}".to_owned();
        }
        let inside = self.inside(at, spacing);
        let new_line = |indentation: Option<&str>| match indentation {
            Some(indentation) => format!("{}{indentation}", spacing.newline),
            None => String::new(),
        };
        let (start, end) = (self.span.start(), self.span.end());
        let (open, close) = match (self.members.first(), self.members.last()) {
            (Some(first), Some(last)) => (
                self.gap(start + 1, first.key.start()).to_owned(),
                self.gap(last.value.end(), end - 1).to_owned(),
            ),
            _ => (
                new_line(inside.as_deref()),
                new_line(at.filter(|_| inside.is_some())),
            ),
        };
        let between = match &self.members[..] {
            [one, two, ..] => self.gap(one.value.end(), two.key.start()).to_owned(),
            _ if inside.is_some() => format!(",{open}"),
            _ => spacing.comma.clone(),
        };
        let mut out = format!("{{{open}");
        let mut before: Option<&Entry> = None;
        for entry in &entries {
            if let Some(before) = before {
                match (before.place, entry.place) {
                    (Some(one), Some(two)) if one + 1 == two => {
                        let (one, two) = (&self.members[one], &self.members[two]);
                        out.push_str(self.gap(one.value.end(), two.key.start()));
                    }
                    _ => out.push_str(&between),
                }
            }
            out.push_str(&entry.text);
            before = Some(entry);
        }
        out.push_str(&close);
        out.push('}');
        out
    }

    /// The members of the result in order.
    fn entries(&self, changes: &Changes, like: &[&str], spacing: &Style) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (place, member) in self.members.iter().enumerate() {
            let is_last = self.places[&member.name] == place;
            let value = self.gap(member.value.start(), member.value.end());
            let value = match changes.get(&member.name) {
                Some(Change::Remove) => continue,
                Some(Change::Set(value)) if is_last => value,
                _ => value,
            };
            let name = self.gap(member.key.start(), member.value.start());
            entries.push(Entry {
                name: member.name.clone(),
                place: Some(place),
                text: format!("{name}{value}"),
            });
        }
        let is_sorted = self.members.is_sorted_by(|a, b| a.name <= b.name);
        let escapes = if spacing.ascii {
            Escapes::Ascii
        } else {
            Escapes::Utf8
        };
        for (name, change) in changes {
            let Change::Set(value) = change else { continue };
            if self.places.contains_key(name) {
                continue;
            }
            let at = if is_sorted {
                entries
                    .iter()
                    .take_while(|entry| entry.name <= *name)
                    .count()
            } else {
                place_like(&entries, like, name)
            };
            let entry = Entry {
                text: format!("{}{}{value}", text::encode(name, escapes), spacing.colon),
                name: name.clone(),
                place: None,
            };
            entries.insert(at, entry);
        }
        entries
    }
}

/// A member of the result.
struct Entry {
    name: String,
    /// Its place in the file, if it is there.
    place: Option<usize>,
    text: String,
}

/// Behind the nearest of the names that stand before `name` over there.
fn place_like(entries: &[Entry], like: &[&str], name: &str) -> usize {
    let at = like.iter().position(|other| *other == name);
    let before = like[..at.unwrap_or(0)].iter().rev();
    let mut places =
        before.filter_map(|other| entries.iter().rposition(|entry| entry.name == *other));
    places.next().map_or(0, |place| place + 1)
}

/// The strings of an array that holds nothing else.
pub(crate) fn strings(value: &[u8]) -> Option<Vec<String>> {
    if value.first() != Some(&b'[') {
        return None;
    }
    object::elements(value, Span::new(0, value.len()))
        .into_iter()
        .map(|element| {
            let token = &value[element.range()];
            (token.first() == Some(&b'"')).then(|| text::decode(token).into_owned())
        })
        .collect()
}

/// The indentation at the end of white space that holds a line break.
pub(crate) fn indentation(gap: &str) -> Option<String> {
    gap.rfind('\n').map(|at| gap[at + 1..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(json: &str, changes: &[(&str, Option<&str>)], like: &[&str]) -> String {
        let changes = changes
            .iter()
            .map(|(name, value)| {
                let change = value.map_or(Change::Remove, |value| Change::Set(value.to_owned()));
                ((*name).to_owned(), change)
            })
            .collect();
        let object = Object::at(json.as_bytes(), Span::new(0, json.len())).unwrap();
        object.with(&changes, like, Some(" "), &Style::default())
    }

    #[test]
    fn what_does_not_change_keeps_its_bytes() {
        let json = "{  \"b\" :1 ,\n\t\"a\":  2,\"c\": [ 3 ] }";
        assert_eq!(with(json, &[], &[]), json);
        assert_eq!(
            with(json, &[("a", Some("5"))], &[]),
            "{  \"b\" :1 ,\n\t\"a\":  5,\"c\": [ 3 ] }"
        );
        assert_eq!(
            with(json, &[("a", None)], &[]),
            "{  \"b\" :1 ,\n\t\"c\": [ 3 ] }"
        );
        assert_eq!(
            with(json, &[("c", None), ("b", None)], &[]),
            "{  \"a\":  2 }"
        );
    }

    #[test]
    fn new_members_go_where_they_belong() {
        let sorted = "{\n  \"a\": 1,\n  \"c\": 2\n }";
        assert_eq!(
            with(sorted, &[("b", Some("x")), ("d", Some("y"))], &[]),
            "{\n  \"a\": 1,\n  \"b\": x,\n  \"c\": 2,\n  \"d\": y\n }"
        );
        let unsorted = r#"{"c":1,"a":2}"#;
        assert_eq!(
            with(unsorted, &[("b", Some("x"))], &["c", "b", "a"]),
            r#"{"c":1,"b": x,"a":2}"#
        );
        assert_eq!(with("{}", &[("b", Some("x"))], &[]), "{\n  \"b\": x\n }");
        assert_eq!(
            with("{\"a\":1}", &[("b", Some("x"))], &[]),
            r#"{"a":1, "b": x}"#
        );
        assert_eq!(with("{\"a\":1}", &[("a", None)], &[]), "{}");
    }

    #[test]
    fn of_several_members_with_one_name_the_last_counts() {
        let json = r#"{"a":1,"a":2,"b":3}"#;
        assert_eq!(
            with(json, &[("a", Some("5"))], &[]),
            r#"{"a":1,"a":5,"b":3}"#
        );
        assert_eq!(with(json, &[("a", None)], &[]), r#"{"b":3}"#);
    }
}
