//! Python.

use super::{Annotation, Language, Quote, Syntax, UnsupportedValue, is_identifier};
use crate::parameters::Value;
use crate::parameters::text::{escape_code_point, format_float, write_joined, write_quoted};

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

static SYNTAX: Syntax = Syntax {
    annotation: Some(Annotation {
        sign: ":",
        can_lack_value: true,
    }),
    type_comment: Some("type:"),
    ..Syntax::with_quotes(&[
        Quote::multiline("\"\"\""),
        Quote::multiline("'''"),
        Quote::new("\""),
        Quote::new("'"),
    ])
};

impl Language for Python {
    fn display_name(&self) -> &'static str {
        "Python"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["python", "python3", "ipython", "ipython3"]
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        is_identifier(name, &['_'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        out.push_str(name);
        out.push_str(" = ");
        write_value(out, value)
    }
}

fn write_value(out: &mut String, value: &Value) -> Result<(), UnsupportedValue> {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("float(\"nan\")"),
        Value::Float(f64::INFINITY) => out.push_str("float(\"inf\")"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("float(\"-inf\")"),
        Value::Float(number) => out.push_str(&format_float(*number)),
        Value::Text(text) => write_quoted(out, text, &[], escape_code_point),
        Value::List(items) => {
            out.push('[');
            write_joined(out, items, write_value)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            write_joined(out, entries, |out, (key, value)| {
                write_quoted(out, key, &[], escape_code_point);
                out.push_str(": ");
                write_value(out, value)
            })?;
            out.push('}');
        }
    }
    Ok(())
}
