//! One pass over a notebook's bytes: where its cells are and what every operation needs of them.

mod name;
mod top;

use std::io::{self, Read};

use crate::cell::{CellKind, CellSpan};
use crate::document::Notebook;
use crate::error::{FormatError, Position};
use crate::json::ahead::Ahead;
use crate::json::input::{Input, WINDOW};
use crate::json::lexer::{LexError, Lexer};
use crate::json::text;
use crate::revision::Revision;
use crate::span::Span;

use self::name::Name;
use self::top::{Number, Top, shorten};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What the scan learns of the document besides its cells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    /// The top-level object.
    pub(crate) top: Span,
    /// The value of `cells`, brackets included.
    pub(crate) cells: Span,
    /// The value of `metadata`; empty if there is none.
    pub(crate) metadata: Span,
    pub(crate) minor: u32,
}

/// What a visitor gets to see of a cell while its bytes are at hand.
pub(crate) struct Found<'a> {
    /// The value of `source` (`None`: the cell has none).
    pub(crate) source: Option<&'a [u8]>,
    /// The value of `id`, a string token.
    pub(crate) id: Option<&'a [u8]>,
    /// Hash of the whole cell.
    pub(crate) hash: Revision,
    /// Where the rest is, and what `metadata` says, if that was wanted.
    pub(crate) rest: Rest<'a>,
}

/// The members of a cell that only those care about who run it. Spans are empty for what is missing.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rest<'a> {
    pub(crate) outputs: Span,
    pub(crate) count: Span,
    pub(crate) metadata: Span,
    /// The value of `metadata`.
    pub(crate) said: &'a [u8],
    /// Behind the last member.
    pub(crate) end: usize,
}

/// Takes the cells as they go by.
pub(crate) trait Visitor {
    /// A `cells` array begins. Of two such members the later counts, so forget the earlier.
    fn begin(&mut self);
    /// A cell has ended.
    fn cell(&mut self, span: &CellSpan, found: &Found<'_>);
    /// What the document says about itself, if that was wanted.
    fn metadata(&mut self, _value: &[u8]) {}
}

/// Why a scan stopped: trouble with the device, or with the content.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    Format(FormatError),
}

/// Files from this size on are read by a thread of their own; for smaller ones it would not pay.
const WORTH_A_THREAD: usize = 4 * 1024 * 1024;

/// Scans what `reader` gives without keeping it. Positions in errors are not exact.
pub(crate) fn window(
    reader: &mut (dyn Read + Send),
    expected: usize,
    visitor: &mut dyn Visitor,
    contents: Contents,
) -> Result<(Frame, Revision), ScanError> {
    let mut scan = |input: Input<'_>| {
        let mut scan = Scan::new(input, visitor, contents);
        let frame = scan.document().map_err(|stop| scan.report(stop))?;
        Ok((frame, scan.lexer.input.revision()))
    };
    if expected < WORTH_A_THREAD {
        return scan(Input::window(reader));
    }
    std::thread::scope(|scope| scan(Input::ahead(Ahead::start(scope, reader, WINDOW))))
}

/// Reads all of `reader` and scans it on the way.
pub(crate) fn whole(reader: &mut dyn Read, expected: usize) -> Result<Notebook, ScanError> {
    let mut spans = Spans(Vec::new());
    let mut scan = Scan::new(Input::whole(reader, expected), &mut spans, Contents::Unseen);
    let frame = scan.document().map_err(|stop| scan.report(stop))?;
    let input = scan.lexer.input;
    let revision = input.revision();
    Ok(Notebook::assemble(
        input.into_bytes(),
        frame,
        spans.0,
        revision,
    ))
}

/// Scans bytes that are in memory.
pub(crate) fn slice(bytes: &[u8]) -> Result<(Frame, Vec<CellSpan>), FormatError> {
    let mut spans = Spans(Vec::new());
    let mut scan = Scan::new(Input::slice(bytes), &mut spans, Contents::Unseen);
    match scan.document().map_err(|stop| scan.report(stop)) {
        Ok(frame) => Ok((frame, spans.0)),
        Err(ScanError::Format(error)) => Err(error),
        Err(ScanError::Io(_)) => Err(FormatError::Empty),
    }
}

struct Spans(Vec<CellSpan>);

impl Visitor for Spans {
    fn begin(&mut self) {
        self.0.clear();
    }

