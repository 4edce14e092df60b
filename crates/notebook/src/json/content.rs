//! What a value says, whatever way it is written: for telling whether somebody changed it.

use std::collections::BTreeMap;

use twox_hash::xxhash3_128::Hasher;

use super::indent::string_end;
use super::text;

/// A hash of what a value says. White space, the order of members and the spelling of strings make
/// no difference; nor does it, where nbformat joins lines, whether text is one string or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content(u128);

/// Whether two values of a member called `name` say the same.
pub(crate) fn same(name: &str, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one == other || Content::of(name, one) == Content::of(name, other)
        }
        (None, None) => true,
        _ => false,
    }
}

/// Containers that are open. On the heap, so that no nesting is too deep.
enum Open {
    Array {
        items: Box<Hasher>,
        /// The text so far, while every item is text and the lines belong together.
        joined: Option<Box<Hasher>>,
    },
    Object {
        members: BTreeMap<String, u128>,
        name: Option<String>,
    },
}

impl Content {
    /// What the well-formed value of a member called `name` says.
    pub(crate) fn of(name: &str, json: &[u8]) -> Self {
        let mut open: Vec<Open> = Vec::new();
        let mut rest = json.trim_ascii_start();
        let mut result = 0;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let (value, lone) = match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => continue,
                b'{' => {
                    open.push(Open::object());
                    continue;
                }
                b'[' => {
                    let name = match open.last() {
                        Some(Open::Object { name, .. }) => name.as_deref().unwrap_or_default(),
                        Some(Open::Array { .. }) => "",
                        None => name,
                    };
                    open.push(Open::array(joins(name)));
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
                    if let Some(Open::Object { name, .. }) = open.last_mut()
                        && name.is_none()
                    {
                        *name = Some(text.into_owned());
                        continue;
                    }
                    let mut hasher = tagged(b'"');
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
                    let mut hasher = tagged(b'0');
                    hasher.write(&[byte]);
                    hasher.write(&rest[..length]);
                    rest = &rest[length..];
                    (hasher.finish_128(), None)
                }
            };
            match open.last_mut() {
                Some(container) => container.take(value, lone.as_deref()),
                None => result = value,
            }
        }
        Self(result)
    }
}

impl Open {
    fn object() -> Self {
        Self::Object {
            members: BTreeMap::new(),
            name: None,
        }
    }

    fn array(joins: bool) -> Self {
        Self::Array {
            items: tagged(b'['),
            joined: joins.then(|| tagged(b'"')),
        }
    }

    fn take(&mut self, value: u128, text: Option<&str>) {
        match self {
            Self::Array { items, joined } => {
                items.write(&value.to_le_bytes());
                match (text, joined.as_mut()) {
                    (Some(text), Some(joined)) => joined.write(text.as_bytes()),
                    _ => *joined = None,
                }
            }
            Self::Object { members, name } => {
                // Of two members with one name the last counts.
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
                let mut hasher = tagged(b'{');
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

fn tagged(tag: u8) -> Box<Hasher> {
    let mut hasher = Box::new(Hasher::new());
    hasher.write(&[tag]);
    hasher
}

/// Where an array of strings stands for one text: sources, streams, and MIME types but JSON.
fn joins(name: &str) -> bool {
    name == "source" || name == "text" || (name.contains('/') && !name.ends_with("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says_the_same(name: &str, one: &str, other: &str) -> bool {
        same(name, Some(one.as_bytes()), Some(other.as_bytes()))
    }

    #[test]
    fn layout_order_and_spelling_make_no_difference() {
        let one = r#"{"a": [1, {"b": "é"}], "c": {}, "d": 1, "d": 2}"#;
        let other = "{\"d\":2,\"c\":{ },\n\"a\":[1,{\"b\":\"\\u00e9\"}]}";
        assert!(says_the_same("x", one, other));
    }

    #[test]
    fn everything_else_does() {
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
            assert!(!says_the_same("x", one, other), "{one} {other}");
        }
        assert!(!same("x", None, Some(b"null")));
    }

    #[test]
    fn lines_that_belong_together_are_one_text() {
        assert!(says_the_same("text", r#"["a\n","b"]"#, r#""a\nb""#));
        assert!(says_the_same(
            "data",
            r#"{"image/png":["a","b"]}"#,
            r#"{"image/png":"ab"}"#
        ));
        assert!(!says_the_same(
            "data",
            r#"{"application/json":["a","b"]}"#,
            r#"{"application/json":"ab"}"#
        ));
        assert!(!says_the_same("text", r#"["a",["b"]]"#, r#""ab""#));
    }
}
