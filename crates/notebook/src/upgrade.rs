//! Upgrades a notebook to nbformat 4.5: from nbformat 2 and 3, which store cells in worksheets
//! and use other names, and from 4.0 to 4.4, whose cells have no ids.

use std::collections::HashSet;

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::error::{FormatError, Position};
use crate::ids;
use crate::json::format::format_like_jupyter;
use crate::json::input::Input;
use crate::json::lexer::{LexResult, Lexer};
use crate::json::object::{self, Member};
use crate::json::text::{self, Escapes};
use crate::source;
use crate::span::Span;

/// The result of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpgradeOutcome {
    /// Major and minor version before.
    pub from: (u32, u32),
    /// Number of cells that got an id.
    pub ids_added: usize,
}

/// Returns the upgraded file, or `None` if there is nothing to do.
pub fn upgrade(bytes: &[u8]) -> Result<Option<(UpgradeOutcome, Vec<u8>)>, FormatError> {
    match Notebook::parse(bytes) {
        Ok(notebook) => Ok(add_ids(&notebook)),
        Err(FormatError::OldFormat {
            major: major @ 2..=3,
        }) => LegacyNotebook { bytes }.convert(major).map(Some),
        Err(other) => Err(other),
    }
}

/// Adds the ids and the minor version of 4.5 to a notebook in nbformat 4. Everything else keeps
/// its bytes.
fn add_ids(notebook: &Notebook) -> Option<(UpgradeOutcome, Vec<u8>)> {
    let mut taken: HashSet<String> = (0..notebook.count())
        .filter_map(|cell| notebook.id(cell).map(std::borrow::Cow::into_owned))
        .collect();
    let mut splices: Vec<(Span, String)> = Vec::new();
    let mut ids_added = 0;
    for index in 0..notebook.count() {
        if notebook.id(index).is_some() {
            continue;
        }
        let id = ids::derive_id(notebook.kind(index), &notebook.source(index), index, &taken);
        taken.insert(id.clone());
        ids_added += 1;
        splices.push(id_splice(notebook, index, &id));
    }
    if notebook.minor() < 5 {
        let members = object::members(notebook.bytes(), notebook.spans().top);
        match (
            object::find_member(&members, "nbformat_minor"),
            object::find_member(&members, "nbformat"),
        ) {
            (Some(minor), _) => splices.push((minor.value, "5".to_owned())),
            (None, Some(major)) => {
                let end = major.value.end();
                splices.push((Span::new(end, end), ", \"nbformat_minor\": 5".to_owned()));
            }
            (None, None) => {}
        }
    }
    if splices.is_empty() {
        return None;
    }
    splices.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(notebook.bytes().len() + 24 * splices.len());
    let mut done = 0;
    for (span, new) in splices {
        out.extend_from_slice(&notebook.bytes()[done..span.start()]);
        out.extend_from_slice(new.as_bytes());
        done = span.end();
    }
    out.extend_from_slice(&notebook.bytes()[done..]);
    let upgraded = UpgradeOutcome {
        from: (4, notebook.minor()),
        ids_added,
    };
    Some((upgraded, out))
}

/// Inserts an id after the member that precedes it in Jupyter's order, or replaces an id that is
/// not a string.
fn id_splice(notebook: &Notebook, index: usize, id: &str) -> (Span, String) {
    let members = notebook.members(index);
    if let Some(old) = object::find_member(&members, "id") {
        return (old.value, format!("\"{id}\""));
    }
    // In the layout of this cell. Detecting the layout of the whole file for each cell would be
    // quadratic.
    let between = |start, end| String::from_utf8_lossy(notebook.slice(Span::new(start, end)));
    let (colon, comma) = match &members[..] {
        [first, second, ..] => (
            between(first.key.end(), first.value.start()),
            between(first.value.end(), second.key.start()),
        ),
        _ => (": ".into(), ", ".into()),
    };
    let member = format!("\"id\"{colon}\"{id}\"");
    let before = ["execution_count", "cell_type"]
        .iter()
        .find_map(|name| object::find_member(&members, name));
    if let Some(before) = before {
        let end = before.value.end();
        return (Span::new(end, end), format!("{comma}{member}"));
    }
    let start = notebook.cell(index).span.start() + 1;
    (Span::new(start, start), format!("{member},"))
}

/// A notebook in nbformat 2 or 3.
struct LegacyNotebook<'b> {
    bytes: &'b [u8],
}

/// Names of output data in nbformat 3, with their MIME types since nbformat 4.
const MIME_TYPES: [(&str, &str); 8] = [
    ("text", "text/plain"),
    ("html", "text/html"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("javascript", "application/javascript"),
];

impl LegacyNotebook<'_> {
    fn convert(&self, major: u32) -> Result<(UpgradeOutcome, Vec<u8>), FormatError> {
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
        // A result that cannot be parsed must not replace the old file.
        Notebook::parse(&out[..])?;
        let minor = object::find_member(&top, "nbformat_minor")
            .and_then(|member| self.raw_text(member.value).parse().ok());
        let upgraded = UpgradeOutcome {
            from: (major, minor.unwrap_or(0)),
            ids_added: cells.len(),
        };
        Ok((upgraded, out))
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
        let old = object::members(self.bytes, span);
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
                ("input", true) | ("source", false) => source = value,
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
        let old = object::members(self.bytes, span);
        let kind = self
            .string(object::find_member(&old, "output_type"))
            .unwrap_or_default();
        let mut output: Vec<(String, String)> = Vec::new();
        let mut data: Vec<(String, String)> = Vec::new();
        let bundle = matches!(kind.as_str(), "pyout" | "display_data");
        for member in &old {
            let value = self.raw_text(member.value);
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

fn is_json(text: &str) -> bool {
    let mut lexer = Lexer::new(Input::from_slice(text.as_bytes()));
    let mut whole = || -> LexResult<bool> {
        lexer.skip_value()?;
        Ok(lexer.peek_token()?.is_none())
    };
    whole().unwrap_or(false)
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
