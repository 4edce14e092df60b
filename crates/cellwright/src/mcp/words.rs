//! Our words about commands, put for whoever calls tools.

use crate::failure::Failure;
use crate::notice::Told;

/// A hint for people at a command line, for a model: `cellwright read x` becomes `read x`, `--rev` becomes
/// `rev`.
pub(super) fn of_tools(text: &str) -> String {
    let text = text.replace("`cellwright ", "`");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("--") {
        let before = rest[..at].chars().next_back();
        let after = &rest[at + 2..];
        let starts = before.is_none_or(|c| matches!(c, ' ' | '`' | '('));
        let length = after
            .find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .unwrap_or(after.len());
        out.push_str(&rest[..at]);
        if starts && length > 0 {
            out.push_str(&after[..length].replace('-', "_"));
        } else {
            out.push_str("--");
            out.push_str(&after[..length]);
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// An error as text: what, why, what next.
pub(super) fn failure(failure: &Failure) -> String {
    let mut text = format!("error: {}\n", failure.message);
    for cause in &failure.causes {
        text.push_str(&format!("  because: {cause}\n"));
    }
    for hint in &failure.hints {
        text.push_str(&format!("  next: {}\n", of_tools(hint)));
    }
    text
}

/// Notices as text, a line each.
pub(super) fn notices(notices: &[Told]) -> String {
    let line = |notice: &Told| format!("notice ({}): {}\n", notice.kind, of_tools(&notice.text));
    notices.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_arguments_and_commands_become_tools() {
        let cases = [
            ("add --create to start", "add create to start"),
            ("`cellwright read a:raw` shows it", "`read a:raw` shows it"),
            ("(--and-below) x", "(and_below) x"),
            (
                "notebooks there: my--file.ipynb",
                "notebooks there: my--file.ipynb",
            ),
            ("a -- b", "a -- b"),
        ];
        for (said, put) in cases {
            assert_eq!(of_tools(said), put);
        }
    }
}
