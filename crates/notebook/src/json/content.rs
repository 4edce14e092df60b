//! Content hashes of JSON values: they detect changes independently of layout and spelling.

use std::collections::BTreeMap;

use twox_hash::xxhash3_128::Hasher;

use super::format::string_end;
use super::text;

/// A hash of the content of a value. It ignores white space, the order of members and the escapes
/// of strings. Where nbformat joins lines, it also ignores whether text is one string or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(u128);

/// Whether two values of a member called `name` have the same content.
pub(crate) fn same_content(name: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one == other || ContentHash::new(name, one) == ContentHash::new(name, other)
        }
        (None, None) => true,
        _ => false,
    }
}

/// A container that is not yet closed. On the heap, so that deep nesting needs no stack.
enum OpenContainer {
    Array {
        items: Box<Hasher>,
        /// Hash of the joined text, while every item is a string and the lines are to be joined.
        joined: Option<Box<Hasher>>,
    },
    Object {
        members: BTreeMap<String, u128>,
        name: Option<String>,
    },
}

impl ContentHash {
    /// The content hash of a well-formed value of a member called `name`.
    pub(crate) fn new(name: &str, json: &[u8]) -> Self {
        let mut open: Vec<OpenContainer> = Vec::new();
        let mut rest = json.trim_ascii_start();
        let mut result = 0;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let (value, string) = match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => continue,
                b'{' => {
                    open.push(OpenContainer::object());
                    continue;
                }
                b'[' => {
                    let name = match open.last() {
                        Some(OpenContainer::Object { name, .. }) => {
                            name.as_deref().unwrap_or_default()
                        }
                        Some(OpenContainer::Array { .. }) => "",
                        None => name,
                    };
                    open.push(OpenContainer::array(joins_lines(name)));
                    continue;
                }
                b'}' | b']' => match open.pop() {
                    Some(closed) => (closed.hash(), None),
                    None => break,
                },
                b'"' => {
                    let end = string_end(rest);
                    let token = &json[json.len() - rest.len() - 1..json.len() - rest.len() + end];
                    rest = &rest[end..];
                    let text = text::decode(token);
                    if let Some(OpenContainer::Object { name, .. }) = open.last_mut()
                        && name.is_none()
                    {
                        *name = Some(text.into_owned());
                        continue;
                    }
                    let mut hasher = tagged_hasher(b'"');
                    hasher.write(text.as_bytes());
                    (hasher.finish_128(), Some(text))
                }
                _ => {
                    let length = rest
                        .iter()
                        .take_while(|b| {
                            !matches!(b, b',' | b'}' | b']') && !b.is_ascii_whitespace()
                        })
                        .count();
                    let mut hasher = tagged_hasher(b'0');
                    hasher.write(&[byte]);
                    hasher.write(&rest[..length]);
                    rest = &rest[length..];
                    (hasher.finish_128(), None)
                }
            };
            match open.last_mut() {
                Some(container) => container.push_value(value, string.as_deref()),
                None => result = value,
            }
        }
        Self(result)
    }
}

impl OpenContainer {
    fn object() -> Self {
        Self::Object {
            members: BTreeMap::new(),
            name: None,
        }
    }

    fn array(joins: bool) -> Self {
        Self::Array {
            items: tagged_hasher(b'['),
            joined: joins.then(|| tagged_hasher(b'"')),
        }
    }

    fn push_value(&mut self, value: u128, text: Option<&str>) {
        match self {
            Self::Array { items, joined } => {
                items.write(&value.to_le_bytes());
                match (text, joined.as_mut()) {
                    (Some(text), Some(joined)) => joined.write(text.as_bytes()),
                    _ => *joined = None,
                }
            }
            Self::Object { members, name } => {
                // Of two members with one name, the last counts.
                members.insert(name.take().unwrap_or_default(), value);
            }
        }
    }

    fn hash(self) -> u128 {
        match self {
            Self::Array {
                joined: Some(text), ..
            } => text.finish_128(),
            Self::Array { items, .. } => items.finish_128(),
            Self::Object { members, .. } => {
                let mut hasher = tagged_hasher(b'{');
                for (name, value) in members {
                    hasher.write(&(name.len() as u64).to_le_bytes());
                    hasher.write(name.as_bytes());
                    hasher.write(&value.to_le_bytes());
                }
                hasher.finish_128()
            }
        }
    }
}

fn tagged_hasher(tag: u8) -> Box<Hasher> {
    let mut hasher = Box::new(Hasher::new());
    hasher.write(&[tag]);
    hasher
}

/// Whether an array of strings stands for one text: sources, streams, and MIME types except JSON.
fn joins_lines(name: &str) -> bool {
    name == "source" || name == "text" || (name.contains('/') && !name.ends_with("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(name: &str, one: &str, other: &str) -> bool {
        same_content(name, Some(one.as_bytes()), Some(other.as_bytes()))
    }

    #[test]
    fn layout_order_and_escapes_do_not_matter() {
        let one = r#"{"a": [1, {"b": "é"}], "c": {}, "d": 1, "d": 2}"#;
        let other = "{\"d\":2,\"c\":{ },\n\"a\":[1,{\"b\":\"\\u00e9\"}]}";
        assert!(is_same("x", one, other));
    }

    #[test]
    fn different_values_have_different_content() {
        for (one, other) in [
            ("1", "1.0"),
            ("[1,2]", "[2,1]"),
            ("[[1],2]", "[[1,2]]"),
            (r#""1""#, "1"),
            (r#"["a","b"]"#, r#"["ab"]"#),
            (r#"{"a":"b"}"#, r#"{"a":"b","c":null}"#),
            (r#"{"a":1}"#, r#"["a",1]"#),
            ("[]", "{}"),
            ("[]", "null"),
        ] {
            assert!(!is_same("x", one, other), "{one} {other}");
        }
        assert!(!same_content("x", None, Some(b"null")));
    }

    #[test]
    fn joined_lines_equal_one_string() {
        assert!(is_same("text", r#"["a\n","b"]"#, r#""a\nb""#));
        assert!(is_same(
            "data",
            r#"{"image/png":["a","b"]}"#,
            r#"{"image/png":"ab"}"#
        ));
        assert!(!is_same(
            "data",
            r#"{"application/json":["a","b"]}"#,
            r#"{"application/json":"ab"}"#
        ));
        assert!(!is_same("text", r#"["a",["b"]]"#, r#""ab""#));
    }
}
