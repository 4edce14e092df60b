//! What code cells have put out, in short: for people and models that look at a notebook.
//!
//! Only the cell that is asked for is taken apart. Nothing here changes an output.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::json::object::{self, Member};
use crate::json::text as json_text;
use crate::revision::Revision;
use crate::source;
use crate::span::Span;
use crate::text::marker;
use crate::text::render::append_escaped;

/// One output, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSummary {
    /// `stream`, `display_data`, `execute_result` or `error`.
    pub kind: String,
    /// What it is: the stream's name, the MIME types, the error's name.
    pub what: Vec<String>,
    /// Bytes it takes in the file.
    pub bytes: usize,
}

/// The outputs of cell `index` in short; empty unless it is a code cell.
pub fn summaries(notebook: &Notebook, index: usize) -> Vec<OutputSummary> {
    outputs(notebook, index)
        .iter()
        .map(|output| OutputSummary {
            kind: output.kind.clone(),
            what: output.what(notebook),
            bytes: output.span.len(),
        })
        .collect()
}

/// Where the outputs of cell `index` are, one by one.
pub(crate) fn spans(notebook: &Notebook, index: usize) -> Vec<Span> {
    let outputs = outputs(notebook, index).into_iter();
    outputs.map(|output| output.span).collect()
}

/// The execution count of cell `index`, if it has one.
pub fn execution_count(notebook: &Notebook, index: usize) -> Option<u64> {
    let members = notebook.members(index);
    let count = object::member(&members, "execution_count")?;
    std::str::from_utf8(notebook.slice(count.value))
        .ok()?
        .parse()
        .ok()
}

/// How much of a cell's outputs is shown.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// Lines.
    pub lines: usize,
    /// Characters.
    pub characters: usize,
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            lines: 40,
            characters: 4000,
        }
    }
}

/// Appends the text view with outputs. The outputs stand between fences that `parse` skips.
pub fn append_with_outputs(out: &mut String, notebook: &Notebook, index: usize, cap: Cap) {
    let shown = text(notebook, index, cap);
    if shown.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&marker::fence_open(index));
    out.push('\n');
    append_escaped(&shown, out);
    out.push('\n');
    out.push_str(&marker::fence_close());
}

/// What the outputs of a cell say, within bounds.
fn text(notebook: &Notebook, index: usize, cap: Cap) -> String {
    let mut whole = String::new();
    for output in outputs(notebook, index) {
        let text = plain(&output.text(notebook));
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        whole.push_str(&text);
    }
    bounded(whole.trim_end_matches('\n'), cap)
}

/// What the outputs of a cell say, whole. What is no text is named, with a fingerprint by which a change
/// of it is seen.
pub(crate) fn whole_text(notebook: &Notebook, index: usize) -> String {
    let mut whole = String::new();
    for output in outputs(notebook, index) {
        let mut text = output.text(notebook);
        if let "execute_result" | "display_data" = output.kind.as_str() {
            text = output.fingerprinted(notebook);
        }
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        whole.push_str(&plain(&text));
    }
    whole.truncate(whole.trim_end_matches('\n').len());
    whole
}

fn bounded(text: &str, cap: Cap) -> String {
    let total = text.split('\n').count();
    let mut shown = String::new();
    let mut characters = 0;
    for (number, line) in text.split('\n').enumerate() {
        characters += line.chars().count() + 1;
        if number >= cap.lines || characters > cap.characters {
            if number == 0 {
                shown.extend(line.chars().take(cap.characters));
            }
            let left = total - number - usize::from(number == 0);
            if left > 0 {
                shown.push_str(&format!("\n[… {left} more lines]"));
            } else {
                shown.push_str(" […]");
            }
            return shown;
        }
        if number > 0 {
            shown.push('\n');
        }
        shown.push_str(line);
    }
    shown
}

struct Output {
    span: Span,
    kind: String,
    members: Vec<Member>,
}

fn outputs(notebook: &Notebook, index: usize) -> Vec<Output> {
    if notebook.kind(index) != CellKind::Code {
        return Vec::new();
    }
    let members = notebook.members(index);
    let Some(list) = object::member(&members, "outputs") else {
        return Vec::new();
    };
    object::elements(notebook.bytes(), list.value)
        .into_iter()
        .map(|span| {
            let members = object::members(notebook.bytes(), span);
            let kind = object::member(&members, "output_type")
                .map(|member| json_text::decode(notebook.slice(member.value)).into_owned());
            Output {
                span,
                kind: kind.unwrap_or_default(),
                members,
            }
        })
        .collect()
}

impl Output {
    fn member(&self, name: &str) -> Option<&Member> {
        object::member(&self.members, name)
    }

