//! The schemas: each verb has one, and their fields have one name and unit per quantity.

use std::collections::BTreeSet;

use serde_json::Value;

use super::collector::{schema, schema_names};
use crate::context::Context;

/// Verbs without a document: git reads the output of `clean`.
const WITHOUT_DOCUMENT: [&str; 1] = ["git clean"];

/// Documents that are not those of a verb.
const WITHOUT_VERB: [&str; 2] = ["error", "events"];

#[test]
fn every_verb_has_a_schema() {
    let context = Context::new();
    let mut verbs: BTreeSet<String> = crate::help::verbs(&context).into_iter().collect();
    for name in WITHOUT_DOCUMENT {
        assert!(verbs.remove(name), "{name}");
    }
    verbs.extend(WITHOUT_VERB.map(str::to_owned));
    assert_eq!(schema_names(&context), verbs);
}

#[test]
fn fields_have_a_type_a_description_and_one_unit() {
    let context = Context::new();
    let mut problems = Vec::new();
    for name in schema_names(&context) {
        check(&name, &schema(&context, &name), &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Checks the fields of all objects in a schema.
fn check(place: &str, schema: &Value, problems: &mut Vec<String>) {
    if let Some(fields) = schema["properties"].as_object() {
        if !schema["additionalProperties"].is_boolean() {
            problems.push(format!("{place}: other fields are not excluded"));
        }
        for (name, field) in fields {
            let place = format!("{place}.{name}");
            problems.extend(check_field(name, field).map(|problem| format!("{place}: {problem}")));
            check(&place, field, problems);
        }
    }
    for (key, value) in schema.as_object().into_iter().flatten() {
        match value {
            Value::Object(schemas) if key == "$defs" => {
                for (name, schema) in schemas {
                    check(&format!("{place} {name}"), schema, problems);
                }
            }
            Value::Object(_) if key == "items" || key == "additionalProperties" => {
                check(place, value, problems);
            }
            Value::Array(schemas) if ["anyOf", "oneOf", "allOf"].contains(&key.as_str()) => {
                for schema in schemas {
                    check(place, schema, problems);
                }
            }
            _ => {}
        }
    }
}

/// The first rule that a field breaks.
fn check_field(name: &str, field: &Value) -> Option<&'static str> {
    let has = |key: &str| !field[key].is_null();
    let types = field["type"].to_string();
    let is_time = field["format"] == "date-time";
    let is_snake_case = name
        .chars()
        .all(|character| character.is_ascii_lowercase() || "_0123456789".contains(character));
    let other_units = [
        "_s", "_sec", "_secs", "_seconds", "seconds", "_us", "_ns", "_size", "_kib", "_mib",
    ];
    // The tag of a variant describes itself.
    if !has("description") && !has("const") {
        Some("no description")
    } else if !["type", "$ref", "anyOf", "oneOf", "enum", "const"]
        .iter()
        .any(|key| has(key))
    {
        Some("no type")
    } else if !is_snake_case {
        Some("not in snake_case")
    } else if other_units.iter().any(|unit| name.ends_with(unit)) {
        Some("durations end in _ms, sizes in bytes")
    } else if name == "cell_index" || name == "duration" || name == "elapsed" {
        Some("this quantity has another name")
    } else if name.ends_with("_ms") && !types.contains("number") && !types.contains("integer") {
        Some("a duration is a number")
    } else if name.ends_with("bytes") && !types.contains("integer") {
        Some("a size is an integer")
    } else if is_time != (name.ends_with("_at") || name == "time") {
        Some("times are RFC 3339 texts whose names end in _at")
    } else {
        None
    }
}

#[test]
fn unknown_documents_are_errors_with_a_hint() {
    let context = Context::new();
    let unknown = context.run(&["schema", "kernels"]).exits(2);
    assert!(
        unknown.stderr.contains("`kernels list`"),
        "{}",
        unknown.stderr
    );
    let unknown = context.run(&["schema", "runn"]).exits(2);
    assert!(
        unknown.stderr.contains("did you mean `run`?"),
        "{}",
        unknown.stderr
    );
    // The words of a verb can also be one argument.
    context.run(&["schema", "kernels list"]).exits(0);
}
