//! Reads a `kernel.json`.

use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{InterruptMode, Kernelspec, KernelspecError};
use crate::bounded_read;

/// The name of the file that makes a directory a kernelspec.
pub(super) const FILE_NAME: &str = "kernel.json";

/// The members of the file. Only `argv` must be valid.
#[derive(Deserialize)]
struct RawKernelspec {
    #[serde(deserialize_with = "deserialize_argv")]
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

/// Reads the kernelspec in a directory.
pub(super) fn read(name: &str, dir: &Path) -> Result<Kernelspec, KernelspecError> {
    let bytes =
        bounded_read::read(&dir.join(FILE_NAME)).map_err(|error| KernelspecError::Unreadable {
            reason: error.to_string(),
        })?;
    parse(name, dir, &bytes)
}

/// Parses the content of a `kernel.json`.
pub(super) fn parse(name: &str, dir: &Path, bytes: &[u8]) -> Result<Kernelspec, KernelspecError> {
    let malformed = |reason: String| KernelspecError::Malformed { reason };
    // serde would accept an array as the fields in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed("it does not hold a JSON object".to_owned()));
    }
    let raw = match serde_json::from_slice(bytes) {
        Ok(raw) => raw,
        // Of duplicate members the last one counts, as in Python. For other errors the first attempt has the position.
        Err(error) => serde_json::from_slice::<Value>(bytes)
            .and_then(RawKernelspec::deserialize)
            .map_err(|_| malformed(error.to_string()))?,
    };
    Ok(Kernelspec {
        display_name: non_empty_string(raw.display_name).unwrap_or_else(|| name.to_owned()),
        language: non_empty_string(raw.language).unwrap_or_default(),
        interrupt: match raw.interrupt_mode {
            Value::String(mode) if mode.eq_ignore_ascii_case("message") => InterruptMode::Message,
            _ => InterruptMode::Signal,
        },
        env: valid_variables(raw.env),
        metadata: object_or_empty(raw.metadata),
        argv: raw.argv,
        name: name.to_owned(),
        dir: dir.to_owned(),
    })
}

/// Deserializes a program and its arguments, which the system must accept.
fn deserialize_argv<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let argv = Vec::<String>::deserialize(deserializer)?;
    if argv.first().is_none_or(String::is_empty) {
        return Err(D::Error::custom("`argv` names no program"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(D::Error::custom("`argv` has a NUL in it"));
    }
    Ok(argv)
}

fn non_empty_string(value: Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn object_or_empty(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The variables whose names and values an environment can hold.
fn valid_variables(value: Value) -> Vec<(String, String)> {
    object_or_empty(value)
        .into_iter()
        .filter_map(|(name, value)| {
            let value = match value {
                Value::String(text) => text,
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            let is_valid = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
            is_valid.then_some((name, value))
        })
        .collect()
}