    fn cell(&mut self, span: &CellSpan, _: &Found<'_>) {
        self.0.push(*span);
    }
}

/// What the visitor wants to see of a cell, besides where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Source, id and hash.
    Shown,
    /// Those, and what is said about it.
    Surveyed,
    /// Nothing.
    Unseen,
}

/// A reason to stop, before offsets are turned into positions.
enum Stop {
    Lex(Box<LexError>),
    Format(FormatError),
    NotUtf8,
    CellsNotAnArray { offset: usize },
    BadCell(BadCell),
}

impl Stop {
    /// Where it happened, if it happened somewhere.
    fn offset(&self) -> Option<usize> {
        match self {
            Self::Lex(error) => match **error {
                LexError::Syntax { offset, .. } | LexError::Ended { offset } => Some(offset),
                LexError::Io(_) => Some(0),
            },
            Self::CellsNotAnArray { offset } => Some(*offset),
            Self::BadCell(bad) => Some(bad.offset),
            Self::NotUtf8 | Self::Format(_) => None,
        }
    }
}

impl From<Box<LexError>> for Stop {
    fn from(error: Box<LexError>) -> Self {
        Self::Lex(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Lex(error.into())
    }
}

struct BadCell {
    index: usize,
    what: String,
    offset: usize,
}

struct Scan<'r, 'v> {
    lexer: Lexer<'r>,
    visitor: &'v mut dyn Visitor,
    contents: Contents,
    source: Vec<u8>,
    id: Vec<u8>,
    said: Vec<u8>,
    /// The first bad cell. Told at the end only: what `nbformat` says may explain it better.
    bad: Option<BadCell>,
}

impl<'r, 'v> Scan<'r, 'v> {
    fn new(input: Input<'r>, visitor: &'v mut dyn Visitor, contents: Contents) -> Self {
        Self {
            lexer: Lexer::new(input),
            visitor,
            contents,
            source: Vec::new(),
            id: Vec::new(),
            said: Vec::new(),
            bad: None,
        }
    }

    fn document(&mut self) -> Result<Frame, Stop> {
        if self.lexer.input.look(BOM.len())? == BOM {
            self.lexer.input.pos += BOM.len();
        }
        let Some(first) = self.lexer.peek_token()? else {
            return Err(Stop::Format(FormatError::Empty));
        };
        let start = self.lexer.offset();
        let top = if first == b'{' {
            self.top()?
        } else {
            self.lexer.skip_value()?;
            Top::default()
        };
        let end = self.lexer.offset();
        if self.lexer.peek_token()?.is_some() {
            return Err(self
                .lexer
                .syntax("something follows the end of the document")
                .into());
        }
        if self.lexer.input.not_utf8().is_some() {
            return Err(Stop::NotUtf8);
        }
        if self.lexer.offset() > u32::MAX as usize {
            return Err(Stop::Format(FormatError::TooLarge));
        }
        if first != b'{' {
            return Err(Stop::Format(FormatError::NotAnObject));
        }
        let minor = top.check()?;
        if let Some(bad) = self.bad.take() {
            return Err(Stop::BadCell(bad));
        }
        Ok(Frame {
            top: Span::new(start, end),
            cells: top.cells.unwrap_or_default(),
            metadata: top.metadata,
            minor,
        })
    }

    fn top(&mut self) -> Result<Top, Stop> {
        let mut top = Top::default();
        self.each_member(|scan, name| {
            match name {
                "cells" => {
                    let offset = scan.lexer.offset();
                    top.cells = scan.cells()?;
                    top.bad_cells = top.cells.is_none().then_some(offset);
                }
                "metadata" => {
                    top.metadata = scan.saying()?;
                    scan.visitor.metadata(&scan.said);
                }
                "nbformat" => top.major = Some(scan.number()?),
                "nbformat_minor" => top.minor = Some(scan.number()?),
                _ => {
                    top.worksheets |= name == "worksheets";
                    scan.lexer.skip_value()?;
                }
            }
            Ok(())
        })?;
        Ok(top)
    }

