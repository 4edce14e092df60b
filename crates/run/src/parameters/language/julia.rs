//! Julia.

use std::mem::discriminant;

use super::{Language, Unsayable, is_word};
use crate::parameters::Value;
use crate::parameters::text::{escape_long, float, join, quote};

pub(super) struct Julia;

const RESERVED: [&str; 29] = [
    "baremodule",
    "begin",
    "break",
    "catch",
    "const",
    "continue",
    "do",
    "else",
    "elseif",
    "end",
    "export",
    "false",
    "finally",
    "for",
    "function",
    "global",
    "if",
    "import",
    "let",
    "local",
    "macro",
    "module",
    "quote",
    "return",
    "struct",
    "true",
    "try",
    "using",
    "while",
];

impl Language for Julia {
    fn title(&self) -> &'static str {
        "Julia"
    }

    fn names(&self) -> &'static [&'static str] {
        &["julia"]
    }

    fn is_name(&self, name: &str) -> bool {
        !name.starts_with('!') && is_word(name, &['_', '!'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        out.push_str(name);
        out.push_str(" = ");
        write(out, value)
    }
}

fn write(out: &mut String, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.push_str("nothing"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        // However many digits it has, the literal gets a type that can hold it.
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Inf"),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => write_text(out, text),
        Value::List(items) => {
            if !is_plain(items) {
                out.push_str("Any");
            }
            out.push('[');
            join(out, items, write)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push_str("Dict{String, Any}(");
            join(out, entries, |out, (key, value)| {
                write_text(out, key);
                out.push_str(" => ");
                write(out, value)
            })?;
            out.push(')');
        }
    }
    Ok(())
}

/// Whether all items are of one simple sort. Others would be converted to a common type: `[true, 2]` is
/// `[1, 2]`.
fn is_plain(items: &[Value]) -> bool {
    items.first().is_some_and(|first| {
        let is_simple = !matches!(first, Value::List(_) | Value::Map(_) | Value::Null);
        is_simple
            && items
                .iter()
                .all(|item| discriminant(item) == discriminant(first))
    })
}

fn write_text(out: &mut String, text: &str) {
    quote(out, text, &['$'], escape_long);
}
