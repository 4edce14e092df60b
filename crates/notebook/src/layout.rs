//! How the file is laid out, so that new text looks like the rest of it.

use crate::cell::CellKind;
use crate::document::{Cells, Notebook};
use crate::json::indent::lay_out;
use crate::json::object::Member;
use crate::json::text::{self, Escapes};
use crate::source::{self, ArrayLayout, Shape};
use crate::span::Span;

/// How far to look for a cell that shows how things are written here.
const SAMPLE: usize = 200;

/// How a new cell is written into this file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// After `{`, between members (with the comma), before `}`.
    open: String,
    between: String,
    close: String,
    colon: String,
    /// The order of the members, if the file has one of its own.
    order: Vec<String>,
    pub(crate) shape: Shape,
    pub(crate) escapes: Escapes,
    /// What stands around cells in the `cells` array.
    pub(crate) cells: ArrayLayout,
    style: Style,
}

/// How deep the values of a cell stand in a notebook.
pub const CELL_DEPTH: usize = 3;

/// The members of a cell in the order in which Jupyter writes them.
pub(crate) const MEMBERS: [&str; 6] = [
    "cell_type",
    "execution_count",
    "id",
    "metadata",
    "outputs",
    "source",
];

impl Layout {
    /// Reads the layout off the notebook; `near` is a cell that new ones should look like.
    pub(crate) fn of(notebook: &Notebook, near: usize) -> Self {
        let outline = Indentation::of(notebook);
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
            _ => outline.object(3),
        };
        let lines = lines_layout(notebook).unwrap_or_else(|| outline.array_in(&open, &between));
        Self {
            order: template.as_deref().map(own_order).unwrap_or_default(),
            shape: shape(notebook, near, lines),
            escapes: escapes(notebook.bytes()),
            cells: cells_layout(notebook, &outline),
            style: Style::of(notebook.slice(notebook.frame().top), false),
            open,
            between,
            close,
            colon,
        }
    }

    /// A whole new cell.
    pub(crate) fn cell(
        &self,
        kind: CellKind,
        id: Option<&str>,
        source: &str,
        tags: &[String],
    ) -> String {
        let mut members = vec![
            ("cell_type", format!("\"{kind}\"")),
            ("metadata", self.metadata(tags)),
            ("source", source::fresh(source, &self.shape, self.escapes)),
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
            let usual = MEMBERS.iter().position(|known| known == name);
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

    /// What a new cell says about itself.
    fn metadata(&self, tags: &[String]) -> String {
        if tags.is_empty() {
            return "{}".to_owned();
        }
        let quoted: Vec<String> = tags
            .iter()
            .map(|tag| text::encode(tag, self.escapes))
            .collect();
        let json = format!("{{\"tags\":[{}]}}", quoted.join(","));
        let laid_out = lay_out(json.as_bytes(), &self.style, CELL_DEPTH);
        String::from_utf8_lossy(&laid_out).into_owned()
    }

    /// `"name": value`.
    pub(crate) fn member(&self, name: &str, value: &str) -> String {
        format!("\"{name}\"{}{value}", self.colon)
    }

    /// The layout for new lines in this array: its own, as far as it shows one.
    pub(crate) fn array_like(&self, value: &[u8]) -> ArrayLayout {
        if let Some(own) = array_layout(value) {
            return own;
        }
        let usual = match &self.shape {
            Shape::Lines(usual) => usual.clone(),
            Shape::Text => ArrayLayout {
                open: String::new(),
                between: ", ".to_owned(),
                close: String::new(),
            },
        };
        let Some(only) = source::tokens(value).next() else {
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

    /// What separates two members, comma included.
    pub(crate) fn between(&self) -> &str {
        &self.between
    }
}

/// The template's order of members, unless it is the usual one.
fn own_order(members: &[Member]) -> Vec<String> {
    let known: Vec<usize> = members
        .iter()
        .filter_map(|member| MEMBERS.iter().position(|name| *name == member.name))
        .collect();
    if known.is_sorted() {
        return Vec::new();
    }
    members.iter().map(|member| member.name.clone()).collect()
}

fn text_between(notebook: &Notebook, start: usize, end: usize) -> String {
    String::from_utf8_lossy(notebook.slice(Span::new(start, end))).into_owned()
}

/// One string or an array of lines, as most likely usual here.
fn shape(notebook: &Notebook, near: usize, lines: ArrayLayout) -> Shape {
    let is_string = |index: usize| {
        let value = notebook.slice(notebook.cell(index).source);
        (value.len() > 2).then(|| value[0] == b'"')
    };
    let sample = (near..notebook.count()).chain(0..near).take(SAMPLE);
    if sample.into_iter().find_map(is_string).unwrap_or(false) {
        Shape::Text
    } else {
        Shape::Lines(lines)
    }
}

/// The layout of the first `source` that has several lines.
fn lines_layout(notebook: &Notebook) -> Option<ArrayLayout> {
    (0..notebook.count().min(SAMPLE))
        .find_map(|index| array_layout(notebook.slice(notebook.cell(index).source)))
}

/// The layout of this array of strings, if it shows one.
fn array_layout(value: &[u8]) -> Option<ArrayLayout> {
    if value.first() != Some(&b'[') {
        return None;
    }
    let mut tokens = source::tokens(value);
    let (first, second) = (tokens.next()?, tokens.next()?);
    let end = tokens.last().map_or(second.end, |token| token.end);
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&value[range]).into_owned();
    Some(ArrayLayout {
        open: text(1..first.start),
        between: text(first.end..second.start),
        close: text(end..value.len() - 1),
    })
}

fn cells_layout(notebook: &Notebook, outline: &Indentation) -> ArrayLayout {
    let array = notebook.frame().cells;
    let count = notebook.count();
    if count == 0 {
        let (open, between, close, _) = outline.object(2);
        return ArrayLayout {
            open,
            between,
            close,
        };
    }
    let first = notebook.cell(0).span;
    let open = text_between(notebook, array.start() + 1, first.start());
    ArrayLayout {
        between: if count > 1 {
            text_between(notebook, first.end(), notebook.cell(1).span.start())
        } else if open.is_empty() {
            outline.comma.clone()
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

/// How JSON is laid out, for whoever writes more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Line break, or empty when everything is on one line.
    pub newline: String,
    /// What a line is indented by for each level.
    pub unit: String,
    /// What separates a name from its value.
    pub colon: String,
    /// What separates items that stand on one line.
    pub comma: String,
    /// Whether characters beyond ASCII are written as escapes.
    pub ascii: bool,
}

impl Default for Style {
    /// As Jupyter does.
    fn default() -> Self {
        Self {
            newline: "\n".to_owned(),
            unit: " ".to_owned(),
            colon: ": ".to_owned(),
            comma: ", ".to_owned(),
            ascii: false,
        }
    }
}

impl Style {
    /// As the beginning of a file's top-level object shows it.
    pub(crate) fn of(top: &[u8], ascii: bool) -> Self {
        let outline = Indentation::shown_by(top);
        Self {
            newline: outline.newline.to_owned(),
            unit: outline.unit,
            colon: outline.colon,
            comma: outline.comma,
            ascii,
        }
    }

    /// A line break and the indentation of a level; nothing where everything is on one line.
    pub(crate) fn line(&self, depth: usize) -> String {
        if self.newline.is_empty() {
            return String::new();
        }
        format!("{}{}", self.newline, self.unit.repeat(depth))
    }

    /// What stands between two items at a level.
    pub(crate) fn between(&self, depth: usize) -> String {
        if self.newline.is_empty() {
            return self.comma.clone();
        }
        format!(",{}", self.line(depth))
    }
}

/// Indentation as the top level shows it.
struct Indentation {
    /// Line break of the file, or empty when everything is on one line.
    newline: &'static str,
    unit: String,
    colon: String,
    comma: String,
}

impl Indentation {
    fn of(notebook: &Notebook) -> Self {
        Self::shown_by(notebook.slice(notebook.frame().top))
    }

    fn shown_by(bytes: &[u8]) -> Self {
        let is_space = |b: &u8| b.is_ascii_whitespace();
        let gap = bytes[1..].iter().take_while(|b| is_space(b)).count();
        let space = &bytes[1..=gap];
        let newline = if space.contains(&b'\n') {
            if space.contains(&b'\r') { "\r\n" } else { "\n" }
        } else {
            ""
        };
        let unit_start = memchr::memrchr(b'\n', space).map_or(space.len(), |at| at + 1);
        // The first name has no escapes in any file we would call a notebook; if it has, what is
        // found here may lie inside the name and is only trusted if it could be a colon.
        let name = bytes.get(gap + 2..).unwrap_or_default();
        let name_end = memchr::memchr(b'"', name).map_or(0, |at| gap + 3 + at);
        let colon: Vec<u8> = bytes[name_end..]
            .iter()
            .copied()
            .take_while(|b| is_space(b) || *b == b':')
            .collect();
        let colon = String::from_utf8_lossy(&colon).into_owned();
        Self {
            newline,
            unit: String::from_utf8_lossy(&space[unit_start..]).into_owned(),
            comma: if colon.ends_with(' ') { ", " } else { "," }.to_owned(),
            colon: if colon.matches(':').count() == 1 {
                colon
            } else {
                ": ".to_owned()
            },
        }
    }

    /// Open, between, close and colon of an object (or array) whose members are at `depth`.
    fn object(&self, depth: usize) -> (String, String, String, String) {
        if self.newline.is_empty() {
            let none = String::new;
            return (none(), self.comma.clone(), none(), self.colon.clone());
        }
        let indent = |depth: usize| format!("{}{}", self.newline, self.unit.repeat(depth));
        (
            indent(depth),
            format!(",{}", indent(depth)),
            indent(depth - 1),
            self.colon.clone(),
        )
    }

    /// An array inside an object that is laid out with `open` and `between`.
    fn array_in(&self, open: &str, between: &str) -> ArrayLayout {
        if open.is_empty() || self.newline.is_empty() {
            let comma = if between.trim_start().is_empty() {
                &self.comma
            } else {
                between
            };
            return ArrayLayout {
                open: String::new(),
                between: comma.to_owned(),
                close: String::new(),
            };
        }
        let inner = format!("{open}{}", self.unit);
        ArrayLayout {
            between: format!(",{inner}"),
            open: inner,
            close: open.to_owned(),
        }
    }
}

/// A file that spells every non-ASCII character as an escape goes on doing so.
fn escapes(bytes: &[u8]) -> Escapes {
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