    /// Takes an object apart; `visit` must take the value of each member.
    fn each_member(
        &mut self,
        mut visit: impl FnMut(&mut Self, &str) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.lexer.expect(b'{', "expected `{`")?;
        if self.lexer.take(b'}')? {
            return Ok(());
        }
        loop {
            if self.lexer.need_token()? != b'"' {
                return Err(self
                    .lexer
                    .syntax("expected a member name in double quotes")
                    .into());
            }
            self.lexer.input.mark();
            self.lexer.skip_string()?;
            let name = Name::of(self.lexer.input.kept_since());
            self.lexer.expect(b':', "expected `:`")?;
            self.lexer.need_token()?;
            visit(self, name.as_str())?;
            if !self.lexer.another(b'}')? {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<Number, Stop> {
        self.lexer.input.mark();
        self.lexer.skip_value()?;
        let raw = String::from_utf8_lossy(self.lexer.input.kept_since()).into_owned();
        // `4.0` counts as a whole number, in the JSON schema of notebooks too.
        let value: Option<f64> = raw.parse().ok();
        Ok(match value {
            Some(value) if (0.0..1e6).contains(&value) && value.fract() == 0.0 =>
            {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                Number::Whole(value as u32)
            }
            _ => Number::Other(raw),
        })
    }

    /// `None` if it is no array.
    fn cells(&mut self) -> Result<Option<Span>, Stop> {
        let start = self.lexer.offset();
        if self.lexer.need_token()? != b'[' {
            self.lexer.skip_value()?;
            return Ok(None);
        }
        self.visitor.begin();
        self.bad = None;
        self.lexer.input.pos += 1;
        if !self.lexer.take(b']')? {
            let mut index = 0;
            loop {
                self.cell(index)?;
                index += 1;
                if !self.lexer.another(b']')? {
                    break;
                }
            }
        }
        Ok(Some(Span::new(start, self.lexer.offset())))
    }

    fn cell(&mut self, index: usize) -> Result<(), Stop> {
        let first = self.lexer.need_token()?;
        let start = self.lexer.offset();
        if first != b'{' {
            self.lexer.skip_value()?;
            self.complain(index, "a cell must be an object", start);
            return Ok(());
        }
        let shown = self.contents != Contents::Unseen;
        if shown {
            self.lexer.input.begin_piece();
        }
        let mut parts = Parts::default();
        self.said.clear();
        self.each_member(|scan, name| {
            match name {
                "cell_type" => scan.cell_type(&mut parts)?,
                "source" => scan.source(&mut parts)?,
                "id" => scan.id(&mut parts)?,
                "outputs" => parts.outputs = scan.skipped()?,
                "execution_count" => parts.count = scan.skipped()?,
                "metadata" => parts.metadata = scan.saying()?,
                _ => scan.lexer.skip_value()?,
            }
            parts.end = scan.lexer.offset();
            Ok(())
        })?;
        let hash = if shown {
            self.lexer.input.end_piece()
        } else {
            Revision::of(&[])
        };
        if let Some((what, offset)) = parts.bad_kind.or(parts.bad_source) {
            self.complain(index, &what, offset);
            return Ok(());
        }
        let Some(kind) = parts.kind else {
            self.complain(index, "the cell has no `cell_type`", start);
            return Ok(());
        };
        let span = CellSpan {
            span: Span::new(start, self.lexer.offset()),
            source: parts.source,
            id: parts.id,
            kind,
        };
        self.visitor.cell(
            &span,
            &Found {
                source: (shown && !parts.source.is_empty()).then_some(&self.source[..]),
                id: (shown && !parts.id.is_empty()).then_some(&self.id[..]),
                hash,
                rest: Rest {
                    outputs: parts.outputs,
                    count: parts.count,
                    metadata: parts.metadata,
                    said: &self.said,
                    end: parts.end,
                },
            },
        );
        Ok(())
    }

    /// Where the value is that comes next.
    fn skipped(&mut self) -> Result<Span, Stop> {
        let start = self.lexer.offset();
        self.lexer.skip_value()?;
        Ok(Span::new(start, self.lexer.offset()))
    }

    /// The same for a value that some visitors want to see.
    fn saying(&mut self) -> Result<Span, Stop> {
        if self.contents != Contents::Surveyed {
            return self.skipped();
        }
        let start = self.lexer.offset();
        self.lexer.input.mark();
        self.lexer.skip_value()?;
        self.said.clear();
        self.said.extend_from_slice(self.lexer.input.kept_since());
        Ok(Span::new(start, self.lexer.offset()))
    }

    fn cell_type(&mut self, parts: &mut Parts) -> Result<(), Stop> {
        let start = self.lexer.offset();
        self.lexer.input.mark();
        self.lexer.skip_value()?;
        let raw = self.lexer.input.kept_since();
        parts.kind = if raw.first() == Some(&b'"') {
            CellKind::from_name(&text::decode(raw))
        } else {
            None
        };
        parts.bad_kind = parts.kind.is_none().then(|| {
            let shown = shorten(&String::from_utf8_lossy(raw));
            (format!("unknown `cell_type` {shown}"), start)
        });
        Ok(())
    }

    fn source(&mut self, parts: &mut Parts) -> Result<(), Stop> {
        let start = self.lexer.offset();
        if self.contents != Contents::Unseen {
            self.lexer.input.mark();
        }
        parts.bad_source = match self.lexer.need_token()? {
            b'"' => {
                self.lexer.skip_string()?;
                None
            }
            b'[' => self.source_lines()?,
            _ => {
                self.lexer.skip_value()?;
                let what = "`source` is neither a string nor an array";
                Some((what.to_owned(), start))
            }
        };
        if self.contents != Contents::Unseen {
            self.source.clear();
            self.source.extend_from_slice(self.lexer.input.kept_since());
        }
        parts.source = Span::new(start, self.lexer.offset());
        Ok(())
    }

    /// Skips an array of lines; tells of one that is no text.
    fn source_lines(&mut self) -> Result<Option<Trouble>, Stop> {
        let mut trouble = None;
        self.lexer.input.pos += 1;
        if self.lexer.take(b']')? {
            return Ok(trouble);
        }
        loop {
            if self.lexer.need_token()? == b'"' {
                self.lexer.skip_string()?;
            } else {
                let what = "a line of `source` is not a string";
                trouble.get_or_insert((what.to_owned(), self.lexer.offset()));
                self.lexer.skip_value()?;
            }
            if !self.lexer.another(b']')? {
                return Ok(trouble);
            }
        }
    }

    fn id(&mut self, parts: &mut Parts) -> Result<(), Stop> {
        let start = self.lexer.offset();
        let is_text = self.lexer.need_token()? == b'"';
        self.lexer.input.mark();
        self.lexer.skip_value()?;
        let raw = self.lexer.input.kept_since();
        parts.id = Span::default();
        // An id of another type cannot be addressed; it is left alone.
        if is_text {
            self.id.clear();
            self.id.extend_from_slice(raw);
            parts.id = Span::new(start, self.lexer.offset());
        }
        Ok(())
    }

    fn complain(&mut self, index: usize, what: &str, offset: usize) {
        self.bad.get_or_insert_with(|| BadCell {
            index,
            what: what.to_owned(),
            offset,
        });
    }

    fn report(&self, stop: Stop) -> ScanError {
        let at = |offset| Position::of(offset, self.lexer.input.loaded());
        // Bytes that are no text explain whatever came after them.
        if let Some(bad) = self.lexer.input.not_utf8()
            && stop.offset().is_none_or(|offset| bad <= offset)
        {
            return ScanError::Format(FormatError::NotUtf8 { at: at(bad) });
        }
        ScanError::Format(match stop {
            Stop::Lex(error) => match *error {
                LexError::Io(error) => return ScanError::Io(error),
                LexError::Syntax { what, offset } => FormatError::Json {
                    what,
                    at: at(offset),
                    ended: false,
                },
                LexError::Ended { offset } => FormatError::Json {
                    what: "the file ends in the middle of a value",
                    at: at(offset),
                    ended: true,
                },
            },
            Stop::CellsNotAnArray { offset } => FormatError::CellsNotAnArray { at: at(offset) },
            Stop::BadCell(bad) => FormatError::BadCell {
                index: bad.index,
                what: bad.what,
                at: at(bad.offset),
            },
            Stop::Format(error) => error,
            Stop::NotUtf8 => FormatError::NotUtf8 { at: at(0) },
        })
    }
}

#[derive(Default)]
struct Parts {
    kind: Option<CellKind>,
    source: Span,
    id: Span,
    outputs: Span,
    count: Span,
    metadata: Span,
    end: usize,
    /// What is wrong with the member that counts: of several with one name, the last.
    bad_kind: Option<Trouble>,
    bad_source: Option<Trouble>,
}

/// What is wrong, and where.
type Trouble = (String, usize);

#[cfg(test)]
mod tests;
