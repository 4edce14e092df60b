//! What was displayed, in several forms at once.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::difference::{Difference, Side, excerpt, excerpts};
use super::item::{first_line, joined};
use super::rules::{Rule, Rules};
use super::text;

const PLAIN: &str = "text/plain";
const WIDGET: &str = "application/vnd.jupyter.widget-view+json";

/// Forms that say in other words what plain text says.
const RICHER: [&str; 3] = ["text/html", "text/markdown", "text/latex"];

type Data<'a> = Option<&'a Map<String, Value>>;

/// The form that is told of one thing displayed.
pub(super) fn title(data: Data<'_>) -> Cow<'_, str> {
    let first = data.and_then(|data| {
        let richest = data.keys().find(|mime| mime.as_str() != PLAIN);
        richest.or_else(|| data.keys().next())
    });
    first.map_or(Cow::Borrowed("display"), |mime| Cow::Borrowed(mime))
}

/// A passage of it, of its plain text where there is some.
pub(super) fn passage(data: &Map<String, Value>) -> String {
    match data.get(PLAIN).or_else(|| data.values().next()) {
        Some(value) => shown(value),
        None => String::new(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Array(_) => first_line(&joined(value)),
        _ => excerpt(&value.to_string(), 0),
    }
}

/// What differs between two things displayed.
pub(super) fn differences(
    (output, data): (&Value, Data<'_>),
    (now_output, now): (&Value, Data<'_>),
    places: (usize, usize),
    rules: Rules,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let changed = |what: &str, was: String, is: String| Difference {
        what: what.to_owned(),
        line: None,
        stored: Some(Side {
            output: places.0,
            text: Some(was),
        }),
        fresh: Some(Side {
            output: places.1,
            text: Some(is),
        }),
    };
    let mut field = |name: &str| {
        let (was, is) = (&output[name], &now_output[name]);
        if was != is {
            found.push(changed(name, excerpt(&bare(was), 0), excerpt(&bare(is), 0)));
        }
    };
    field("output_type");
    if !rules.has(Rule::Counts) {
        field("execution_count");
    }
    let empty = Map::new();
    let (data, now) = (data.unwrap_or(&empty), now.unwrap_or(&empty));
    let both_plain = data.contains_key(PLAIN) && now.contains_key(PLAIN);
    let mimes = data
        .keys()
        .chain(now.keys().filter(|mime| !data.contains_key(*mime)));
    for mime in mimes {
        if both_plain && rules.has(Rule::Html) && RICHER.contains(&mime.as_str()) {
            continue;
        }
        match (data.get(mime), now.get(mime)) {
            (Some(was), Some(is)) => found.extend(form(mime, was, is, places, rules)),
            (Some(was), None) => found.push(Difference {
                what: mime.clone(),
                line: None,
                stored: Some(Side {
                    output: places.0,
                    text: Some(shown(was)),
                }),
                fresh: None,
            }),
            (None, Some(is)) => found.push(Difference {
                what: mime.clone(),
                line: None,
                stored: None,
                fresh: Some(Side {
                    output: places.1,
                    text: Some(shown(is)),
                }),
            }),
            (None, None) => {}
        }
    }
    found
}

/// A value without the quotes that JSON puts around text.
fn bare(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        _ => Cow::Owned(value.to_string()),
    }
}

/// What differs between two values of one MIME type.
fn form(
    mime: &str,
    was: &Value,
    is: &Value,
    places: (usize, usize),
    rules: Rules,
) -> Option<Difference> {
    if was == is {
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
    if is_text(was) && is_text(is) && !is_json {
        let (was, is) = (joined(was), joined(is));
        if is_image && mime != "image/svg+xml" {
            return picture(mime, &was, &is, places);
        }
        // What is not text for people is not looked at so closely.
        let rules = if mime.starts_with("text/") {
            rules
        } else {
            Rules::NONE
        };
        return text::difference(mime, &was, &is, places, rules);
    }
    if mime == WIDGET && rules.has(Rule::Ids) && without_id(was) == without_id(is) {
        return None;
    }
    let (was, is) = excerpts(&was.to_string(), &is.to_string());
    Some(Difference {
        what: mime.to_owned(),
        line: None,
        stored: Some(Side {
            output: places.0,
            text: Some(was),
        }),
        fresh: Some(Side {
            output: places.1,
            text: Some(is),
        }),
    })
}

/// Images byte by byte. Where base64 is broken into lines does not matter.
fn picture(mime: &str, was: &str, is: &str, places: (usize, usize)) -> Option<Difference> {
    let characters = |text: &str| {
        text.bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .count()
    };
    let same = was
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .eq(is.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let told = |text: &str| Some(format!("an image of {} bytes", characters(text) / 4 * 3));
    (!same).then(|| Difference {
        what: mime.to_owned(),
        line: None,
        stored: Some(Side {
            output: places.0,
            text: told(was),
        }),
        fresh: Some(Side {
            output: places.1,
            text: told(is),
        }),
    })
}

/// A reference to a widget without the id, which is made anew each time.
fn without_id(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.remove("model_id");
    }
    value
}
