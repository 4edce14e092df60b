//! Converts nbformat 2 and 3 to nbformat 4.5, as Python's nbformat does.

use std::borrow::Cow;
use std::collections::HashSet;

use super::UpgradeOutcome;
use crate::cell::CellKind;
use crate::error::{FormatError, Position};
use crate::ids;
use crate::json::format::format_like_jupyter;
use crate::json::object::{self, Member};
use crate::json::text::{self, Escapes};
use crate::metadata::is_json;
use crate::source;
use crate::span::Span;

/// A notebook in nbformat 2 or 3.
pub(super) struct LegacyNotebook<'b> {
    pub(super) bytes: &'b [u8],
}

/// Names of output data in nbformat 3, with their MIME types since nbformat 4.
pub(super) const MIME_TYPES: [(&str, &str); 8] = [
    ("text", "text/plain"),
    ("html", "text/html"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("javascript", "application/javascript"),
];

/// The output data that nbformat 2 and 3 store as an array of lines.
pub(super) const MULTILINE_OUTPUTS: [&str; 6] =
    ["text", "html", "svg", "latex", "javascript", "json"];

impl LegacyNotebook<'_> {
    pub(super) fn convert(&self, major: u32) -> Result<(UpgradeOutcome, Vec<u8>), FormatError> {
        let whole = self
            .bytes
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(self.bytes);
        let offset = self.bytes.len() - whole.len();
        let top = object::members(self.bytes, Span::new(offset, self.bytes.len()));
        let worksheets = object::find_member(&top, "worksheets").ok_or(FormatError::NoCells)?;
        let mut taken = HashSet::new();
        let mut cells = Vec::new();
        for sheet in object::elements(self.bytes, worksheets.value) {
            let sheet = object::members(self.bytes, sheet);
            let Some(list) = object::find_member(&sheet, "cells") else {
                continue;
            };
            for cell in object::elements(self.bytes, list.value) {
                cells.push(self.cell(cell, cells.len(), &mut taken)?);
            }
        }
        let mut members = vec![
            ("cells".to_owned(), format!("[{}]", cells.join(","))),
            ("metadata".to_owned(), self.metadata(&top)),
            ("nbformat".to_owned(), "4".to_owned()),
            ("nbformat_minor".to_owned(), "5".to_owned()),
        ];
        for member in &top {
            let known = matches!(
                member.name.as_str(),
                "cells"
                    | "worksheets"
                    | "metadata"
                    | "nbformat"
                    | "nbformat_minor"
                    | "orig_nbformat"
                    | "orig_nbformat_minor"
            );
            if !known {
                members.push((member.name.clone(), self.raw_text(member.value)));
            }
        }
        let mut out = format_like_jupyter(write_object(&members).as_bytes());
        out.push(b'\n');
        let minor = object::find_member(&top, "nbformat_minor")
            .and_then(|member| self.raw_text(member.value).parse().ok());
        let upgraded = UpgradeOutcome {
            from: (major, minor.unwrap_or(0)),
            ids_added: cells.len(),
        };
        Ok((upgraded, out))
    }

    /// The members of an object, each name once: the last one counts.
    fn members(&self, span: Span) -> Vec<Member> {
        let mut seen = HashSet::new();
        let mut members = object::members(self.bytes, span);
        members.reverse();
        members.retain(|member| seen.insert(member.name.clone()));
        members.reverse();
        members
    }

    /// A text of several lines, with the line breaks that nbformat 4 requires.
    fn lines(&self, span: Span) -> String {
        if !self.is_text(span) {
            return self.raw_text(span);
        }
        let value = &self.bytes[span.range()];
        String::from_utf8_lossy(&with_line_breaks(value)).into_owned()
    }

    fn raw_text(&self, span: Span) -> String {
        String::from_utf8_lossy(&self.bytes[span.range()]).into_owned()
    }

    fn string(&self, member: Option<&Member>) -> Option<String> {
        let value = &self.bytes[member?.value.range()];
        (value.first() == Some(&b'"')).then(|| text::decode(value).into_owned())
    }

    /// The notebook's metadata without the members that nbformat 4 dropped.
    fn metadata(&self, top: &[Member]) -> String {
        let Some(metadata) = object::find_member(top, "metadata") else {
            return "{}".to_owned();
        };
        let kept: Vec<(String, String)> = object::members(self.bytes, metadata.value)
            .into_iter()
            .filter(|member| !matches!(member.name.as_str(), "name" | "signature"))
            .map(|member| (member.name, self.raw_text(member.value)))
            .collect();
        write_object(&kept)
    }

    fn cell(
        &self,
        span: Span,
        index: usize,
        taken: &mut HashSet<String>,
    ) -> Result<String, FormatError> {
        let bad = |problem: &str, span: Span| FormatError::BadCell {
            index,
            problem: problem.to_owned(),
            at: Position::at_offset(span.start(), self.bytes),
        };
        let old = self.members(span);
        let kind = self
            .string(object::find_member(&old, "cell_type"))
            .unwrap_or_default();
        if !["code", "markdown", "raw", "heading", "html"].contains(&kind.as_str()) {
            return Err(bad("the cell has no known `cell_type`", span));
        }
        let is_code = kind == "code";
        let text = object::find_member(&old, if is_code { "input" } else { "source" });
        if let Some(text) = text.filter(|text| !self.is_text(text.value)) {
            return Err(bad("the source is not text", text.value));
        }
        let mut cell: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| cell.push((name.to_owned(), value));
        let mut source = "\"\"".to_owned();
        let mut metadata = "{}".to_owned();
        let mut collapsed = None;
        for member in &old {
            let value = self.raw_text(member.value);
            match (member.name.as_str(), is_code) {
                // Dropped, or names that nbformat 4 uses and nbformat 3 does not.
                ("cell_type" | "id", _)
                | ("language" | "source" | "execution_count", true)
                | ("level", false) => {}
                ("metadata", _) => metadata = value,
                ("input", true) | ("source", false) => source = self.lines(member.value),
                ("rendered", false) => set("rendered", self.lines(member.value)),
                ("collapsed", true) => collapsed = Some(value),
                ("prompt_number", true) => set("execution_count", value),
                ("outputs", true) => set("outputs", self.outputs(member.value)),
                (name, _) => set(name, value),
            }
        }
        let new_kind = match kind.as_str() {
            "code" => CellKind::Code,
            "raw" => CellKind::Raw,
            _ => CellKind::Markdown,
        };
        if kind == "heading" {
            let level = object::find_member(&old, "level")
                .and_then(|level| self.raw_text(level.value).parse().ok())
                .unwrap_or(1usize)
                // Markdown has six levels; the file may have any number.
                .clamp(1, 6);
            source = heading(&source, level);
        }
        if let Some(collapsed) = collapsed {
            metadata = with_member(&metadata, "collapsed", &collapsed);
        }
        let id = ids::derive_id(
            new_kind,
            &source::decode_text(source.as_bytes()),
            index,
            taken,
        );
        taken.insert(id.clone());
        if is_code {
            for (name, empty) in [("execution_count", "null"), ("outputs", "[]")] {
                if !cell.iter().any(|(known, _)| known == name) {
                    cell.push((name.to_owned(), empty.to_owned()));
                }
            }
        }
        cell.push(("cell_type".to_owned(), format!("\"{new_kind}\"")));
        cell.push(("id".to_owned(), format!("\"{id}\"")));
        cell.push(("metadata".to_owned(), metadata));
        cell.push(("source".to_owned(), source));
        cell.sort();
        Ok(write_object(&cell))
    }

    /// Whether a value is a string or an array of strings.
    fn is_text(&self, span: Span) -> bool {
        let is_string = |span: Span| self.bytes[span.range()].first() == Some(&b'"');
        let is_array = self.bytes[span.range()].first() == Some(&b'[');
        is_string(span)
            || (is_array
                && object::elements(self.bytes, span)
                    .into_iter()
                    .all(is_string))
    }

    fn outputs(&self, span: Span) -> String {
        let outputs: Vec<String> = object::elements(self.bytes, span)
            .into_iter()
            .map(|output| self.output(output))
            .collect();
        format!("[{}]", outputs.join(","))
    }

    fn output(&self, span: Span) -> String {
        let old = self.members(span);
        let kind = self
            .string(object::find_member(&old, "output_type"))
            .unwrap_or_default();
        let mut output: Vec<(String, String)> = Vec::new();
        let mut data: Vec<(String, String)> = Vec::new();
        let bundle = matches!(kind.as_str(), "pyout" | "display_data");
        for member in &old {
            let value = if MULTILINE_OUTPUTS.contains(&member.name.as_str()) {
                self.lines(member.value)
            } else {
                self.raw_text(member.value)
            };
            match member.name.as_str() {
                "output_type" => {}
                "metadata" if bundle => {
                    let metadata = object::members(self.bytes, member.value)
                        .into_iter()
                        .map(|member| (mime_type(&member.name), self.raw_text(member.value)))
                        .collect::<Vec<_>>();
                    output.push((member.name.clone(), write_object(&metadata)));
                }
                "prompt_number" if kind == "pyout" => {
                    output.push(("execution_count".to_owned(), value));
                }
                "stream" if kind == "stream" => output.push(("name".to_owned(), value)),
                name if bundle => data.push((mime_type(name), data_value(name, value))),
                name => output.push((name.to_owned(), value)),
            }
        }
        let mut default = |name: &str, value: &str| {
            if !output.iter().any(|(known, _)| known == name) {
                output.push((name.to_owned(), value.to_owned()));
            }
        };
        let new_kind = match kind.as_str() {
            "pyout" => {
                default("execution_count", "null");
                "execute_result"
            }
            "pyerr" => "error",
            "stream" => {
                default("name", "\"stdout\"");
                "stream"
            }
            other => other,
        };
        if bundle {
            default("metadata", "{}");
            data.sort();
            output.push(("data".to_owned(), write_object(&data)));
        }
        output.push((
            "output_type".to_owned(),
            text::encode(new_kind, Escapes::Utf8),
        ));
        output.sort();
        write_object(&output)
    }
}

