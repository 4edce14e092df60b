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
    /// Size of its content in bytes: of the decoded image if it has one, else of its largest text.
    pub bytes: usize,
}

/// Summaries of the outputs of cell `index`; empty unless it is a code cell.
pub fn summaries(notebook: &Notebook, index: usize) -> Vec<OutputSummary> {
    outputs(notebook, index)
        .iter()
        .map(|output| OutputSummary {
            kind: output.kind.clone(),
            labels: output.labels(notebook),
            bytes: output.content_size(notebook),
        })
        .collect()
}

/// The spans of the outputs of cell `index`.
pub(crate) fn output_spans(notebook: &Notebook, index: usize) -> Vec<Span> {
    let outputs = outputs(notebook, index).into_iter();
    outputs.map(|output| output.span).collect()
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

/// The size of a representation in bytes: of the decoded bytes if it is base64, of its text, or of its JSON.
fn data_size(mime: &str, value: &[u8]) -> usize {
    match value.first() {
        Some(b'"' | b'[') if is_base64(mime) => base64_size(&source::decode_text(value)),
        Some(b'"' | b'[') => text_size(value),
        _ => value.len(),
    }
}

/// The size in bytes of a text that is a string or a list of strings.
fn text_size(value: &[u8]) -> usize {
    let tokens = source::string_tokens(value);
    tokens
        .map(|token| json_text::decode(&value[token]).len())
        .sum()
}

/// Whether notebooks store values of this type as base64.
fn is_base64(mime: &str) -> bool {
    let is_image = mime.starts_with("image/") && !mime.ends_with("+xml");
    is_image
        || mime == "application/pdf"
        || mime.starts_with("audio/")
        || mime.starts_with("video/")
}

/// The number of bytes that base64 text stands for; the size of the text if it is not base64.
fn base64_size(text: &str) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = text.bytes().filter(|byte| is_digit(byte)).count();
    let is_other = |byte: u8| !(is_digit(&byte) || byte == b'=' || byte.is_ascii_whitespace());
    if text.bytes().any(is_other) {
        return text.len();
    }
    digits * 3 / 4
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

    fn content_size(&self, notebook: &Notebook) -> usize {
        let size = |name: &str| {
            let member = self.member(name);
            member.map_or(0, |member| text_size(notebook.slice(member.value)))
        };
        match self.kind.as_str() {
            "stream" => size("text"),
            "error" => size("traceback").max(size("ename") + size("evalue")),
            _ => {
                let data = self.data(notebook);
                let sizes = data.iter().map(|member| {
                    let size = data_size(&member.name, notebook.slice(member.value));
                    (member.name.starts_with("image/"), size)
                });
                sizes.max().map_or(0, |(_, size)| size)
            }
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
                let size = data_size(&member.name, value);
                format!("[{}, {size} bytes, {revision}]", member.name)
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

    #[test]
    fn a_size_is_that_of_the_decoded_content() {
        assert_eq!(base64_size("AAAA\nAAE=\n"), 5);
        assert_eq!(base64_size("AA=="), 1);
        assert_eq!(base64_size("not base64!"), 11);
        assert_eq!(data_size("image/png", br#""AAAA""#), 3);
        assert_eq!(data_size("image/svg+xml", br#"["<svg/>\n", "\u00e9"]"#), 9);
        assert_eq!(data_size("application/json", b"{\"a\": 1}"), 8);
    }
}
