//! Bash. It knows text, and lists and mappings of text.

use super::{Language, Unsayable};
use crate::parameters::Value;
use crate::parameters::text::{float, is_troublesome};

pub(super) struct Bash;

/// What Bash keeps for itself.
const READ_ONLY: [&str; 6] = [
    "BASHOPTS",
    "BASH_VERSINFO",
    "EUID",
    "PPID",
    "SHELLOPTS",
    "UID",
];

impl Language for Bash {
    fn title(&self) -> &'static str {
        "Bash"
    }

    fn names(&self) -> &'static [&'static str] {
        &["bash"]
    }

    fn is_name(&self, name: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.bytes().all(fits)
            && !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && !READ_ONLY.contains(&name)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        match value {
            Value::List(items) => {
                out.push_str(name);
                out.push_str("=(");
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push(' ');
                    }
                    write(out, item)?;
                }
                out.push(')');
            }
            Value::Map(entries) => {
                // A variable that holds something else already cannot become one.
                out.push_str("unset ");
                out.push_str(name);
                out.push_str("; declare -A ");
                out.push_str(name);
                out.push_str("=(");
                for (number, (key, value)) in entries.iter().enumerate() {
                    if key.is_empty() {
                        return Err(Unsayable("a key in Bash cannot be empty"));
                    }
                    if number > 0 {
                        out.push(' ');
                    }
                    out.push('[');
                    write_text(out, key)?;
                    out.push_str("]=");
                    write(out, value)?;
                }
                out.push(')');
            }
            _ => {
                out.push_str(name);
                out.push('=');
                write(out, value)?;
            }
        }
        Ok(())
    }
}

fn write(out: &mut String, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.push_str("''"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("nan"),
        Value::Float(f64::INFINITY) => out.push_str("inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-inf"),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => write_text(out, text)?,
        Value::List(_) | Value::Map(_) => {
            return Err(Unsayable("Bash has no lists in lists"));
        }
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str) -> Result<(), Unsayable> {
    if text.contains('\0') {
        return Err(Unsayable(
            "text in Bash cannot contain the character U+0000",
        ));
    }
    if !text.contains(|character| character == '\'' || is_troublesome(character)) {
        out.push('\'');
        out.push_str(text);
        out.push('\'');
        return Ok(());
    }
    out.push_str("$'");
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            // As bytes, so that the locale does not matter; `!` would recall history.
            _ if character == '!' || is_troublesome(character) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    // Three digits: one of eight bits, whatever follows.
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('\'');
    Ok(())
}
