//! JavaScript and TypeScript, as Deno's kernel accepts them.

use super::{Annotation, Language, Quote, Syntax, UnsupportedValue, is_identifier};
use crate::parameters::Value;
use crate::parameters::text::{escape_utf16, format_float, write_joined, write_quoted};

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

/// Largest integer up to which every integer is exact as a number (`Number.MAX_SAFE_INTEGER`).
const EXACT_INTEGER_MAX: i64 = (1 << 53) - 1;

const SYNTAX: Syntax = Syntax {
    line_comment: "//",
    block_comment: Some(("/*", "*/")),
    declarations: &["const", "let", "var", "export"],
    continues_after_operator: true,
    ..Syntax::with_quotes(&[Quote::new("\""), Quote::new("'"), Quote::multiline("`")])
};

const TYPESCRIPT_SYNTAX: Syntax = Syntax {
    annotation: Some(Annotation {
        sign: ":",
        can_lack_value: false,
    }),
    ..SYNTAX
};

impl Language for JavaScript {
    fn display_name(&self) -> &'static str {
        "JavaScript"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["javascript"]
    }

    fn comment(&self, text: &str) -> String {
        format!("// {text}")
    }

    fn syntax(&self) -> &'static Syntax {
        &SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        is_identifier(name, &['_', '$'], &RESERVED)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        // A cell may redeclare a variable that an earlier cell declared with `let`. For `const` or `var` the kernel
        // reports an error. A plain assignment would require a declaration.
        out.push_str("let ");
        out.push_str(name);
        out.push_str(" = ");
        write_value(out, value)?;
        out.push(';');
        Ok(())
    }
}

impl Language for TypeScript {
    fn display_name(&self) -> &'static str {
        "TypeScript"
    }

    fn kernel_names(&self) -> &'static [&'static str] {
        &["typescript"]
    }

    fn comment(&self, text: &str) -> String {
        JavaScript.comment(text)
    }

    fn syntax(&self) -> &'static Syntax {
        &TYPESCRIPT_SYNTAX
    }

    fn is_valid_name(&self, name: &str) -> bool {
        JavaScript.is_valid_name(name)
    }

    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue> {
        JavaScript.assign(out, name, value)
    }
}

fn write_value(out: &mut String, value: &Value) -> Result<(), UnsupportedValue> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(integer) => {
            out.push_str(integer.as_str());
            if !integer.fits_within(EXACT_INTEGER_MAX) {
                out.push('n');
            }
        }
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(f64::INFINITY) => out.push_str("Infinity"),
        Value::Float(f64::NEG_INFINITY) => out.push_str("-Infinity"),
        Value::Float(number) => out.push_str(&format_float(*number)),
        Value::Text(text) => write_quoted(out, text, &[], escape_utf16),
        Value::List(items) => {
            out.push('[');
            write_joined(out, items, write_value)?;
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            write_joined(out, entries, |out, (key, value)| {
                // `["__proto__"]` is an ordinary member; without brackets it would set the prototype.
                let is_prototype = key == "__proto__";
                out.push_str(if is_prototype { "[" } else { "" });
                write_quoted(out, key, &[], escape_utf16);
                out.push_str(if is_prototype { "]: " } else { ": " });
                write_value(out, value)
            })?;
            out.push('}');
        }
    }
    Ok(())
}
