//! What a `kernel.json` says.

use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{Fault, Interrupt, Kernelspec};
use crate::small;

/// The file that makes a folder a kernelspec.
pub(super) const FILE: &str = "kernel.json";

/// What there is in the file; only `argv` must make sense.
#[derive(Deserialize)]
struct Written {
    #[serde(deserialize_with = "command")]
    argv: Vec<String>,
    #[serde(default)]
    display_name: Value,
    #[serde(default)]
    language: Value,
    #[serde(default)]
    interrupt_mode: Value,
    #[serde(default)]
    env: Value,
    #[serde(default)]
    metadata: Value,
}

/// Reads the kernelspec in a folder.
pub(super) fn read(name: &str, folder: &Path) -> Result<Kernelspec, Fault> {
    let bytes = small::read(&folder.join(FILE)).map_err(|error| Fault::Unreadable {
        why: error.to_string(),
    })?;
    let malformed = |why: String| Fault::Malformed { why };
    // An array would be taken for the fields in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("it does not hold a JSON object".to_owned()));
    }
    let written = match serde_json::from_slice(&bytes) {
        Ok(written) => written,
        // A member that is there twice counts the last time, as in Python. What is wrong otherwise was
        // said better, with its place, the first time.
        Err(error) => serde_json::from_slice::<Value>(&bytes)
            .and_then(Written::deserialize)
            .map_err(|_| malformed(error.to_string()))?,
    };
    Ok(Kernelspec {
        display_name: text(written.display_name).unwrap_or_else(|| name.to_owned()),
        language: text(written.language).unwrap_or_default(),
        interrupt: match written.interrupt_mode {
            Value::String(mode) if mode.eq_ignore_ascii_case("message") => Interrupt::Message,
            _ => Interrupt::Signal,
        },
        env: variables(written.env),
        metadata: object(written.metadata),
        argv: written.argv,
        name: name.to_owned(),
        folder: folder.to_owned(),
    })
}

/// A program and its arguments, as they can be given to the system.
fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let argv = Vec::<String>::deserialize(deserializer)?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(D::Error::custom("`argv` names no program"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(D::Error::custom("`argv` has a NUL in it"));
    }
    Ok(argv)
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Variables with names and values that an environment can hold.
fn variables(value: Value) -> Vec<(String, String)> {
    object(value)
        .into_iter()
        .filter_map(|(name, value)| {
            let value = match value {
                Value::String(text) => text,
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            let fine = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
            fine.then_some((name, value))
        })
        .collect()
}
