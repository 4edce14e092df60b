//! One pass over a notebook's bytes: the spans of its cells, and the members that every operation
//! needs.

mod name;
mod top;

use std::io::{self, Read};

use crate::cell::{CellKind, CellSpans};
use crate::error::{FormatError, Position};
use crate::json::input::{Input, WINDOW_SIZE};
use crate::json::lexer::{LexError, Lexer};
use crate::json::read_ahead::ReadAhead;
use crate::json::text;
use crate::revision::Revision;
use crate::span::Span;

use self::name::MemberName;
use self::top::{Number, TopLevel, shorten};

/// The byte order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The spans of the document, without its cells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentSpans {
    /// The top-level object.
    pub(crate) top: Span,
    /// The value of `cells`, brackets included.
    pub(crate) cells: Span,
    /// The value of `metadata`; empty if there is none.
    pub(crate) metadata: Span,
    pub(crate) minor: u32,
}

/// One cell, as a visitor gets it while its bytes are buffered.
pub(crate) struct ScannedCell<'a> {
    /// The value of `source`; `None` if there is none.
    pub(crate) source: Option<&'a [u8]>,
    /// The value of `id`, a string token.
    pub(crate) id: Option<&'a [u8]>,
    /// Hash of the whole cell.
    pub(crate) hash: Revision,
    /// The other members, if requested by [`ScanDetail`].
    pub(crate) extras: CellExtras<'a>,
}

/// The members of a cell that only running needs. The spans of missing members are empty.
#[derive(Clone, Copy, Default)]
pub(crate) struct CellExtras<'a> {
    pub(crate) outputs: Span,
    pub(crate) execution_count: Span,
    pub(crate) metadata_span: Span,
    /// The value of `metadata`, if requested.
    pub(crate) metadata: &'a [u8],
    /// Offset of the end of the last member.
    pub(crate) end: usize,
}

/// Receives the cells during a scan.
pub(crate) trait Visitor {
    /// A `cells` array starts. Of two such members the last counts, so discard earlier cells.
    fn begin_cells(&mut self);
    /// A cell was scanned.
    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>);
    /// The document's `metadata`, if requested.
    fn metadata(&mut self, _value: &[u8]) {}
}

/// Why a scan failed: an I/O error, or invalid content.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    Format(FormatError),
}

/// Files of at least this size are read by a second thread, in bytes. For smaller ones the thread
/// costs more than it saves.
const READ_AHEAD_MIN_SIZE: usize = 4 * 1024 * 1024;

/// Scans the content of `reader` without keeping it. Positions in errors are not exact.
pub(crate) fn scan_stream(
    reader: &mut (dyn Read + Send),
    expected: usize,
    visitor: &mut dyn Visitor,
    detail: ScanDetail,
) -> Result<(DocumentSpans, Revision), ScanError> {
    let mut scan = |input: Input<'_>| {
        let mut scan = Scan::new(input, visitor, detail);
        let spans = scan.document().map_err(|stop| scan.scan_error(stop))?;
        Ok((spans, scan.lexer.input.revision()))
    };
    if expected < READ_AHEAD_MIN_SIZE {
        return scan(Input::windowed(reader));
    }
    std::thread::scope(|scope| {
        scan(Input::from_read_ahead(ReadAhead::start(
            scope,
            reader,
            WINDOW_SIZE,
        )))
    })
}

/// A document that was read and scanned in one pass.
pub(crate) struct ScannedDocument {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: DocumentSpans,
    pub(crate) cells: Vec<CellSpans>,
    pub(crate) revision: Revision,
}

/// Reads all of `reader` and scans it in the same pass.
pub(crate) fn read_and_scan(
    reader: &mut dyn Read,
    expected: usize,
) -> Result<ScannedDocument, ScanError> {
    let mut collector = SpanCollector(Vec::new());
    let mut scan = Scan::new(
        Input::buffered(reader, expected),
        &mut collector,
        ScanDetail::SpansOnly,
    );
    let spans = scan.document().map_err(|stop| scan.scan_error(stop))?;
    let input = scan.lexer.input;
    let revision = input.revision();
    Ok(ScannedDocument {
        bytes: input.into_bytes(),
        spans,
        cells: collector.0,
        revision,
    })
}

/// Scans bytes in memory.
pub(crate) fn scan_slice(bytes: &[u8]) -> Result<(DocumentSpans, Vec<CellSpans>), FormatError> {
    let mut collector = SpanCollector(Vec::new());
    let mut scan = Scan::new(
        Input::from_slice(bytes),
        &mut collector,
        ScanDetail::SpansOnly,
    );
    match scan.document().map_err(|stop| scan.scan_error(stop)) {
        Ok(spans) => Ok((spans, collector.0)),
        Err(ScanError::Format(error)) => Err(error),
        Err(ScanError::Io(_)) => Err(FormatError::Empty),
    }
}

