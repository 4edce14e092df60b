//! Compares MIME bundles.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::difference::{Difference, Side, excerpt, excerpt_pair};
use super::item::{first_line, join_text};
use super::rules::{Rule, Rules};
use super::text;

const PLAIN_MIME: &str = "text/plain";
const WIDGET_MIME: &str = "application/vnd.jupyter.widget-view+json";

/// Rich representations of what `text/plain` contains.
const RICH_TEXT_MIMES: [&str; 3] = ["text/html", "text/markdown", "text/latex"];

type Data<'a> = Option<&'a Map<String, Value>>;

/// The MIME type that names a bundle in messages.
pub(super) fn label(data: Data<'_>) -> Cow<'_, str> {
    let first = data.and_then(|data| {
        let richest = data.keys().find(|mime| mime.as_str() != PLAIN_MIME);
        richest.or_else(|| data.keys().next())
    });
    first.map_or(Cow::Borrowed("display"), |mime| Cow::Borrowed(mime))
}

/// Excerpt of a bundle, of its plain text if it has some.
pub(super) fn data_excerpt(data: &Map<String, Value>) -> String {
    match data.get(PLAIN_MIME).or_else(|| data.values().next()) {
        Some(value) => value_excerpt(value),
        None => String::new(),
    }
}

fn value_excerpt(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Array(_) => first_line(&join_text(value)),
        _ => excerpt(&value.to_string(), 0),
    }
}

/// The differences between two bundles.
pub(super) fn differences(
    (output, data): (&Value, Data<'_>),
    (new_output, new_data): (&Value, Data<'_>),
    indexes: (usize, usize),
    rules: Rules,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let changed = |what: &str, old: String, new: String| Difference {
        what: what.to_owned(),
        line: None,
        stored: Some(Side {
            output: indexes.0,
            text: Some(old),
        }),
        fresh: Some(Side {
            output: indexes.1,
            text: Some(new),
        }),
    };
    let mut field = |name: &str| {
        let (old, new) = (&output[name], &new_output[name]);
        if old != new {
            differences.push(changed(
                name,
                excerpt(&unquoted(old), 0),
                excerpt(&unquoted(new), 0),
            ));
        }
    };
    field("output_type");
    if !rules.has(Rule::Counts) {
        field("execution_count");
    }
    let empty = Map::new();
    let (data, new_data) = (data.unwrap_or(&empty), new_data.unwrap_or(&empty));
    let both_plain = data.contains_key(PLAIN_MIME) && new_data.contains_key(PLAIN_MIME);
    let mimes = data
        .keys()
        .chain(new_data.keys().filter(|mime| !data.contains_key(*mime)));
    for mime in mimes {
        if both_plain && rules.has(Rule::Html) && RICH_TEXT_MIMES.contains(&mime.as_str()) {
            continue;
        }
        match (data.get(mime), new_data.get(mime)) {
            (Some(old), Some(new)) => {
                differences.extend(mime_difference(mime, old, new, indexes, rules));
            }
            (Some(old), None) => differences.push(Difference {
                what: mime.clone(),
                line: None,
                stored: Some(Side {
                    output: indexes.0,
                    text: Some(value_excerpt(old)),
                }),
                fresh: None,
            }),
            (None, Some(new)) => differences.push(Difference {
                what: mime.clone(),
                line: None,
                stored: None,
                fresh: Some(Side {
                    output: indexes.1,
                    text: Some(value_excerpt(new)),
                }),
            }),
            (None, None) => {}
        }
    }
    differences
}

/// A value without the quotes of a JSON string.
fn unquoted(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        _ => Cow::Owned(value.to_string()),
    }
}

/// The difference between two values of one MIME type.
fn mime_difference(
    mime: &str,
    old: &Value,
    new: &Value,
    indexes: (usize, usize),
    rules: Rules,
) -> Option<Difference> {
    if old == new {
        return None;
    }
    let is_text = |value: &Value| {
        let is_piece = |piece: &Value| piece.is_string();
        value.is_string()
            || value
                .as_array()
                .is_some_and(|pieces| pieces.iter().all(is_piece))
    };
    let is_json = mime == "application/json" || mime.ends_with("+json");
    let is_image = mime.starts_with("image/");
    if is_image && rules.has(Rule::Images) {
        return None;
    }
    if is_text(old) && is_text(new) && !is_json {
        let (old, new) = (join_text(old), join_text(new));
        if is_image && mime != "image/svg+xml" {
            return image_difference(mime, &old, &new, indexes);
        }
        // The rules apply to text for readers only.
        let rules = if mime.starts_with("text/") {
            rules
        } else {
            Rules::NONE
        };
        return text::first_difference(mime, &old, &new, indexes, rules);
    }
    if is_json && rules.tolerance().accepts_json(old, new) {
        return None;
    }
    if mime == WIDGET_MIME && rules.has(Rule::Ids) && without_id(old) == without_id(new) {
        return None;
    }
    let (old, new) = excerpt_pair(&old.to_string(), &new.to_string());
    Some(Difference {
        what: mime.to_owned(),
        line: None,
        stored: Some(Side {
            output: indexes.0,
            text: Some(old),
        }),
        fresh: Some(Side {
            output: indexes.1,
            text: Some(new),
        }),
    })
}

/// Compares images byte by byte. Line breaks in base64 do not matter.
fn image_difference(
    mime: &str,
    old: &str,
    new: &str,
    indexes: (usize, usize),
) -> Option<Difference> {
    let characters = |text: &str| {
        text.bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count()
    };
    let same = old
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .eq(new.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let description = |text: &str| Some(format!("an image of {} bytes", characters(text) / 4 * 3));
    (!same).then(|| Difference {
        what: mime.to_owned(),
        line: None,
        stored: Some(Side {
            output: indexes.0,
            text: description(old),
        }),
        fresh: Some(Side {
            output: indexes.1,
            text: description(new),
        }),
    })
}

/// A reference to a widget without its id, which differs in every run.
fn without_id(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.remove("model_id");
    }
    value
}
