//! Julia.

use std::mem::discriminant;

use super::{Annotation, Language, Quote, Syntax, UnsupportedValue, is_identifier};
use crate::parameters::Value;
use crate::parameters::text::{escape_code_point, format_float, write_joined, write_quoted};

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

static SYNTAX: Syntax = Syntax {
    block_comment: Some(("#=", "=#")),
    declarations: &["const", "global", "local"],
    annotation: Some(Annotation {
        sign: "::",
        can_lack_value: false,
    }),
    continues_after_operator: true,
    ..Syntax::with_quotes(&[
        Quote::multiline("\"\"\""),
        Quote::multiline("\""),
        // After an operand it is the transpose operator.
        Quote {
            can_follow_operand: true,
            ..Quote::new("'")
        },
        Quote::multiline("`"),
    ])
};

impl Language for Julia {
    fn display_name(&self) -> &'static str {
        "Julia"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["julia"]
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        !name.starts_with('!') && is_identifier(name, &['_', '!'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        out.push_str(name);
        out.push_str(" = ");
        write_value(out, value)
    }
}

fn write_value(out: &mut String, value: &Value) -> Result<(), UnsupportedValue> {
    match value {
        Value::Null => out.push_str("nothing"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        // Julia chooses a type that can hold the literal, whatever its number of digits.
        Value::Integer(integer) => out.push_str(integer.as_str()),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Inf"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Inf"),
        Value::Float(number) => out.push_str(&format_float(*number)),
        Value::Text(text) => write_text(out, text),
        Value::List(items) => {
            if !is_homogeneous(items) {
                out.push_str("Any");
            }
            out.push('[');
            write_joined(out, items, write_value)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push_str("Dict{String, Any}(");
            write_joined(out, entries, |out, (key, value)| {
                write_text(out, key);
                out.push_str(" => ");
                write_value(out, value)
            })?;
            out.push(')');
        }
    }
    Ok(())
}

/// Whether all items have the same scalar type. Other items would be converted to a common type: `[true, 2]` is
/// `[1, 2]`.
fn is_homogeneous(items: &[Value]) -> bool {
    items.first().is_some_and(|first| {
        let is_simple = !matches!(first, Value::List(_) | Value::Map(_) | Value::Null);
        is_simple
            && items
                .iter()
                .all(|item| discriminant(item) == discriminant(first))
    })
}

fn write_text(out: &mut String, text: &str) {
    write_quoted(out, text, &['$'], escape_code_point);
}
