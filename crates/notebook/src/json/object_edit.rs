//! Changes members of an object. Unchanged members keep their bytes.

use std::collections::{BTreeMap, HashMap};

use super::content;
use super::object::{self, Member};
use super::text::{self, Escapes};
use crate::json::style::Style;
use crate::span::Span;

/// An object in the bytes of a file.
pub(crate) struct Object<'n> {
    bytes: &'n [u8],
    span: Span,
    members: Vec<Member>,
    /// The index of each name in `members`; of several the last.
    index_by_name: HashMap<String, usize>,
}

/// A change to one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberChange {
    /// Sets this value, already formatted for its position.
    Set(String),
    Remove,
}

/// Changes by member name.
pub(crate) type MemberChanges = BTreeMap<String, MemberChange>;

impl<'n> Object<'n> {
    /// The object at `span`, if it is one.
    pub(crate) fn parse(bytes: &'n [u8], span: Span) -> Option<Self> {
        if bytes.get(span.start()) != Some(&b'{') {
            return None;
        }
        let members = object::members(bytes, span);
        let indexed = members.iter().enumerate();
        Some(Self {
            bytes,
            span,
            index_by_name: indexed
                .map(|(index, member)| (member.name.clone(), index))
                .collect(),
            members,
        })
    }

    /// The value of a member; of several with that name the last.
    pub(crate) fn get(&self, name: &str) -> Option<&'n [u8]> {
        let member = &self.members[*self.index_by_name.get(name)?];
        Some(&self.bytes[member.value.range()])
    }

    /// The object in a member.
    pub(crate) fn get_object(&self, name: &str) -> Option<Self> {
        let member = &self.members[*self.index_by_name.get(name)?];
        Self::parse(self.bytes, member.value)
    }

    /// The member names, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let members = self.members.iter().enumerate();
        members
            .filter(|(index, member)| self.index_by_name[&member.name] == *index)
            .map(|(_, member)| member.name.as_str())
            .collect()
    }

    /// Whether a member has the same content in both objects, or is in neither.
    pub(crate) fn same_member(&self, other: Option<&Self>, name: &str) -> bool {
        content::same_content(
            name,
            self.get(name),
            other.and_then(|other| other.get(name)),
        )
    }

    /// The indentation of its members, if each is on its own line. `indentation` is that of the
    /// object.
    pub(crate) fn member_indentation(
        &self,
        indentation: Option<&str>,
        style: &Style,
    ) -> Option<String> {
        match self.members.first() {
            Some(first) => {
                trailing_indentation(self.text_between(self.span.start() + 1, first.key.start()))
            }
            None => indentation.map(|own| format!("{own}{}", style.unit)),
        }
    }

    fn text_between(&self, start: usize, end: usize) -> &'n str {
        std::str::from_utf8(&self.bytes[start..end]).unwrap_or_default()
    }

    /// The object with changes. New members go to the position that they have in `like`.
    pub(crate) fn with_changes(
        &self,
        changes: &MemberChanges,
        like: &[&str],
        indentation: Option<&str>,
        style: &Style,
    ) -> String {
        let results = self.result_members(changes, like, style);
        if results.is_empty() {
            return "{}".to_owned();
        }
        let member_indentation = self.member_indentation(indentation, style);
        let new_line = |indentation: Option<&str>| match indentation {
            Some(indentation) => format!("{}{indentation}", style.newline),
            None => String::new(),
        };
        let (start, end) = (self.span.start(), self.span.end());
        let (open, close) = match (self.members.first(), self.members.last()) {
            (Some(first), Some(last)) => (
                self.text_between(start + 1, first.key.start()).to_owned(),
                self.text_between(last.value.end(), end - 1).to_owned(),
            ),
            _ => (
                new_line(member_indentation.as_deref()),
                new_line(indentation.filter(|_| member_indentation.is_some())),
            ),
        };
        let between = match &self.members[..] {
            [one, two, ..] => self
                .text_between(one.value.end(), two.key.start())
                .to_owned(),
            _ if member_indentation.is_some() => format!(",{open}"),
            _ => style.comma.clone(),
        };
        let mut out = format!("{{{open}");
        let mut before: Option<&ResultMember> = None;
        for result in &results {
            if let Some(before) = before {
                match (before.index, result.index) {
                    (Some(one), Some(two)) if one + 1 == two => {
                        let (one, two) = (&self.members[one], &self.members[two]);
                        out.push_str(self.text_between(one.value.end(), two.key.start()));
                    }
                    _ => out.push_str(&between),
                }
            }
            out.push_str(&result.text);
            before = Some(result);
        }
        out.push_str(&close);
        out.push('}');
        out
    }

    /// The members of the result, in order.
    fn result_members(
        &self,
        changes: &MemberChanges,
        like: &[&str],
        style: &Style,
    ) -> Vec<ResultMember> {
        let mut results: Vec<ResultMember> = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let is_last = self.index_by_name[&member.name] == index;
            let value = self.text_between(member.value.start(), member.value.end());
            let value = match changes.get(&member.name) {
                Some(MemberChange::Remove) => continue,
                Some(MemberChange::Set(value)) if is_last => value,
                _ => value,
            };
            let name = self.text_between(member.key.start(), member.value.start());
            results.push(ResultMember {
                name: member.name.clone(),
                index: Some(index),
                text: format!("{name}{value}"),
            });
        }
        let is_sorted = self.members.is_sorted_by(|a, b| a.name <= b.name);
        let escapes = if style.ascii {
            Escapes::Ascii
        } else {
            Escapes::Utf8
        };
        for (name, change) in changes {
            let MemberChange::Set(value) = change else {
                continue;
            };
            if self.index_by_name.contains_key(name) {
                continue;
            }
            let at = if is_sorted {
                results
                    .iter()
                    .take_while(|result| result.name <= *name)
                    .count()
            } else {
                insertion_index(&results, like, name)
            };
            let result = ResultMember {
                text: format!("{}{}{value}", text::encode(name, escapes), style.colon),
                name: name.clone(),
                index: None,
            };
            results.insert(at, result);
        }
        results
    }
}

