//! Bash. It has text, and lists and mappings of text.

use super::{Language, Quote, Syntax, UnsupportedValue};
use crate::parameters::Value;
use crate::parameters::text::{format_float, needs_escape};

pub(super) struct Bash;

/// Variables that cannot be assigned.
const READ_ONLY_VARIABLES: [&str; 6] = [
    "BASHOPTS",
    "BASH_VERSINFO",
    "EUID",
    "PPID",
    "SHELLOPTS",
    "UID",
];

static SYNTAX: Syntax = Syntax {
    declarations: &["export", "declare", "typeset", "readonly", "local"],
    blanks_end_value: true,
    ..Syntax::with_quotes(&[
        Quote::multiline("\""),
        Quote {
            has_escapes: false,
            ..Quote::multiline("'")
        },
        Quote::multiline("`"),
    ])
};

impl Language for Bash {
    fn display_name(&self) -> &'static str {
        "Bash"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["bash"]
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        name.bytes().all(is_allowed)
            && !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && !READ_ONLY_VARIABLES.contains(&name)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        match value {
            Value::List(items) => {
                out.push_str(name);
                out.push_str("=(");
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push(' ');
                    }
                    write_value(out, item)?;
                }
                out.push(')');
            }
            Value::Map(entries) => {
                // A variable of another type cannot become an associative array.
                out.push_str("unset ");
                out.push_str(name);
                out.push_str("; declare -A ");
                out.push_str(name);
                out.push_str("=(");
                for (number, (key, value)) in entries.iter().enumerate() {
                    if key.is_empty() {
                        return Err(UnsupportedValue("a key in Bash cannot be empty"));
                    }
                    if number > 0 {
                        out.push(' ');
                    }
                    out.push('[');
                    write_text(out, key)?;
                    out.push_str("]=");
                    write_value(out, value)?;
                }
                out.push(')');
            }
            _ => {
                out.push_str(name);
                out.push('=');
                write_value(out, value)?;
            }
        }
        Ok(())
    }
}

fn write_value(out: &mut String, value: &Value) -> Result<(), UnsupportedValue> {
    match value {
        Value::Null => out.push_str("''"),
        Value::Bool(boolean) => out.push_str(if *boolean { "true" } else { "false" }),
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("nan"),
        Value::Float(f64::INFINITY) => out.push_str("inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-inf"),
        Value::Float(number) => out.push_str(&format_float(*number)),
        Value::Text(text) => write_text(out, text)?,
        Value::List(_) | Value::Map(_) => {
            return Err(UnsupportedValue("Bash has no nested lists"));
        }
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str) -> Result<(), UnsupportedValue> {
    if text.contains('\0') {
        return Err(UnsupportedValue(
            "text in Bash cannot contain the character U+0000",
        ));
    }
    if !text.contains(|character| character == '\'' || needs_escape(character)) {
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
            // As bytes, independent of the locale; `!` would trigger history expansion.
            _ if character == '!' || needs_escape(character) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    // Three octal digits are one byte, whatever character follows.
                    out.push_str(&format!("\\{byte:03o}"));
                }
            }
            _ => out.push(character),
        }
    }
    out.push('\'');
    Ok(())
}
