//! Python.

use super::{Language, Unsayable, is_word};
use crate::parameters::Value;
use crate::parameters::text::{escape_long, float, join, quote};

pub(super) struct Python;

const RESERVED: [&str; 36] = [
    "False",
    "None",
    "True",
    "__debug__",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "pass",
    "raise",
    "return",
    "try",
    "while",
    "with",
    "yield",
];

impl Language for Python {
    fn title(&self) -> &'static str {
        "Python"
    }

    fn names(&self) -> &'static [&'static str] {
        &["python", "python3", "ipython", "ipython3"]
    }

    fn is_name(&self, name: &str) -> bool {
        is_word(name, &['_'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        out.push_str(name);
        out.push_str(" = ");
        write(out, value)
    }
}

fn write(out: &mut String, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("float(\"nan\")"),
        Value::Float(f64::INFINITY) => out.push_str("float(\"inf\")"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("float(\"-inf\")"),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => quote(out, text, &[], escape_long),
        Value::List(items) => {
            out.push('[');
            join(out, items, write)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            join(out, entries, |out, (key, value)| {
                quote(out, key, &[], escape_long);
                out.push_str(": ");
                write(out, value)
            })?;
            out.push('}');
        }
    }
    Ok(())
}
