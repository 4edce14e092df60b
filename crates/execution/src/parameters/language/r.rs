//! R.

use super::{Language, Quote, Syntax, UnsupportedValue, is_identifier};
use crate::parameters::Value;
use crate::parameters::text::{escape_code_point, format_float, write_joined, write_quoted};

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

/// Largest integer up to which every integer is exact as a number in R.
const EXACT_INTEGER_MAX: i64 = 1 << 53;

static SYNTAX: Syntax = Syntax {
    has_arrows: true,
    continues_after_operator: true,
    ..Syntax::with_quotes(&[
        Quote::multiline("\""),
        Quote::multiline("'"),
        Quote::multiline("`"),
    ])
};

impl Language for R {
    fn display_name(&self) -> &'static str {
        "R"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["r"]
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        // A name may begin with a point, unless a digit follows; `..1` is an argument of a function.
        let rest = name.trim_start_matches('.');
        let begins_like_number =
            rest.len() < name.len() && rest.starts_with(|c: char| c.is_ascii_digit());
        !name.starts_with('_')
            && !begins_like_number
            && name != "..."
            && is_identifier(name, &['.', '_'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        out.push_str(name);
        out.push_str(" <- ");
        write_value(out, value)
    }
}

fn write_value(out: &mut String, value: &Value) -> Result<(), UnsupportedValue> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(true) => out.push_str("TRUE"),
        Value::Bool(false) => out.push_str("FALSE"),
        Value::Integer(integer) => {
            if !integer.fits_within(EXACT_INTEGER_MAX) {
                return Err(UnsupportedValue("R has no integers that large"));
            }
            // A number, as papermill writes it: arithmetic with integers of R overflows at 32 bits.
            out.push_str(integer.as_str());
        }
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Inf"),
        Value::Float(number) => out.push_str(&format_float(*number)),
        Value::Text(text) => write_text(out, text)?,
        Value::List(items) => {
            out.push_str("list(");
            write_joined(out, items, write_value)?;
            out.push(')');
        }
        Value::Map(entries) => {
            out.push_str("list(");
            write_joined(out, entries, |out, (key, value)| {
                if key.is_empty() {
                    return Err(UnsupportedValue("names in an R list cannot be empty"));
                }
                write_text(out, key)?;
                out.push_str(" = ");
                write_value(out, value)
            })?;
            out.push(')');
        }
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str) -> Result<(), UnsupportedValue> {
    if text.contains('\0') {
        return Err(UnsupportedValue(
            "text in R cannot contain the character U+0000",
        ));
    }
    write_quoted(out, text, &[], escape_code_point);
    Ok(())
}
