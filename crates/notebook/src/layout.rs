//! Detects how a file is laid out, so that new text matches the rest of it.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::json::object::Member;
use crate::json::object_edit::trailing_indentation;
use crate::json::style::Style;
use crate::json::text::{self, Escapes};
use crate::metadata::{self, MetadataChange};
use crate::source::{self, ArrayLayout, SourceShape};
use crate::span::Span;

/// Number of cells that are searched for an example.
const SAMPLE_LIMIT: usize = 200;

/// The layout of a new cell in this file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Text after `{`, between members (with the comma) and before `}`.
    open: String,
    between: String,
    close: String,
    colon: String,
    /// The order of the members, if it is not Jupyter's.
    order: Vec<String>,
    pub(crate) shape: SourceShape,
    pub(crate) escapes: Escapes,
    /// Text around the cells in the `cells` array.
    pub(crate) cells: ArrayLayout,
    style: Style,
}

/// The nesting depth of a cell's members in a notebook.
pub const CELL_DEPTH: usize = 3;

/// The members of a cell in Jupyter's order.
pub(crate) const MEMBER_ORDER: [&str; 6] = [
    "cell_type",
    "execution_count",
    "id",
    "metadata",
    "outputs",
    "source",
];

impl Layout {
    /// Detects the layout of the notebook. New cells will look like cell `near`.
    pub(crate) fn detect(notebook: &Notebook, near: usize) -> Self {
        let style = Style::detect(notebook.slice(notebook.spans().top), false);
        let near = near.min(notebook.count().saturating_sub(1));
        let template = (notebook.count() > 0).then(|| notebook.members(near));
        let (open, between, close, colon) = match template.as_deref() {
            Some([first, rest @ ..]) if !rest.is_empty() => {
                let span = notebook.cell(near).span;
                let last = &rest[rest.len() - 1];
                let gap = |start, end| text_between(notebook, start, end);
                (
                    gap(span.start() + 1, first.key.start()),
                    gap(first.value.end(), rest[0].key.start()),
                    gap(last.value.end(), span.end() - 1),
                    gap(first.key.end(), first.value.start()),
                )
            }
            _ => (
                style.line(CELL_DEPTH),
                style.between(CELL_DEPTH),
                style.line(CELL_DEPTH - 1),
                style.colon.clone(),
            ),
        };
        let lines = lines_layout(notebook).unwrap_or_else(|| array_in(&style, &open, &between));
        Self {
            order: template.as_deref().map(custom_order).unwrap_or_default(),
            shape: detect_shape(notebook, near, lines),
            escapes: detect_escapes(notebook.bytes()),
            cells: cells_layout(notebook, &style),
            style,
            open,
            between,
            close,
            colon,
        }
    }

    /// A whole new cell.
    pub(crate) fn new_cell(
        &self,
        kind: CellKind,
        id: Option<&str>,
        source: &str,
        metadata: &[MetadataChange],
    ) -> String {
        let mut members = vec![
            ("cell_type", format!("\"{kind}\"")),
            ("metadata", self.metadata(metadata)),
            (
                "source",
                source::new_value(source, &self.shape, self.escapes),
            ),
        ];
        if kind == CellKind::Code {
            members.push(("execution_count", "null".to_owned()));
            members.push(("outputs", "[]".to_owned()));
        }
        if let Some(id) = id {
            members.push(("id", text::encode(id, self.escapes)));
        }
        members.sort_by_key(|(name, _)| {
            let own = self.order.iter().position(|known| known == name);
            let usual = MEMBER_ORDER.iter().position(|known| known == name);
            (own.unwrap_or(self.order.len()), usual)
        });
        let mut cell = format!("{{{}", self.open);
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                cell.push_str(&self.between);
            }
            cell.push_str(&self.member(name, value));
        }
        cell.push_str(&self.close);
        cell.push('}');
        cell
    }

    /// The metadata of a new cell. Changes that cannot be applied were rejected before.
    fn metadata(&self, changes: &[MetadataChange]) -> String {
        let style = self.json_style();
        let indentation = trailing_indentation(&self.open);
        metadata::apply(b"{}", changes, indentation.as_deref(), &style)
            .unwrap_or_else(|_| "{}".to_owned())
    }

    /// The style of the file.
    pub(crate) fn json_style(&self) -> Style {
        Style {
            ascii: self.escapes == Escapes::Ascii,
            ..self.style.clone()
        }
    }

    /// `"name": value`.
    pub(crate) fn member(&self, name: &str, value: &str) -> String {
        format!("\"{name}\"{}{value}", self.colon)
    }

    /// The layout for new lines in this array: its own, if it has enough lines to show it.
    pub(crate) fn array_like(&self, value: &[u8]) -> ArrayLayout {
        if let Some(own) = array_layout(value) {
            return own;
        }
        let usual = match &self.shape {
            SourceShape::Lines(usual) => usual.clone(),
            SourceShape::Text => ArrayLayout {
                open: String::new(),
                between: ", ".to_owned(),
                close: String::new(),
            },
        };
        let Some(only) = source::string_tokens(value).next() else {
            return usual;
        };
        let text =
            |range: std::ops::Range<usize>| String::from_utf8_lossy(&value[range]).into_owned();
        let open = text(1..only.start);
        ArrayLayout {
            between: if !open.is_empty() {
                format!(",{open}")
            } else if usual.open.is_empty() {
                usual.between
            } else {
                ", ".to_owned()
            },
            open,
            close: text(only.end..value.len() - 1),
        }
    }

    /// The separator between two members, with the comma.
    pub(crate) fn between(&self) -> &str {
        &self.between
    }
}