struct SpanCollector(Vec<CellSpans>);

impl Visitor for SpanCollector {
    fn begin_cells(&mut self) {
        self.0.clear();
    }

    fn cell(&mut self, span: &CellSpans, _: &ScannedCell<'_>) {
        self.0.push(*span);
    }
}

/// Which values a visitor gets in addition to the spans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanDetail {
    /// Source, id and hash.
    Sources,
    /// Those, and metadata.
    SourcesAndMetadata,
    /// None.
    SpansOnly,
}

/// Why a scan stopped, with offsets that are not yet positions.
enum ScanStop {
    Lex(Box<LexError>),
    Format(FormatError),
    NotUtf8,
    CellsNotAnArray { offset: usize },
    BadCell(BadCell),
}

impl ScanStop {
    /// The offset of the problem, if it has one.
    fn offset(&self) -> Option<usize> {
        match self {
            Self::Lex(error) => match **error {
                LexError::Syntax { offset, .. } | LexError::UnexpectedEnd { offset } => {
                    Some(offset)
                }
                LexError::Io(_) => Some(0),
            },
            Self::CellsNotAnArray { offset } => Some(*offset),
            Self::BadCell(bad) => Some(bad.offset),
            Self::NotUtf8 | Self::Format(_) => None,
        }
    }
}

impl From<Box<LexError>> for ScanStop {
    fn from(error: Box<LexError>) -> Self {
        Self::Lex(error)
    }
}

impl From<io::Error> for ScanStop {
    fn from(error: io::Error) -> Self {
        Self::Lex(error.into())
    }
}

struct BadCell {
    index: usize,
    problem: String,
    offset: usize,
}

struct Scan<'r, 'v> {
    lexer: Lexer<'r>,
    visitor: &'v mut dyn Visitor,
    detail: ScanDetail,
    source: Vec<u8>,
    id: Vec<u8>,
    metadata: Vec<u8>,
    /// The first invalid cell. Reported at the end, because the value of `nbformat` may be the
    /// better explanation.
    bad: Option<BadCell>,
}

impl<'r, 'v> Scan<'r, 'v> {
    fn new(input: Input<'r>, visitor: &'v mut dyn Visitor, detail: ScanDetail) -> Self {
        Self {
            lexer: Lexer::new(input),
            visitor,
            detail,
            source: Vec::new(),
            id: Vec::new(),
            metadata: Vec::new(),
            bad: None,
        }
    }

    fn document(&mut self) -> Result<DocumentSpans, ScanStop> {
        if self.lexer.input.peek_many(BOM.len())? == BOM {
            self.lexer.input.pos += BOM.len();
        }
        let Some(first) = self.lexer.peek_token()? else {
            return Err(ScanStop::Format(FormatError::Empty));
        };
        let start = self.lexer.offset();
        let top = if first == b'{' {
            self.top()?
        } else {
            self.lexer.skip_value()?;
            TopLevel::default()
        };
        let end = self.lexer.offset();
        if self.lexer.peek_token()?.is_some() {
            return Err(self
                .lexer
                .syntax_error("unexpected text after the end of the document")
                .into());
        }
        if self.lexer.input.invalid_utf8().is_some() {
            return Err(ScanStop::NotUtf8);
        }
        if self.lexer.offset() > u32::MAX as usize {
            return Err(ScanStop::Format(FormatError::TooLarge));
        }
        if first != b'{' {
            return Err(ScanStop::Format(FormatError::NotAnObject));
        }
        let minor = top.supported_minor()?;
        if let Some(bad) = self.bad.take() {
            return Err(ScanStop::BadCell(bad));
        }
        Ok(DocumentSpans {
            top: Span::new(start, end),
            cells: top.cells.unwrap_or_default(),
            metadata: top.metadata,
            minor,
        })
    }

