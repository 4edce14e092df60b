//! R.

use super::{Language, Unsayable, is_word};
use crate::parameters::Value;
use crate::parameters::text::{escape_long, float, join, quote};

pub(super) struct R;

const RESERVED: [&str; 19] = [
    "FALSE",
    "Inf",
    "NA",
    "NA_character_",
    "NA_complex_",
    "NA_integer_",
    "NA_real_",
    "NULL",
    "NaN",
    "TRUE",
    "break",
    "else",
    "for",
    "function",
    "if",
    "in",
    "next",
    "repeat",
    "while",
];

/// Beyond them a number is no integer in R; the least one of 32 bits is its `NA`.
const MOST_INTEGER: i64 = i32::MAX as i64;

/// Beyond them not every integer is a number in R.
const MOST_EXACT: i64 = 1 << 53;

impl Language for R {
    fn title(&self) -> &'static str {
        "R"
    }

    fn names(&self) -> &'static [&'static str] {
        &["r"]
    }

    fn is_name(&self, name: &str) -> bool {
        // A point may begin a name, but not one that goes on like a number; `..1` has a meaning.
        let rest = name.trim_start_matches('.');
        let begins_like_number =
            rest.len() < name.len() && rest.starts_with(|c: char| c.is_ascii_digit());
        !name.starts_with('_')
            && !begins_like_number
            && name != "..."
            && is_word(name, &['.', '_'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        out.push_str(name);
        out.push_str(" <- ");
        write(out, value)
    }
}

fn write(out: &mut String, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(true) => out.push_str("TRUE"),
        Value::Bool(false) => out.push_str("FALSE"),
        Value::Integer(integer) => {
            if !integer.is_within(MOST_EXACT) {
                return Err(Unsayable("R has no integers that large"));
            }
            out.push_str(integer.as_str());
            if integer.is_within(MOST_INTEGER) {
                out.push('L');
            }
        }
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Inf"),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => write_text(out, text)?,
        Value::List(items) => {
            out.push_str("list(");
            join(out, items, write)?;
            out.push(')');
        }
        Value::Map(entries) => {
            out.push_str("list(");
            join(out, entries, |out, (key, value)| {
                if key.is_empty() {
                    return Err(Unsayable("a name in a list of R cannot be empty"));
                }
                write_text(out, key)?;
                out.push_str(" = ");
                write(out, value)
            })?;
            out.push(')');
        }
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str) -> Result<(), Unsayable> {
    if text.contains('\0') {
        return Err(Unsayable("text in R cannot contain the character U+0000"));
    }
    quote(out, text, &[], escape_long);
    Ok(())
}
