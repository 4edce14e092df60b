//! Replaces the placeholders in kernelspecs.

use std::ffi::OsString;
use std::path::Path;

/// Replaces `{name}` for which `lookup` returns a value.
pub(super) fn replace_braces<'a>(
    text: &str,
    lookup: impl Fn(&str) -> Option<&'a Path>,
) -> OsString {
    let mut filled = OsString::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        filled.push(before);
        let name = leading_word(&from[1..], |_| true);
        let value = if from[1 + name.len()..].starts_with('}') {
            lookup(name)
        } else {
            None
        };
        rest = if let Some(value) = value {
            filled.push(value);
            &from[name.len() + 2..]
        } else {
            filled.push("{");
            &from[1..]
        };
    }
    filled.push(rest);
    filled
}

/// Replaces `$NAME` and `${NAME}` where the name is a variable of `env`, and `$$` by a dollar.
pub(super) fn replace_variables(text: &str, env: &[(OsString, OsString)]) -> OsString {
    // Of duplicate variables the last one counts.
    let lookup = |name: &str| {
        let found = env.iter().rev().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value)
    };
    let mut filled = OsString::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        filled.push(&rest[..start]);
        let after = &rest[start + 1..];
        let (name, length) = match after.strip_prefix('{') {
            Some(inner) => {
                let name = leading_identifier(inner);
                let closed = inner[name.len()..].starts_with('}');
                (if closed { name } else { "" }, name.len() + 2)
            }
            None => (leading_identifier(after), leading_identifier(after).len()),
        };
        rest = if let Some(after) = after.strip_prefix('$') {
            filled.push("$");
            after
        } else if let Some(value) = lookup(name).filter(|_| !name.is_empty()) {
            filled.push(value);
            &after[length..]
        } else {
            filled.push("$");
            after
        };
    }
    filled.push(rest);
    filled
}

/// The identifier at the beginning of a text.
fn leading_identifier(text: &str) -> &str {
    leading_word(text, |first| !first.is_ascii_digit())
}

/// The letters, digits and underscores at the beginning of a text, if `first` accepts the first of them.
fn leading_word(text: &str, first: impl Fn(u8) -> bool) -> &str {
    if !text.bytes().next().is_some_and(first) {
        return "";
    }
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
    &text[..end.unwrap_or(text.len())]
}