/// A member of the result.
struct ResultMember {
    name: String,
    /// Its index in the old object, if it exists there.
    index: Option<usize>,
    text: String,
}

/// The index after the nearest predecessor of `name` in `like`.
fn insertion_index(results: &[ResultMember], like: &[&str], name: &str) -> usize {
    let at = like.iter().position(|other| *other == name);
    let before = like[..at.unwrap_or(0)].iter().rev();
    let mut indexed =
        before.filter_map(|other| results.iter().rposition(|result| result.name == *other));
    indexed.next().map_or(0, |index| index + 1)
}

/// The strings of an array of strings; `None` for any other value.
pub(crate) fn string_array(value: &[u8]) -> Option<Vec<String>> {
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

/// The indentation at the end of white space, if it contains a line break.
pub(crate) fn trailing_indentation(gap: &str) -> Option<String> {
    gap.rfind('\n').map(|at| gap[at + 1..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(json: &str, changes: &[(&str, Option<&str>)], like: &[&str]) -> String {
        let changes = changes
            .iter()
            .map(|(name, value)| {
                let change = value.map_or(MemberChange::Remove, |value| {
                    MemberChange::Set(value.to_owned())
                });
                ((*name).to_owned(), change)
            })
            .collect();
        let object = Object::parse(json.as_bytes(), Span::new(0, json.len())).unwrap();
        object.with_changes(&changes, like, Some(" "), &Style::default())
    }

    #[test]
    fn unchanged_members_keep_their_bytes() {
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
    fn new_members_are_sorted_or_follow_the_reference() {
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
    fn last_of_duplicate_members_counts() {
        let json = r#"{"a":1,"a":2,"b":3}"#;
        assert_eq!(
            with(json, &[("a", Some("5"))], &[]),
            r#"{"a":1,"a":5,"b":3}"#
        );
        assert_eq!(with(json, &[("a", None)], &[]), r#"{"b":3}"#);
    }
}
