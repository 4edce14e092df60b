//! Changes to the metadata of a cell or of the notebook. Everything else keeps its bytes.

mod rules;

use crate::cell::CellKind;
use crate::error::EditError;
use crate::json::content;
use crate::json::input::Input;
use crate::json::lexer::{LexResult, Lexer};
use crate::json::object;
use crate::json::object_edit::{MemberChange, MemberChanges, Object, string_array};
use crate::json::style::Style;
use crate::json::text::{self, Escapes};
use crate::span::Span;

/// A change to the metadata of a cell or of the notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataChange {
    /// Sets a value. Objects on the path that do not exist are created.
    Set {
        /// The names of the members that lead to the value.
        path: Vec<String>,
        /// The value, as JSON.
        json: String,
    },
    /// Removes a member.
    Remove {
        /// The names of the members that lead to it.
        path: Vec<String>,
    },
    /// Adds a tag behind the others, unless the cell has it.
    AddTag(String),
    /// Removes a tag.
    RemoveTag(String),
}

impl MetadataChange {
    /// Sets the tags of a cell.
    pub fn set_tags(tags: &[String]) -> Self {
        let quoted: Vec<String> = tags
            .iter()
            .map(|tag| text::encode(tag, Escapes::Utf8))
            .collect();
        Self::Set {
            path: vec!["tags".to_owned()],
            json: format!("[{}]", quoted.join(",")),
        }
    }

    /// Whether changes of other members of the cell cannot conflict with this one.
    pub(crate) fn is_independent(&self) -> bool {
        matches!(self, Self::AddTag(_) | Self::RemoveTag(_))
    }
}

/// The path of member names that a key denotes: names joined by dots, or a JSON pointer, which
/// starts with a slash.
pub fn key_path(key: &str) -> Vec<String> {
    match key.strip_prefix('/') {
        Some(pointer) => pointer
            .split('/')
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect(),
        None => key.split('.').map(str::to_owned).collect(),
    }
}

/// The value at a path of a metadata object, as JSON.
pub fn find_value<'m>(metadata: &'m [u8], path: &[String]) -> Option<&'m [u8]> {
    let (last, before) = path.split_last()?;
    let mut object = Object::parse(metadata, Span::new(0, metadata.len()))?;
    for name in before {
        object = object.get_object(name)?;
    }
    object.get(last)
}

/// The tags in a metadata object; empty if there are none.
pub fn tags(metadata: &[u8]) -> Vec<String> {
    let tags = find_value(metadata, &["tags".to_owned()]);
    tags.and_then(string_array).unwrap_or_default()
}

/// A metadata object as indented JSON.
pub fn format_json(json: &[u8]) -> String {
    let style = Style {
        unit: "  ".to_owned(),
        ..Style::default()
    };
    style.format(&String::from_utf8_lossy(json), Some(""))
}

/// Whether a text is one JSON value.
pub fn is_json(text: &str) -> bool {
    let mut lexer = Lexer::new(Input::from_slice(text.as_bytes()));
    let mut whole = || -> LexResult<bool> {
        lexer.skip_value()?;
        Ok(lexer.peek_token()?.is_none())
    };
    whole().unwrap_or(false)
}

/// Checks that changes can be applied to a metadata object and leave it valid. `kind` is that of the
/// cell; `None` for the notebook.
pub(crate) fn check(
    old: &[u8],
    changes: &[MetadataChange],
    kind: Option<CellKind>,
) -> Result<(), EditError> {
    let bad = |problem| EditError::BadMetadata { problem };
    let old = if old.is_empty() { b"{}" } else { old };
    let new = apply(old, changes, None, &Style::default()).map_err(bad)?;
    // A file that already breaks a rule can be changed in other places.
    let known = rules::problems(old, kind);
    let problems = rules::problems(new.as_bytes(), kind);
    match problems
        .into_iter()
        .find(|problem| !known.contains(problem))
    {
        Some(problem) => Err(bad(problem)),
        None => Ok(()),
    }
}

