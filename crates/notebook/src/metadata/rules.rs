//! The rules of nbformat 4 for the metadata of cells and notebooks.

use std::collections::HashSet;

use crate::cell::CellKind;
use crate::json::object;
use crate::json::object_edit::{Object, string_array};
use crate::json::text;
use crate::span::Span;

/// The type of a value.
#[derive(Clone, Copy)]
enum Type {
    Boolean,
    Text,
    NonEmptyText,
    Object,
    Objects,
    TextOrObject,
    BooleanOrAuto,
    PositiveInteger,
    Tags,
}

type Rule = (&'static str, &'static str, Type);

/// Member, member of it (or none), and type. The kind of the cell is not part of the rules: the
/// members of other kinds have no other meaning.
const CELL_RULES: [Rule; 10] = [
    ("tags", "", Type::Tags),
    ("name", "", Type::NonEmptyText),
    ("jupyter", "", Type::Object),
    ("jupyter", "source_hidden", Type::Boolean),
    ("jupyter", "outputs_hidden", Type::Boolean),
    ("execution", "", Type::Object),
    ("execution", "*", Type::Text),
    ("collapsed", "", Type::Boolean),
    ("scrolled", "", Type::BooleanOrAuto),
    ("format", "", Type::Text),
];

const NOTEBOOK_RULES: [Rule; 12] = [
    ("kernelspec", "", Type::Object),
    ("kernelspec", "name", Type::Text),
    ("kernelspec", "display_name", Type::Text),
    ("language_info", "", Type::Object),
    ("language_info", "name", Type::Text),
    ("language_info", "codemirror_mode", Type::TextOrObject),
    ("language_info", "file_extension", Type::Text),
    ("language_info", "mimetype", Type::Text),
    ("language_info", "pygments_lexer", Type::Text),
    ("orig_nbformat", "", Type::PositiveInteger),
    ("title", "", Type::Text),
    ("authors", "", Type::Objects),
];

/// Members that an object must have.
const REQUIRED: [(&str, &str); 3] = [
    ("kernelspec", "name"),
    ("kernelspec", "display_name"),
    ("language_info", "name"),
];

/// Where metadata breaks the rules of nbformat. `kind` is that of the cell; `None` for the
/// notebook.
pub(super) fn problems(metadata: &[u8], kind: Option<CellKind>) -> Vec<String> {
    let Some(object) = Object::parse(metadata, Span::new(0, metadata.len())) else {
        return vec!["the metadata is not an object".to_owned()];
    };
    let rules = if kind.is_some() {
        &CELL_RULES[..]
    } else {
        &NOTEBOOK_RULES[..]
    };
    let mut found = Vec::new();
    for &(name, inner, expected) in rules {
        let is_foreign = match name {
            "collapsed" | "scrolled" | "execution" => kind != Some(CellKind::Code),
            "format" => kind != Some(CellKind::Raw),
            _ => false,
        };
        if is_foreign {
            continue;
        }
        let mut check = |path: String, value: &[u8]| {
            if let Err(wanted) = expected.check(value) {
                found.push(format!("`{path}` must be {wanted}"));
            }
        };
        match (inner, object.get_object(name)) {
            ("", _) => {
                if let Some(value) = object.get(name) {
                    check(name.to_owned(), value);
                }
            }
            ("*", Some(inside)) => {
                for own in inside.names() {
                    check(format!("{name}.{own}"), inside.get(own).unwrap_or_default());
                }
            }
            (inner, Some(inside)) => {
                if let Some(value) = inside.get(inner) {
                    check(format!("{name}.{inner}"), value);
                }
            }
            (_, None) => {}
        }
    }
    if kind.is_none() {
        for (name, inner) in REQUIRED {
            if object
                .get_object(name)
                .is_some_and(|inside| inside.get(inner).is_none())
            {
                found.push(format!("`{name}` must have `{inner}`"));
            }
        }
    }
    found
}

/// Checks a tag.
pub(super) fn check_tag(tag: &str) -> Result<(), String> {
    if tag.is_empty() || tag.contains(',') {
        return Err(format!(
            "`{tag}` is not a tag: a tag is not empty and has no comma"
        ));
    }
    Ok(())
}

impl Type {
    /// The error is the type that the value should have.
    fn check(self, value: &[u8]) -> Result<(), &'static str> {
        let first = value.first().copied().unwrap_or_default();
        let is_text = first == b'"';
        let is_boolean = matches!(value, b"true" | b"false");
        let is_object = first == b'{';
        let (is_valid, wanted) = match self {
            Self::Boolean => (is_boolean, "true or false"),
            Self::Text => (is_text, "a string"),
            Self::NonEmptyText => (is_text && value.len() > 2, "a string that is not empty"),
            Self::Object => (is_object, "an object"),
            Self::Objects => (
                first == b'['
                    && object::elements(value, Span::new(0, value.len()))
                        .into_iter()
                        .all(|element| value.get(element.start()) == Some(&b'{')),
                "a list of objects",
            ),
            Self::TextOrObject => (is_text || is_object, "a string or an object"),
            Self::BooleanOrAuto => (
                is_boolean || (is_text && text::decode(value) == "auto"),
                "true, false or \"auto\"",
            ),
            Self::PositiveInteger => (
                value.iter().all(u8::is_ascii_digit) && value != b"0",
                "a whole number from 1",
            ),
            Self::Tags => (
                string_array(value).is_some_and(|tags| {
                    let unique: HashSet<&String> = tags.iter().collect();
                    unique.len() == tags.len() && tags.iter().all(|tag| check_tag(tag).is_ok())
                }),
                "a list of different strings that are not empty and have no comma",
            ),
        };
        if is_valid { Ok(()) } else { Err(wanted) }
    }
}