/// The template's order of members, unless it is Jupyter's.
fn custom_order(members: &[Member]) -> Vec<String> {
    let known: Vec<usize> = members
        .iter()
        .filter_map(|member| MEMBER_ORDER.iter().position(|name| *name == member.name))
        .collect();
    if known.is_sorted() {
        return Vec::new();
    }
    members.iter().map(|member| member.name.clone()).collect()
}

fn text_between(notebook: &Notebook, start: usize, end: usize) -> String {
    String::from_utf8_lossy(notebook.slice(Span::new(start, end))).into_owned()
}

/// The shape of the first source that is not empty, starting at `near`.
fn detect_shape(notebook: &Notebook, near: usize, lines: ArrayLayout) -> SourceShape {
    let is_string = |index: usize| {
        let value = notebook.slice(notebook.cell(index).source);
        (value.len() > 2).then(|| value[0] == b'"')
    };
    let sample = (near..notebook.count()).chain(0..near).take(SAMPLE_LIMIT);
    if sample.into_iter().find_map(is_string).unwrap_or(false) {
        SourceShape::Text
    } else {
        SourceShape::Lines(lines)
    }
}

/// The layout of the first `source` that has several lines.
fn lines_layout(notebook: &Notebook) -> Option<ArrayLayout> {
    (0..notebook.count().min(SAMPLE_LIMIT))
        .find_map(|index| array_layout(notebook.slice(notebook.cell(index).source)))
}

/// The layout of this array of strings, if it has at least two.
fn array_layout(value: &[u8]) -> Option<ArrayLayout> {
    if value.first() != Some(&b'[') {
        return None;
    }
    let mut tokens = source::string_tokens(value);
    let (first, second) = (tokens.next()?, tokens.next()?);
    let end = tokens.last().map_or(second.end, |token| token.end);
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&value[range]).into_owned();
    Some(ArrayLayout {
        open: text(1..first.start),
        between: text(first.end..second.start),
        close: text(end..value.len() - 1),
    })
}

fn cells_layout(notebook: &Notebook, style: &Style) -> ArrayLayout {
    let array = notebook.spans().cells;
    let count = notebook.count();
    if count == 0 {
        return ArrayLayout {
            open: style.line(2),
            between: style.between(2),
            close: style.line(1),
        };
    }
    let first = notebook.cell(0).span;
    let open = text_between(notebook, array.start() + 1, first.start());
    ArrayLayout {
        between: if count > 1 {
            text_between(notebook, first.end(), notebook.cell(1).span.start())
        } else if open.is_empty() {
            style.comma.clone()
        } else {
            format!(",{open}")
        },
        close: text_between(
            notebook,
            notebook.cell(count - 1).span.end(),
            array.end() - 1,
        ),
        open,
    }
}

/// The layout of an array inside an object that is laid out with `open` and `between`.
fn array_in(style: &Style, open: &str, between: &str) -> ArrayLayout {
    if open.is_empty() || style.newline.is_empty() {
        let comma = if between.trim_start().is_empty() {
            &style.comma
        } else {
            between
        };
        return ArrayLayout {
            open: String::new(),
            between: comma.to_owned(),
            close: String::new(),
        };
    }
    let inner = format!("{open}{}", style.unit);
    ArrayLayout {
        between: format!(",{inner}"),
        open: inner,
        close: open.to_owned(),
    }
}

/// Detects whether the file escapes all non-ASCII characters; new text follows it.
fn detect_escapes(bytes: &[u8]) -> Escapes {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if !body.is_ascii() {
        return Escapes::Utf8;
    }
    let escaped = memchr::memmem::find_iter(body, b"\\u").any(|at| {
        let is_escape = body[..at].iter().rev().take_while(|&&b| b == b'\\').count() % 2 == 0;
        let above_ascii = |digits: &[u8]| &digits[..2] != b"00" || digits[2] >= b'8';
        is_escape && body.get(at + 2..at + 6).is_some_and(above_ascii)
    });
    if escaped {
        Escapes::Ascii
    } else {
        Escapes::Utf8
    }
}