/// The object with the changes. `indentation` is that of its line, if each member is on its own
/// line.
pub(crate) fn apply(
    object: &[u8],
    changes: &[MetadataChange],
    indentation: Option<&str>,
    style: &Style,
) -> Result<String, String> {
    let mut text = String::from_utf8_lossy(object).into_owned();
    for change in changes {
        let at = |path: &[String], value| with_value(&text, path, value, indentation, style);
        let tags_path = ["tags".to_owned()];
        text = match change {
            MetadataChange::Set { path, json } => at(path, NewValue::Json(json))?,
            MetadataChange::Remove { path } => at(path, NewValue::Removed)?,
            MetadataChange::AddTag(tag) | MetadataChange::RemoveTag(tag) => {
                rules::check_tag(tag)?;
                let value = find_value(text.as_bytes(), &tags_path).unwrap_or(b"[]");
                let Some(tags) = string_array(value) else {
                    return Err("`tags` is not a list of strings".to_owned());
                };
                let index = tags.iter().position(|own| own == tag);
                match (change, index) {
                    (MetadataChange::AddTag(_), None) => {
                        let escapes = if style.ascii {
                            Escapes::Ascii
                        } else {
                            Escapes::Utf8
                        };
                        let tag = text::encode(tag, escapes);
                        match with_element(value, &tag, style) {
                            Some(array) => at(&tags_path, NewValue::LaidOut(&array))?,
                            None => at(&tags_path, NewValue::Json(&format!("[{tag}]")))?,
                        }
                    }
                    (MetadataChange::RemoveTag(_), Some(_)) if tags.len() == 1 => {
                        at(&tags_path, NewValue::Removed)?
                    }
                    (MetadataChange::RemoveTag(_), Some(index)) => {
                        let array = without_element(value, index);
                        at(&tags_path, NewValue::LaidOut(&array))?
                    }
                    _ => continue,
                }
            }
        };
    }
    Ok(text)
}

