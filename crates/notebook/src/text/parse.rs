//! Parses an edited text view.

use crate::cell::CellKind;
use crate::error::{EditError, MarkerText, Notice, UnmarkedText};

use super::marker::{self, Marker, ViewLine};
use super::percent;

/// One cell of an edited text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The kind in its marker.
    pub kind: CellKind,
    /// The cell it names with `cell:N`.
    pub cell: Option<usize>,
    /// The cell it names with `id:ID`.
    pub id: Option<String>,
    /// The tags of its marker; `None` if it has none.
    pub tags: Option<Vec<String>>,
    /// Its source, unescaped.
    pub source: String,
    /// Line of its marker, from 1.
    pub line: usize,
    /// Lines in it that are almost markers, with their numbers from 1.
    pub near_markers: Vec<(usize, String)>,
}

impl Block {
    fn new(marker: &Marker<'_>, line: usize) -> Self {
        Self {
            kind: marker.kind,
            cell: marker.cell,
            id: marker.id.map(str::to_owned),
            tags: marker
                .tags
                .map(|tags| tags.split(',').map(str::to_owned).collect()),
            source: String::new(),
            line,
            near_markers: Vec::new(),
        }
    }

    /// Whether the marker names a cell, as all markers of a view do.
    pub(super) fn has_address(&self) -> bool {
        self.cell.is_some() || self.id.is_some()
    }
}

/// A parsed text view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedText {
    /// The cells.
    pub blocks: Vec<Block>,
    /// Whether the text had CRLF line endings, which were removed.
    pub crlf: bool,
    /// Notices about the text as a whole.
    pub notices: Vec<Notice>,
}

/// Parses an edited text. `text` is the view itself, without the newline that printing adds, or a
/// text in the percent format.
pub fn parse(text: &str) -> Result<ParsedText, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.is_empty() {
        return Ok(ParsedText::default());
    }
    let first = text.split('\n').next().unwrap_or_default();
    let header_lines = percent::header_length(text);
    let mut parser = Parser {
        crlf: first.ends_with('\r'),
        ..Parser::default()
    };
    let mut lines = text.split('\n').enumerate().skip(header_lines).peekable();
    while let Some((index, line)) = lines.next() {
        let found = marker::classify(line);
        if parser.blocks.is_empty() && !matches!(found, ViewLine::Marker(_)) {
            return Err(no_first_marker(text, index + 1, line));
        }
        parser.add_line(index + 1, line, found, lines.peek().is_none());
    }
    if parser.blocks.is_empty() {
        return Err(no_first_marker(text, 1, first));
    }
    parser.finish(header_lines)
}

/// The blocks so far.
#[derive(Default)]
struct Parser {
    blocks: Vec<Block>,
    crlf: bool,
    /// Line of the fence that is open.
    fence: Option<usize>,
    /// Whether a marker states no kind, as only markers of the percent format do.
    has_bare_marker: bool,
    dropped: Vec<MarkerText>,
}

impl Parser {
    fn add_line(&mut self, number: usize, line: &str, found: ViewLine<'_>, is_last: bool) {
        if self.fence.is_some() {
            if found == ViewLine::FenceClose {
                self.fence = None;
            }
            return;
        }
        match found {
            ViewLine::Marker(marker) => self.begin_block(number, &marker),
            ViewLine::FenceOpen => self.fence = Some(number),
            found => self.add_source_line(number, line, &found, is_last),
        }
    }

    fn begin_block(&mut self, number: usize, marker: &Marker<'_>) {
        self.has_bare_marker |= marker.is_bare;
        if !marker.text.is_empty() {
            self.dropped.push(MarkerText {
                line: number,
                text: marker.text.to_owned(),
            });
        }
        self.blocks.push(Block::new(marker, number));
    }

    /// A newline precedes each line; `finish` removes the first one.
    fn add_source_line(&mut self, number: usize, line: &str, found: &ViewLine<'_>, is_last: bool) {
        let Some(block) = self.blocks.last_mut() else {
            return;
        };
        // No line break follows the last line: a carriage return there belongs to the source.
        let line = if self.crlf && !is_last {
            line.strip_suffix('\r').unwrap_or(line)
        } else {
            line
        };
        block.source.push('\n');
        if *found == ViewLine::Escaped {
            marker::append_unescaped_line(line, &mut block.source);
        } else {
            block.source.push_str(line);
        }
        if *found == ViewLine::NearMarker {
            block.near_markers.push((number, line.to_owned()));
        }
    }

    fn finish(mut self, header_lines: usize) -> Result<ParsedText, EditError> {
        if let Some(line) = self.fence {
            return Err(EditError::OpenFence { line });
        }
        for block in &mut self.blocks {
            if !block.source.is_empty() {
                block.source.remove(0);
            }
        }
        let is_percent = self.has_bare_marker || header_lines > 0;
        let mut notices = Vec::new();
        notices.extend(percent::convert(&mut self.blocks, header_lines, is_percent));
        if !self.dropped.is_empty() {
            notices.push(Notice::MarkerTextDropped {
                markers: self.dropped,
            });
        }
        Ok(ParsedText {
            blocks: self.blocks,
            crlf: self.crlf,
            notices,
        })
    }
}

fn no_first_marker(text: &str, line: usize, found: &str) -> EditError {
    const SHOWN_LIMIT: usize = 60;
    let is_marker = |line: &str| matches!(marker::classify(line), ViewLine::Marker(_));
    let content = if text.trim_start().starts_with('{') && text.contains("\"cells\"") {
        UnmarkedText::NotebookJson
    } else if text.split('\n').any(is_marker) {
        UnmarkedText::BeforeMarker
    } else {
        UnmarkedText::NoMarker
    };
    EditError::NoFirstMarker {
        line,
        found: found.chars().take(SHOWN_LIMIT).collect(),
        content,
    }
}