/// nbformat 2, and some files in nbformat 3, store lines without their line breaks. The first line
/// decides, as in Python's nbformat: if it has none, a line feed separates all lines.
fn with_line_breaks(value: &[u8]) -> Cow<'_, [u8]> {
    let tokens: Vec<_> = source::string_tokens(value).collect();
    if value.first() != Some(&b'[') || tokens.len() < 2 {
        return Cow::Borrowed(value);
    }
    let first = text::decode(&value[tokens[0].clone()]);
    if first.ends_with(['\n', '\r']) {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len() + 2 * tokens.len());
    let mut done = 0;
    for token in &tokens[..tokens.len() - 1] {
        let quote = token.end - 1;
        out.extend_from_slice(&value[done..quote]);
        out.extend_from_slice(b"\\n");
        done = quote;
    }
    out.extend_from_slice(&value[done..]);
    Cow::Owned(out)
}

fn mime_type(name: &str) -> String {
    let known = MIME_TYPES.iter().find(|(short, _)| *short == name);
    known.map_or(name, |(_, long)| long).to_owned()
}

/// nbformat 3 stored JSON data as a string; nbformat 4 stores the value itself.
fn data_value(name: &str, value: String) -> String {
    if mime_type(name) != "application/json" {
        return value;
    }
    let inner = source::decode_text(value.as_bytes());
    if is_json(&inner) { inner } else { value }
}

/// A heading cell as Markdown: one line with number signs.
fn heading(source: &str, level: usize) -> String {
    // Python's line breaks, which are more than Rust's.
    let ends = |c: char| "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}".contains(c);
    let text = source::decode_text(source.as_bytes()).replace("\r\n", "\n");
    let line: Vec<&str> = text
        .strip_suffix(ends)
        .unwrap_or(&text)
        .split(ends)
        .collect();
    let heading = format!("{} {}", "#".repeat(level), line.join(" "));
    text::encode(&heading, Escapes::Utf8)
}

/// The object with this member set.
fn with_member(object: &str, name: &str, value: &str) -> String {
    let bytes = object.as_bytes();
    let mut members = vec![(name.to_owned(), value.to_owned())];
    for member in object::members(bytes, Span::new(0, bytes.len())) {
        if member.name != name {
            members.push((member.name, object[member.value.range()].to_owned()));
        }
    }
    write_object(&members)
}

fn write_object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{}:{value}", text::encode(name, Escapes::Utf8)))
        .collect();
    format!("{{{}}}", members.join(","))
}
