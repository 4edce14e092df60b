//! Summaries and text of cell outputs.
//!
//! Only the outputs of the requested cell are parsed. Nothing here changes an output.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::json::object::{self, Member};
use crate::json::text as json_text;
use crate::revision::Revision;
use crate::source;
use crate::span::Span;
use crate::text::marker;
use crate::text::render::append_escaped;

/// A summary of one output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSummary {
    /// `stream`, `display_data`, `execute_result` or `error`.
    pub kind: String,
    /// The stream's name, the MIME types, or the error's name.
    pub labels: Vec<String>,
    /// Its size in the file, in bytes.
    pub bytes: usize,
}

/// Summaries of the outputs of cell `index`; empty unless it is a code cell.
pub fn summaries(notebook: &Notebook, index: usize) -> Vec<OutputSummary> {
    outputs(notebook, index)
        .iter()
        .map(|output| OutputSummary {
            kind: output.kind.clone(),
            labels: output.labels(notebook),
            bytes: output.span.len(),
        })
        .collect()
}

/// The spans of the outputs of cell `index`.
pub(crate) fn output_spans(notebook: &Notebook, index: usize) -> Vec<Span> {
    let outputs = outputs(notebook, index).into_iter();
    outputs.map(|output| output.span).collect()
}

/// An image among the stored outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the output in the cell.
    pub output: usize,
    /// `image/png` or `image/jpeg`.
    pub mime: String,
    /// The encoded image as base64 text.
    pub base64: String,
}

/// The PNG and JPEG images of cell `index`, at most `limit`.
pub fn images(notebook: &Notebook, index: usize, limit: usize) -> Vec<StoredImage> {
    let mut images = Vec::new();
    for (number, output) in outputs(notebook, index).iter().enumerate() {
        for member in output.data(notebook) {
            if images.len() < limit && matches!(member.name.as_str(), "image/png" | "image/jpeg") {
                images.push(StoredImage {
                    cell: index,
                    output: number,
                    mime: member.name,
                    base64: source::decode_text(notebook.slice(member.value)),
                });
            }
        }
    }
    images
}

/// The execution count of cell `index`, if it has one.
pub fn execution_count(notebook: &Notebook, index: usize) -> Option<u64> {
    let members = notebook.members(index);
    let count = object::find_member(&members, "execution_count")?;
    std::str::from_utf8(notebook.slice(count.value))
        .ok()?
        .parse()
        .ok()
}

/// A stored output with its strings decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredOutput {
    /// Text of a stream.
    Stream {
        /// `stdout` or `stderr`.
        name: String,
        /// The text.
        text: String,
    },
    /// A display or the result of the cell.
    Display {
        /// MIME types and representations, in the order of the file.
        data: Vec<(String, StoredData)>,
    },
    /// An exception.
    Error {
        /// Name of the exception.
        name: String,
        /// Message of the exception.
        value: String,
        /// Lines of the traceback.
        traceback: Vec<String>,
    },
}

/// A stored representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredData {
    /// A string, or the strings of a list, joined. Bytes are base64 text.
    Text(String),
    /// Another value, as JSON.
    Json(String),
}

/// The outputs of cell `index`; empty unless it is a code cell.
pub fn stored_outputs(notebook: &Notebook, index: usize) -> Vec<StoredOutput> {
    let outputs = outputs(notebook, index).into_iter();
    outputs
        .map(|output| match output.kind.as_str() {
            "stream" => StoredOutput::Stream {
                name: output.string(notebook, "name"),
                text: output.string(notebook, "text"),
            },
            "error" => StoredOutput::Error {
                name: output.string(notebook, "ename"),
                value: output.string(notebook, "evalue"),
                traceback: output.traceback(notebook),
            },
            _ => StoredOutput::Display {
                data: output
                    .data(notebook)
                    .into_iter()
                    .map(|member| {
                        let value = StoredData::decode(notebook.slice(member.value));
                        (member.name, value)
                    })
                    .collect(),
            },
        })
        .collect()
}

impl StoredData {
    fn decode(value: &[u8]) -> Self {
        let is_text = match value.first() {
            Some(b'"') => true,
            Some(b'[') => is_string_list(value),
            _ => false,
        };
        if is_text {
            Self::Text(source::decode_text(value))
        } else {
            Self::Json(String::from_utf8_lossy(value).into_owned())
        }
    }
}

/// Whether a JSON list contains only strings, as a text does that is stored by lines.
fn is_string_list(list: &[u8]) -> bool {
    let items = object::elements(list, Span::new(0, list.len()));
    items.iter().all(|item| list[item.start()] == b'"')
}