    fn top(&mut self) -> Result<TopLevel, ScanStop> {
        let mut top = TopLevel::default();
        self.each_member(|scan, name| {
            match name {
                "cells" => {
                    let offset = scan.lexer.offset();
                    top.cells = scan.cells()?;
                    top.cells_not_array = top.cells.is_none().then_some(offset);
                }
                "metadata" => {
                    top.metadata = scan.keep_metadata()?;
                    scan.visitor.metadata(&scan.metadata);
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

    /// Iterates over an object; `visit` must consume the value of each member.
    fn each_member(
        &mut self,
        mut visit: impl FnMut(&mut Self, &str) -> Result<(), ScanStop>,
    ) -> Result<(), ScanStop> {
        self.lexer.expect(b'{', "expected `{`")?;
        if self.lexer.consume_if(b'}')? {
            return Ok(());
        }
        loop {
            if self.lexer.require_token()? != b'"' {
                return Err(self
                    .lexer
                    .syntax_error("expected a member name in double quotes")
                    .into());
            }
            self.lexer.input.start_keeping();
            self.lexer.skip_string()?;
            let name = MemberName::from_token(self.lexer.input.take_kept());
            self.lexer.expect(b':', "expected `:`")?;
            self.lexer.require_token()?;
            visit(self, name.as_str())?;
            if !self.lexer.next_item(b'}')? {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<Number, ScanStop> {
        self.lexer.input.start_keeping();
        self.lexer.skip_value()?;
        let raw = String::from_utf8_lossy(self.lexer.input.take_kept()).into_owned();
        // `4.0` counts as a whole number, as in the JSON schema of notebooks.
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

    /// The span of the `cells` array; `None` if it is not an array.
    fn cells(&mut self) -> Result<Option<Span>, ScanStop> {
        let start = self.lexer.offset();
        if self.lexer.require_token()? != b'[' {
            self.lexer.skip_value()?;
            return Ok(None);
        }
        self.visitor.begin_cells();
        self.bad = None;
        self.lexer.input.pos += 1;
        if !self.lexer.consume_if(b']')? {
            let mut index = 0;
            loop {
                self.cell(index)?;
                index += 1;
                if !self.lexer.next_item(b']')? {
                    break;
                }
            }
        }
        Ok(Some(Span::new(start, self.lexer.offset())))
    }

    fn cell(&mut self, index: usize) -> Result<(), ScanStop> {
        let first = self.lexer.require_token()?;
        let start = self.lexer.offset();
        if first != b'{' {
            self.lexer.skip_value()?;
            self.record_bad_cell(index, "a cell must be an object", start);
            return Ok(());
        }
        let shown = self.detail != ScanDetail::SpansOnly;
        if shown {
            self.lexer.input.start_hash();
        }
        let mut members = CellMembers::default();
        self.metadata.clear();
        self.each_member(|scan, name| {
            match name {
                "cell_type" => scan.cell_type(&mut members)?,
                "source" => scan.source(&mut members)?,
                "id" => scan.id(&mut members)?,
                "outputs" => members.outputs = scan.skip_value_span()?,
                "execution_count" => members.execution_count = scan.skip_value_span()?,
                "metadata" => members.metadata = scan.keep_metadata()?,
                _ => scan.lexer.skip_value()?,
            }
            members.end = scan.lexer.offset();
            Ok(())
        })?;
        let hash = if shown {
            self.lexer.input.finish_hash()
        } else {
            Revision::compute(&[])
        };
        if let Some((problem, offset)) = members.bad_kind.or(members.bad_source) {
            self.record_bad_cell(index, &problem, offset);
            return Ok(());
        }
        let Some(kind) = members.kind else {
            self.record_bad_cell(index, "the cell has no `cell_type`", start);
            return Ok(());
        };
        let span = CellSpans {
            span: Span::new(start, self.lexer.offset()),
            source: members.source,
            id: members.id,
            kind,
        };
        self.visitor.cell(
            &span,
            &ScannedCell {
                source: (shown && !members.source.is_empty()).then_some(&self.source[..]),
                id: (shown && !members.id.is_empty()).then_some(&self.id[..]),
                hash,
                extras: CellExtras {
                    outputs: members.outputs,
                    execution_count: members.execution_count,
                    metadata_span: members.metadata,
                    metadata: &self.metadata,
                    end: members.end,
                },
            },
        );
        Ok(())
    }

    /// Skips a value and returns its span.
    fn skip_value_span(&mut self) -> Result<Span, ScanStop> {
        let start = self.lexer.offset();
        self.lexer.skip_value()?;
        Ok(Span::new(start, self.lexer.offset()))
    }

    /// Skips a value and returns its span. Keeps its bytes if the visitor requests metadata.
    fn keep_metadata(&mut self) -> Result<Span, ScanStop> {
        if self.detail != ScanDetail::SourcesAndMetadata {
            return self.skip_value_span();
        }
        let start = self.lexer.offset();
        self.lexer.input.start_keeping();
        self.lexer.skip_value()?;
        self.metadata.clear();
        self.metadata
            .extend_from_slice(self.lexer.input.take_kept());
        Ok(Span::new(start, self.lexer.offset()))
    }

    fn cell_type(&mut self, members: &mut CellMembers) -> Result<(), ScanStop> {
        let start = self.lexer.offset();
        self.lexer.input.start_keeping();
        self.lexer.skip_value()?;
        let raw = self.lexer.input.take_kept();
        members.kind = if raw.first() == Some(&b'"') {
            CellKind::from_name(&text::decode(raw))
        } else {
            None
        };
        members.bad_kind = members.kind.is_none().then(|| {
            let shown = shorten(&String::from_utf8_lossy(raw));
            (format!("unknown `cell_type` {shown}"), start)
        });
        Ok(())
    }

    fn source(&mut self, members: &mut CellMembers) -> Result<(), ScanStop> {
        let start = self.lexer.offset();
        if self.detail != ScanDetail::SpansOnly {
            self.lexer.input.start_keeping();
        }
        members.bad_source = match self.lexer.require_token()? {
            b'"' => {
                self.lexer.skip_string()?;
                None
            }
            b'[' => self.source_lines()?,
            _ => {
                self.lexer.skip_value()?;
                let problem = "`source` is neither a string nor an array";
                Some((problem.to_owned(), start))
            }
        };
        if self.detail != ScanDetail::SpansOnly {
            self.source.clear();
            self.source.extend_from_slice(self.lexer.input.take_kept());
        }
        members.source = Span::new(start, self.lexer.offset());
        Ok(())
    }

    /// Skips an array of lines. Returns the first one that is not a string.
    fn source_lines(&mut self) -> Result<Option<CellProblem>, ScanStop> {
        let mut problem = None;
        self.lexer.input.pos += 1;
        if self.lexer.consume_if(b']')? {
            return Ok(problem);
        }
        loop {
            if self.lexer.require_token()? == b'"' {
                self.lexer.skip_string()?;
            } else {
                let text = "a line of `source` is not a string";
                problem.get_or_insert((text.to_owned(), self.lexer.offset()));
                self.lexer.skip_value()?;
            }
            if !self.lexer.next_item(b']')? {
                return Ok(problem);
            }
        }
    }

    fn id(&mut self, members: &mut CellMembers) -> Result<(), ScanStop> {
        let start = self.lexer.offset();
        let is_text = self.lexer.require_token()? == b'"';
        self.lexer.input.start_keeping();
        self.lexer.skip_value()?;
        let raw = self.lexer.input.take_kept();
        members.id = Span::default();
        // An id of another type cannot be addressed; it is left unchanged.
        if is_text {
            self.id.clear();
            self.id.extend_from_slice(raw);
            members.id = Span::new(start, self.lexer.offset());
        }
        Ok(())
    }

    fn record_bad_cell(&mut self, index: usize, problem: &str, offset: usize) {
        self.bad.get_or_insert_with(|| BadCell {
            index,
            problem: problem.to_owned(),
            offset,
        });
    }

    fn scan_error(&self, stop: ScanStop) -> ScanError {
        let at = |offset| Position::at_offset(offset, self.lexer.input.buffered_bytes());
        // Invalid UTF-8 explains every later problem.
        if let Some(bad) = self.lexer.input.invalid_utf8()
            && stop.offset().is_none_or(|offset| bad <= offset)
        {
            return ScanError::Format(FormatError::NotUtf8 { at: at(bad) });
        }
        ScanError::Format(match stop {
            ScanStop::Lex(error) => match *error {
                LexError::Io(error) => return ScanError::Io(error),
                LexError::Syntax { problem, offset } => FormatError::Json {
                    problem,
                    at: at(offset),
                    ended: false,
                },
                LexError::UnexpectedEnd { offset } => FormatError::Json {
                    problem: "the file ends in the middle of a value",
                    at: at(offset),
                    ended: true,
                },
            },
            ScanStop::CellsNotAnArray { offset } => FormatError::CellsNotAnArray { at: at(offset) },
            ScanStop::BadCell(bad) => FormatError::BadCell {
                index: bad.index,
                problem: bad.problem,
                at: at(bad.offset),
            },
            ScanStop::Format(error) => error,
            ScanStop::NotUtf8 => FormatError::NotUtf8 { at: at(0) },
        })
    }
}

#[derive(Default)]
struct CellMembers {
    kind: Option<CellKind>,
    source: Span,
    id: Span,
    outputs: Span,
    execution_count: Span,
    metadata: Span,
    end: usize,
    /// Problems of the member that counts: of several with one name, the last.
    bad_kind: Option<CellProblem>,
    bad_source: Option<CellProblem>,
}

/// The problem and its offset.
type CellProblem = (String, usize);

#[cfg(test)]
mod tests;
