//! JavaScript and TypeScript, as Deno's kernel takes them.

use super::{Language, Unsayable, is_word};
use crate::parameters::Value;
use crate::parameters::text::{escape_halves, float, join, quote};

pub(super) struct JavaScript;
pub(super) struct TypeScript;

const RESERVED: [&str; 52] = [
    "Infinity",
    "NaN",
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "globalThis",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Beyond them not every integer is a number (`Number.MAX_SAFE_INTEGER`).
const MOST_EXACT: i64 = (1 << 53) - 1;

impl Language for JavaScript {
    fn title(&self) -> &'static str {
        "JavaScript"
    }

    fn names(&self) -> &'static [&'static str] {
        &["javascript"]
    }

    fn comment(&self, text: &str) -> String {
        format!("// {text}")
    }

    fn is_name(&self, name: &str) -> bool {
        is_word(name, &['_', '$'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        // A cell may declare again what an earlier one declared with `let`. What was declared with
        // `const` or `var` it may not, and says so; a plain assignment would need a declaration.
        out.push_str("let ");
        out.push_str(name);
        out.push_str(" = ");
        write(out, value)?;
        out.push(';');
        Ok(())
    }
}

impl Language for TypeScript {
    fn title(&self) -> &'static str {
        "TypeScript"
    }

    fn names(&self) -> &'static [&'static str] {
        &["typescript"]
    }

    fn comment(&self, text: &str) -> String {
        JavaScript.comment(text)
    }

    fn is_name(&self, name: &str) -> bool {
        JavaScript.is_name(name)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable> {
        JavaScript.assign(out, name, value)
    }
}

fn write(out: &mut String, value: &Value) -> Result<(), Unsayable> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(integer) => {
            out.push_str(integer.as_str());
            if !integer.is_within(MOST_EXACT) {
                out.push('n');
            }
        }
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Infinity"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Infinity"),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => quote(out, text, &[], escape_halves),
        Value::List(items) => {
            out.push('[');
            join(out, items, write)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            join(out, entries, |out, (key, value)| {
                // Between brackets it is a member like any other, without them the prototype.
                let is_prototype = key == "__proto__";
                out.push_str(if is_prototype { "[" } else { "" });
                quote(out, key, &[], escape_halves);
                out.push_str(if is_prototype { "]: " } else { ": " });
                write(out, value)
            })?;
            out.push('}');
        }
    }
    Ok(())
}
