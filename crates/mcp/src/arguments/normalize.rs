//! Converts the arguments of a call to the types of the tool.

use cellwright_diagnostics::failure::{Failure, Hint, Kind};
use cellwright_diagnostics::suggest::nearest;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use super::{Argument, ArgumentKind};
use crate::wording;

/// Arguments that hosts add to every tool and pass to the server.
const HOST_ARGUMENTS: [&str; 1] = ["wait_for_previous"];

/// Parses the arguments of a tool. An argument that is `null` counts as missing.
pub(crate) fn parse<T: DeserializeOwned>(
    tool: &str,
    arguments: &[Argument],
    given: JsonObject,
) -> Result<T, Failure> {
    let normalized = normalize(arguments, given)
        .map_err(|problem| problem.into_failure(&format!("Invalid arguments for `{tool}`")))?;
    serde_json::from_value(Value::Object(normalized)).map_err(|error| {
        let message = format!("Invalid arguments for `{tool}`: {error}");
        Failure::new(Kind::BadArguments, message).hint(NOTHING_DONE)
    })
}

const NOTHING_DONE: &str = "nothing was done";

/// Why arguments are invalid.
struct Problem {
    message: String,
    hint: Option<Hint>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    fn into_failure(self, context: &str) -> Failure {
        let message = format!("{context}: {}", self.message);
        let mut failure = Failure::new(Kind::BadArguments, message).hint(NOTHING_DONE);
        failure.hints.extend(self.hint);
        failure
    }
}

fn normalize(arguments: &[Argument], given: JsonObject) -> Result<JsonObject, Problem> {
    let mut normalized = JsonObject::new();
    for (name, value) in given {
        if value.is_null() || HOST_ARGUMENTS.contains(&name.as_str()) {
            continue;
        }
        let argument = arguments.iter().find(|argument| argument.is_named(&name));
        let Some(argument) = argument else {
            return Err(unknown(arguments, &name, &value));
        };
        let value = convert(argument, value)?;
        let previous = normalized.insert(argument.name.to_owned(), value.clone());
        if previous.is_some_and(|previous| previous != value) {
            return Err(Problem::new(format!(
                "`{}` is given twice, with different values",
                argument.name
            )));
        }
    }
    for argument in arguments {
        if argument.is_required && !normalized.contains_key(argument.name) {
            return Err(Problem::new(format!("`{}` is missing", argument.name)));
        }
    }
    Ok(normalized)
}

/// The problem of an argument that the tool does not have.
fn unknown(arguments: &[Argument], name: &str, value: &Value) -> Problem {
    let names = || arguments.iter().map(|argument| argument.name);
    let name = wording::sanitize_name(name);
    let mut message = format!("there is no argument `{name}`");
    if let Some(suggestion) = nearest(&name, names()) {
        message.push_str(&format!("; did you mean `{suggestion}`?"));
    }
    let takes_selector = names().next() == Some("path") && !names().any(|name| name == "cell");
    let selects_cells = matches!(name.as_str(), "cells" | "cell" | "cell_id" | "cell_index");
    let hint = if takes_selector && selects_cells {
        let cells = match value {
            Value::Array(cells) => cells.iter().map(text_of).collect::<Vec<_>>().join(","),
            value => text_of(value),
        };
        let cells = wording::sanitize_name(&cells);
        format!("name cells after the path: {{\"path\": \"a.ipynb:cells={cells}\"}}")
    } else {
        format!("arguments: {}", names().collect::<Vec<_>>().join(", "))
    };
    Problem {
        message,
        hint: Some(hint.into()),
    }
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Converts a value to the type of its argument.
fn convert(argument: &Argument, value: Value) -> Result<Value, Problem> {
    let name = argument.name;
    match argument.kind {
        ArgumentKind::Text => text(name, value, "text"),
        ArgumentKind::Boolean => boolean(name, &value),
        ArgumentKind::Integer => integer(name, &value),
        ArgumentKind::Seconds => seconds(name, &value),
        ArgumentKind::Fraction => fraction(name, &value),
        ArgumentKind::Cell => cell(name, value),
        ArgumentKind::Cells => cells(name, value),
        ArgumentKind::Texts => match parsed_list(value) {
            Value::Array(items) => {
                let items = items.into_iter().map(|item| text(name, item, "text"));
                items.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            value => Ok(Value::Array(vec![text(name, value, "text or a list")?])),
        },
        ArgumentKind::OneOf(names) => one_of(name, &value, names),
        ArgumentKind::Backend => one_of(name, &value, cellwright_engine::settings::Backend::NAMES),
        ArgumentKind::Object => match parsed(value) {
            Value::Object(members) => Ok(Value::Object(members)),
            other => Err(mismatch(name, "an object such as {\"year\": 2026}", &other)),
        },
        ArgumentKind::Objects(members) => objects(name, value, members),
    }
}

/// The problem of a value of the wrong type.
fn mismatch(name: &str, expected: &str, value: &Value) -> Problem {
    let value = wording::sanitize_name(&value.to_string());
    Problem::new(format!("`{name}` must be {expected}, not {value}"))
}

fn text(name: &str, value: Value, expected: &str) -> Result<Value, Problem> {
    match value {
        Value::String(_) => Ok(value),
        Value::Number(number) => Ok(number.to_string().into()),
        // Some models send a source as its lines.
        Value::Array(lines) if lines.iter().all(Value::is_string) && !lines.is_empty() => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            let separator = if lines.iter().any(|line| line.ends_with('\n')) {
                ""
            } else {
                "\n"
            };
            Ok(lines.join(separator).into())
        }
        other => Err(mismatch(name, expected, &other)),
    }
}

fn boolean(name: &str, value: &Value) -> Result<Value, Problem> {
    let word = match value {
        Value::String(word) => word.trim().to_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => value.to_string(),
    };
    match word.as_str() {
        "true" | "1" | "yes" => Ok(true.into()),
        "false" | "0" | "no" | "" => Ok(false.into()),
        _ => Err(mismatch(name, "true or false", value)),
    }
}

fn integer(name: &str, value: &Value) -> Result<Value, Problem> {
    let number = match value {
        Value::String(digits) => digits.trim().parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| whole(number)),
        _ => None,
    };
    match number {
        Some(number) => Ok(number.into()),
        None => Err(mismatch(name, "a whole number from 0 up", value)),
    }
}