/// The new value of a member.
#[derive(Clone, Copy)]
enum NewValue<'v> {
    Json(&'v str),
    /// JSON that already has the layout of the file.
    LaidOut(&'v str),
    Removed,
}

/// The object with a value set or removed.
fn with_value(
    text: &str,
    path: &[String],
    value: NewValue<'_>,
    indentation: Option<&str>,
    style: &Style,
) -> Result<String, String> {
    let Some((name, rest)) = path.split_first() else {
        return Err("a key is missing".to_owned());
    };
    let Some(object) = Object::parse(text.as_bytes(), Span::new(0, text.len())) else {
        return Err("the metadata is not an object".to_owned());
    };
    let member_indentation = object.member_indentation(indentation, style);
    let inner = member_indentation.as_deref();
    let old = object.get(name);
    let change = match (value, old) {
        (NewValue::Removed, None) => return Ok(text.to_owned()),
        (_, Some(old)) if !rest.is_empty() => {
            let old = String::from_utf8_lossy(old);
            if !old.starts_with('{') {
                return Err(format!("`{name}` is not an object"));
            }
            let new = with_value(&old, rest, value, inner, style)?;
            if new == old {
                return Ok(text.to_owned());
            }
            MemberChange::Set(new)
        }
        (NewValue::Removed, Some(_)) => MemberChange::Remove,
        (NewValue::LaidOut(value), _) => MemberChange::Set(value.to_owned()),
        (NewValue::Json(value), old) => {
            if rest.is_empty() && content::same_content("", old, Some(value.as_bytes())) {
                return Ok(text.to_owned());
            }
            let mut nested = value.to_owned();
            for name in rest.iter().rev() {
                nested = format!("{{{}:{nested}}}", text::encode(name, Escapes::Utf8));
            }
            MemberChange::Set(style.format(&nested, inner))
        }
    };
    let mut like = object.names();
    like.push(name);
    let changes = MemberChanges::from([(name.clone(), change)]);
    Ok(object.with_changes(&changes, &like, indentation, style))
}

/// The array with one more element at its end, in its own layout; `None` if it is empty.
fn with_element(array: &[u8], element: &str, style: &Style) -> Option<String> {
    let elements = object::elements(array, Span::new(0, array.len()));
    let text = String::from_utf8_lossy(array);
    let (first, last) = (elements.first()?, elements.last()?);
    let between = match &elements[..] {
        [one, two, ..] => text[one.end()..two.start()].to_owned(),
        _ if first.start() > 1 => format!(",{}", &text[1..first.start()]),
        _ => style.comma.clone(),
    };
    let (start, end) = text.split_at(last.end());
    Some(format!("{start}{between}{element}{end}"))
}

/// The array, which has several elements, without one of them.
fn without_element(array: &[u8], index: usize) -> String {
    let elements = object::elements(array, Span::new(0, array.len()));
    let text = String::from_utf8_lossy(array);
    let (start, end) = match elements.get(index + 1) {
        Some(next) => (elements[index].start(), next.start()),
        None => (elements[index - 1].end(), elements[index].end()),
    };
    format!("{}{}", &text[..start], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(metadata: &str, changes: &[MetadataChange]) -> String {
        apply(metadata.as_bytes(), changes, Some("   "), &Style::default()).unwrap()
    }

    fn add(tag: &str) -> MetadataChange {
        MetadataChange::AddTag(tag.to_owned())
    }

    fn remove(tag: &str) -> MetadataChange {
        MetadataChange::RemoveTag(tag.to_owned())
    }

    fn set(key: &str, json: &str) -> MetadataChange {
        MetadataChange::Set {
            path: key_path(key),
            json: json.to_owned(),
        }
    }

    #[test]
    fn tags_keep_their_order_and_layout() {
        let plain = r#"{"tags": ["a",  "b"], "x" : 1e400}"#;
        assert_eq!(
            changed(plain, &[add("c"), add("a"), remove("b")]),
            r#"{"tags": ["a",  "c"], "x" : 1e400}"#
        );
        assert_eq!(
            changed(plain, &[remove("a"), remove("b")]),
            r#"{"x" : 1e400}"#
        );
        assert_eq!(changed(plain, &[remove("missing"), add("b")]), plain);
        let lines = "{\n    \"tags\": [\n     \"a\"\n    ]\n   }";
        let added = "{\n    \"tags\": [\n     \"a\",\n     \"b\"\n    ]\n   }";
        assert_eq!(changed(lines, &[add("b")]), added);
        assert_eq!(changed(added, &[remove("b")]), lines);
        assert_eq!(changed("{}", &[add("a")]), lines);
        assert_eq!(changed(lines, &[remove("a")]), "{}");
    }

    #[test]
    fn values_are_set_and_removed_by_path() {
        let old = r#"{"b": 1.0, "a": {"x": [ 1 ]}}"#;
        assert_eq!(
            changed(old, &[set("a.y", "{\"z\":[1,2]}")]),
            r#"{"b": 1.0, "a": {"x": [ 1 ], "y": {"z": [1, 2]}}}"#
        );
        assert_eq!(
            changed(old, &[set("/c.d/e", "null")]),
            r#"{"b": 1.0, "a": {"x": [ 1 ]}, "c.d": {"e": null}}"#
        );
        assert_eq!(changed(old, &[set("a.x", "[1]"), set("b", "1.0")]), old);
        let remove = |key| MetadataChange::Remove {
            path: key_path(key),
        };
        assert_eq!(changed(old, &[remove("a.x")]), r#"{"b": 1.0, "a": {}}"#);
        assert_eq!(changed(old, &[remove("a.q"), remove("q.r")]), old);
        let problem = apply(old.as_bytes(), &[set("b.c", "1")], None, &Style::default());
        assert_eq!(problem, Err("`b` is not an object".to_owned()));
    }
}