    /// The text of a member that is a string or an array of strings.
    fn string(&self, notebook: &Notebook, name: &str) -> String {
        self.member(name)
            .map(|member| source::text_of(notebook.slice(member.value)))
            .unwrap_or_default()
    }

    fn data(&self, notebook: &Notebook) -> Vec<Member> {
        self.member("data")
            .map(|member| object::members(notebook.bytes(), member.value))
            .unwrap_or_default()
    }

    fn what(&self, notebook: &Notebook) -> Vec<String> {
        match self.kind.as_str() {
            "stream" => vec![self.string(notebook, "name")],
            "error" => vec![self.string(notebook, "ename")],
            _ => self
                .data(notebook)
                .into_iter()
                .map(|member| member.name)
                .collect(),
        }
    }

    fn text(&self, notebook: &Notebook) -> String {
        match self.kind.as_str() {
            "stream" => self.string(notebook, "text"),
            "error" => {
                let traceback = self.member("traceback").map(|member| {
                    let value = notebook.slice(member.value);
                    let lines: Vec<String> = source::tokens(value)
                        .map(|token| json_text::decode(&value[token]).into_owned())
                        .collect();
                    lines.join("\n")
                });
                traceback
                    .filter(|text| !text.is_empty())
                    .unwrap_or_else(|| {
                        let (name, value) = (
                            self.string(notebook, "ename"),
                            self.string(notebook, "evalue"),
                        );
                        format!("{name}: {value}")
                    })
            }
            _ => self.bundle(notebook),
        }
    }

    /// The best text of a bundle, and a fingerprint of everything else.
    fn fingerprinted(&self, notebook: &Notebook) -> String {
        let data = self.data(notebook);
        let best = best_text(&data).map(|best| best.name.as_str());
        let mut parts: Vec<String> = data
            .iter()
            .filter(|member| Some(member.name.as_str()) != best)
            .map(|member| {
                let value = notebook.slice(member.value);
                let text = match value.first() {
                    Some(b'"' | b'[') => source::text_of(value).into_bytes(),
                    _ => value.to_vec(),
                };
                let revision = Revision::of(&text).short();
                format!("[{}, {} bytes, {revision}]", member.name, text.len())
            })
            .collect();
        if let Some(best) = best_text(&data) {
            parts.push(source::text_of(notebook.slice(best.value)));
        }
        parts.join("\n")
    }

    /// The best text of a bundle, and a word on what else is in it.
    fn bundle(&self, notebook: &Notebook) -> String {
        let data = self.data(notebook);
        let mut parts: Vec<String> = data
            .iter()
            .filter(|member| !member.name.starts_with("text/"))
            .map(|member| format!("[{}, {} bytes]", member.name, member.value.len()))
            .collect();
        if let Some(best) = best_text(&data) {
            parts.push(source::text_of(notebook.slice(best.value)));
        } else if let Some(other) = data.iter().find(|member| member.name.starts_with("text/")) {
            parts.push(format!("[{}, {} bytes]", other.name, other.value.len()));
        }
        parts.join("\n")
    }
}

/// What of a bundle reads best.
fn best_text(data: &[Member]) -> Option<&Member> {
    ["text/markdown", "text/plain"]
        .iter()
        .find_map(|name| object::member(data, name))
}

/// Text without escape sequences and control characters; a carriage return starts its line anew.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\n' => {
                out.push('\n');
                line_start = out.len();
            }
            '\r' if characters.peek() != Some(&'\n') => out.truncate(line_start),
            '\t' => out.push('\t'),
            _ if character.is_control() => {}
            _ => out.push(character),
        }
    }
    out
}

/// Skips what follows an escape character: a CSI sequence up to its letter, an OSC string up to its
/// end, or one character.
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => {
            for character in characters.by_ref() {
                if ('@'..='~').contains(&character) {
                    return;
                }
            }
        }
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' || character == '\u{9c}' {
                    return;
                }
                if character == '\u{1b}' {
                    characters.next_if_eq(&'\\');
                    return;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_overwritten_text_are_not_shown() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}!"), "red!");
        assert_eq!(plain("10%\r50%\r100%\nnext\r\nlast"), "100%\nnext\nlast");
        assert_eq!(plain("a\u{7}\u{9b}\tb"), "a\tb");
    }

    #[test]
    fn long_outputs_are_cut_and_counted() {
        let cap = Cap {
            lines: 2,
            characters: 10,
        };
        assert_eq!(bounded("a\nb", cap), "a\nb");
        assert_eq!(bounded("a\nb\nc\nd", cap), "a\nb\n[… 2 more lines]");
        assert_eq!(
            bounded(&"x".repeat(12), cap),
            format!("{} […]", "x".repeat(10))
        );
    }
}