/// Appends the text of a cell's outputs to the text view, between fences that `parse` skips.
pub fn append_output_text(out: &mut String, index: usize, text: &str) {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&marker::fence_open(index));
    out.push('\n');
    append_escaped(text, out);
    out.push('\n');
    out.push_str(&marker::fence_close());
}

/// The whole text of a cell's outputs. Other data is shown as MIME type, size and a hash that
/// shows changes.
pub(crate) fn full_text(notebook: &Notebook, index: usize) -> String {
    let mut whole = String::new();
    for output in outputs(notebook, index) {
        let text = output.text(notebook);
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        whole.push_str(&strip_controls(&text));
    }
    whole.truncate(whole.trim_end_matches('\n').len());
    whole
}

struct ParsedOutput {
    span: Span,
    kind: String,
    members: Vec<Member>,
}

fn outputs(notebook: &Notebook, index: usize) -> Vec<ParsedOutput> {
    if notebook.kind(index) != CellKind::Code {
        return Vec::new();
    }
    let members = notebook.members(index);
    let Some(list) = object::find_member(&members, "outputs") else {
        return Vec::new();
    };
    object::elements(notebook.bytes(), list.value)
        .into_iter()
        .map(|span| {
            let members = object::members(notebook.bytes(), span);
            let kind = object::find_member(&members, "output_type")
                .map(|member| json_text::decode(notebook.slice(member.value)).into_owned());
            ParsedOutput {
                span,
                kind: kind.unwrap_or_default(),
                members,
            }
        })
        .collect()
}

impl ParsedOutput {
    fn member(&self, name: &str) -> Option<&Member> {
        object::find_member(&self.members, name)
    }

    /// The text of a member that is a string or an array of strings.
    fn string(&self, notebook: &Notebook, name: &str) -> String {
        self.member(name)
            .map(|member| source::decode_text(notebook.slice(member.value)))
            .unwrap_or_default()
    }

    fn data(&self, notebook: &Notebook) -> Vec<Member> {
        self.member("data")
            .map(|member| object::members(notebook.bytes(), member.value))
            .unwrap_or_default()
    }

    fn labels(&self, notebook: &Notebook) -> Vec<String> {
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

    fn traceback(&self, notebook: &Notebook) -> Vec<String> {
        let Some(member) = self.member("traceback") else {
            return Vec::new();
        };
        let value = notebook.slice(member.value);
        source::string_tokens(value)
            .map(|token| json_text::decode(&value[token]).into_owned())
            .collect()
    }

    fn text(&self, notebook: &Notebook) -> String {
        match self.kind.as_str() {
            "stream" => self.string(notebook, "text"),
            "error" => {
                let traceback = self.traceback(notebook).join("\n");
                if traceback.is_empty() {
                    let [name, value] = ["ename", "evalue"].map(|name| self.string(notebook, name));
                    return format!("{name}: {value}");
                }
                traceback
            }
            _ => self.text_with_fingerprints(notebook),
        }
    }

    /// The best text of a bundle, and a hash of each other representation.
    fn text_with_fingerprints(&self, notebook: &Notebook) -> String {
        let data = self.data(notebook);
        let best = best_text(&data).map(|best| best.name.as_str());
        let mut parts: Vec<String> = data
            .iter()
            .filter(|member| Some(member.name.as_str()) != best)
            .map(|member| {
                let value = notebook.slice(member.value);
                let text = match value.first() {
                    Some(b'"' | b'[') => source::decode_text(value).into_bytes(),
                    _ => value.to_vec(),
                };
                let revision = Revision::compute(&text).short();
                format!("[{}, {} bytes, {revision}]", member.name, text.len())
            })
            .collect();
        if let Some(best) = best_text(&data) {
            parts.push(source::decode_text(notebook.slice(best.value)));
        }
        parts.join("\n")
    }
}

/// The most readable representation of a bundle.
fn best_text(data: &[Member]) -> Option<&Member> {
    ["text/markdown", "text/plain"]
        .iter()
        .find_map(|name| object::find_member(data, name))
}

/// The text without escape sequences and control characters. A carriage return clears its line.
fn strip_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape_sequence(&mut characters),
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

/// Skips the rest of an escape sequence: a CSI sequence up to its final byte, an OSC string up to
/// its terminator, or one character.
fn skip_escape_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
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
        assert_eq!(
            strip_controls("\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}!"),
            "red!"
        );
        assert_eq!(
            strip_controls("10%\r50%\r100%\nnext\r\nlast"),
            "100%\nnext\nlast"
        );
        assert_eq!(strip_controls("a\u{7}\u{9b}\tb"), "a\tb");
    }
}