/// A number such as `3.0` as an integer.
fn whole(number: &Number) -> Option<u64> {
    let digits = number.to_string();
    digits.strip_suffix(".0")?.parse().ok()
}

/// Checks a number of seconds. [`super::Seconds`] reads it as text.
fn seconds(name: &str, value: &Value) -> Result<Value, Problem> {
    let digits = match value {
        Value::String(digits) => digits.trim().trim_end_matches('s').to_owned(),
        Value::Number(number) => number.to_string(),
        _ => value.to_string(),
    };
    if cellwright_operations::seconds::parse_seconds(&digits).is_err() {
        return Err(mismatch(name, "a number of seconds from 0 up", value));
    }
    Ok(digits.into())
}

fn fraction(name: &str, value: &Value) -> Result<Value, Problem> {
    let number = match value {
        Value::String(digits) => digits.trim().parse().ok(),
        _ => value.as_f64(),
    };
    match number.filter(|number| (0.0..1.0).contains(number)) {
        Some(number) => Ok(number.into()),
        None => Err(mismatch(name, "a number from 0 up to 1", value)),
    }
}

fn cell(name: &str, value: Value) -> Result<Value, Problem> {
    match value {
        Value::Number(number) if number.as_u64().or_else(|| whole(&number)).is_some() => {
            let index = number.as_u64().or_else(|| whole(&number));
            Ok(index.unwrap_or_default().to_string().into())
        }
        Value::Array(items) if items.len() == 1 => cell(name, items[0].clone()),
        Value::String(address) if !address.trim().is_empty() => Ok(address.trim().into()),
        other => Err(mismatch(name, "a cell: an index from 0, or an id", &other)),
    }
}

/// Joins a list of cells to a selection such as `2,5-7,id:ab12`.
fn cells(name: &str, value: Value) -> Result<Value, Problem> {
    match parsed_list(value) {
        Value::Array(items) if !items.is_empty() => {
            let mut joined = Vec::new();
            for item in items {
                joined.push(text_of(&cell(name, item)?));
            }
            Ok(joined.join(",").into())
        }
        value => cell(name, value).map_err(|_| {
            Problem::new(format!(
                "`{name}` must be cells such as \"3-5,8\", an index, an id, or a list of them"
            ))
        }),
    }
}

fn one_of(name: &str, value: &Value, names: &[&str]) -> Result<Value, Problem> {
    let word = text_of(value).trim().to_lowercase();
    let replaced = match word.as_str() {
        "replace" | "update" => "edit",
        "add" | "append" | "create" => "insert",
        "remove" => "delete",
        other => other,
    };
    let found = [word.as_str(), replaced].into_iter();
    if let Some(found) = found.into_iter().find(|word| names.contains(word)) {
        return Ok(found.into());
    }
    Err(mismatch(
        name,
        &format!("one of {}", names.join(", ")),
        value,
    ))
}

fn objects(name: &str, value: Value, members: &[Argument]) -> Result<Value, Problem> {
    let items = match parsed_list(value) {
        Value::Array(items) => items,
        item @ (Value::Object(_) | Value::String(_)) => vec![item],
        other => return Err(mismatch(name, "a list of objects", &other)),
    };
    let mut objects = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        let object = match (parsed(item), members.first()) {
            (Value::Object(object), _) => object,
            (Value::String(text), Some(first)) => {
                JsonObject::from_iter([(first.name.to_owned(), Value::String(text))])
            }
            (other, _) => {
                return Err(mismatch(&format!("{name}[{number}]"), "an object", &other));
            }
        };
        let object = normalize(members, object).map_err(|problem| Problem {
            message: format!("`{name}[{number}]`: {}", problem.message),
            ..problem
        })?;
        objects.push(Value::Object(object));
    }
    Ok(Value::Array(objects))
}

/// Parses an object or a list that is JSON text.
fn parsed(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or(value)
        }
        _ => value,
    }
}

/// Parses a list that is JSON text.
fn parsed_list(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with('[') => parsed(value),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ARGUMENTS: &[Argument] = &[
        super::super::PATH,
        super::super::CELL,
        Argument::new("cells", ArgumentKind::Cells),
        Argument::new("count", ArgumentKind::Integer),
        Argument::new("all", ArgumentKind::Boolean),
        Argument::new("timeout", ArgumentKind::Seconds),
        Argument::new("answer", ArgumentKind::Texts),
        Argument::new("params", ArgumentKind::Object),
        Argument::new("edits", ArgumentKind::Objects(&[super::super::SOURCE])),
        super::super::TYPE,
    ];

    fn normalized(given: Value) -> Result<Value, String> {
        let Value::Object(mut given) = given else {
            return Err("not an object".to_owned());
        };
        given.entry("path").or_insert_with(|| "a".into());
        let mut object = normalize(ARGUMENTS, given).map_err(|problem| problem.message)?;
        object.remove("path");
        Ok(Value::Object(object))
    }

    #[test]
    fn values_are_accepted_in_the_types_that_models_use() {
        for (given, expected) in [
            (json!({"cell": 2}), json!({"cell": "2"})),
            (json!({"cell_id": "ab12"}), json!({"cell": "ab12"})),
            (json!({"cells": [2, "id:a"]}), json!({"cells": "2,id:a"})),
            (json!({"cells": "[2, 3]"}), json!({"cells": "2,3"})),
            (json!({"cells": 2}), json!({"cells": "2"})),
            (json!({"count": "10"}), json!({"count": 10})),
            (json!({"count": 10.0}), json!({"count": 10})),
            (json!({"all": "True"}), json!({"all": true})),
            (json!({"timeout": "30"}), json!({"timeout": "30"})),
            (json!({"timeout": 1.5}), json!({"timeout": "1.5"})),
            (json!({"answer": "x"}), json!({"answer": ["x"]})),
            (json!({"params": "{\"a\": 1}"}), json!({"params": {"a": 1}})),
            (
                json!({"edits": "[\"x\"]"}),
                json!({"edits": [{"source": "x"}]}),
            ),
            (
                json!({"edits": {"new_source": ["a\n", "b"]}}),
                json!({"edits": [{"source": "a\nb"}]}),
            ),
            (
                json!({"cell_type": "Markdown"}),
                json!({"type": "markdown"}),
            ),
            (json!({"cell": null, "wait_for_previous": true}), json!({})),
        ] {
            assert_eq!(normalized(given.clone()), Ok(expected), "{given}");
        }
    }

    #[test]
    fn every_problem_names_the_argument() {
        for (given, expected) in [
            (
                json!({"cel": 2}),
                "there is no argument `cel`; did you mean `cell`?",
            ),
            (
                json!({"count": -1}),
                "`count` must be a whole number from 0 up, not -1",
            ),
            (
                json!({"all": "maybe"}),
                "`all` must be true or false, not \"maybe\"",
            ),
            (
                json!({"timeout": "soon"}),
                "`timeout` must be a number of seconds from 0 up, not \"soon\"",
            ),
            (
                json!({"type": "sql"}),
                "`type` must be one of code, markdown, raw, not \"sql\"",
            ),
            (
                json!({"edits": [{"sorce": "x"}]}),
                "`edits[0]`: there is no argument `sorce`; did you mean `source`?",
            ),
            (
                json!({"cell": 1, "cell_id": "x"}),
                "`cell` is given twice, with different values",
            ),
        ] {
            assert_eq!(
                normalized(given.clone()),
                Err(expected.to_owned()),
                "{given}"
            );
        }
        let missing = normalize(ARGUMENTS, JsonObject::new()).map_err(|problem| problem.message);
        assert_eq!(missing.err().as_deref(), Some("`path` is missing"));
    }
}
