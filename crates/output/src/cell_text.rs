//! The text of a cell for models: streams, displays and tracebacks, in order of events.
//!
//! As on a terminal, both streams write to the same lines, but each has its own cursor. When one stream
//! writes while the other has an open line, that line ends first, so that the streams never mix within a
//! line. A line that is being redrawn, such as a progress bar, stays open until it is finished.

mod bounded_lines;

use crate::artifact::ArtifactId;
use crate::clean::{ColourMode, LineEnd, Screen};
use crate::display_text::DisplayText;
use crate::event::{Stream, Traceback};
use crate::limits::Limits;
use crate::size::TextSize;
use crate::utf8::Utf8Decoder;
use bounded_lines::BoundedLines;
pub(crate) use bounded_lines::BoundedText;

/// How a text is truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truncation {
    /// Size of the complete text, cleaned.
    pub total: TextSize,
    /// Size of the shown text, without the elision line. In bytes, `total` is the sum of `shown`, `elided`
    /// and `long_lines`; a shortened line counts as shown.
    pub shown: TextSize,
    /// Size of the text cut from the middle.
    pub elided: TextSize,
    /// Text cut from the ends of long lines.
    pub long_lines: TruncatedLines,
    /// The artifact with the complete output, except for `lost` bytes.
    pub artifact: Option<ArtifactId>,
    /// Bytes at the end of the raw output that could not be written to the artifact.
    pub lost: u64,
}

/// Text cut from the ends of long lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TruncatedLines {
    /// Number of bytes cut.
    pub bytes: u64,
    /// Number of shortened lines.
    pub lines: u64,
}

/// The text of a cell.
#[derive(Clone, Debug)]
pub(crate) struct CellText {
    lines: BoundedLines,
    /// Standard output, standard error.
    streams: [StreamScreen; 2],
    /// The stream that wrote last.
    last_stream: Stream,
    limits: Limits,
}

#[derive(Clone, Debug)]
struct StreamScreen {
    decoder: Utf8Decoder,
    screen: Screen,
}

impl CellText {
    pub(crate) fn new(limits: &Limits) -> Self {
        let stream = StreamScreen {
            decoder: Utf8Decoder::default(),
            screen: new_screen(limits),
        };
        Self {
            lines: BoundedLines::new(limits),
            streams: [stream.clone(), stream],
            last_stream: Stream::Stdout,
            limits: limits.clone(),
        }
    }

    /// Adds bytes of a stream.
    pub(crate) fn push_stream(&mut self, stream: Stream, bytes: &[u8]) {
        if stream != self.last_stream {
            let other = &mut self.streams[self.last_stream.index()];
            if !other.screen.is_redrawn() {
                other.screen.flush_with_newline(&mut self.lines);
            }
            self.last_stream = stream;
        }
        let StreamScreen { decoder, screen } = &mut self.streams[stream.index()];
        let lines = &mut self.lines;
        decoder.push(bytes, |text| screen.push(text, lines));
    }

    /// Adds the text of a display. An update with this id can replace it. The finished text has the position of a
    /// display with an output number.
    pub(crate) fn push_display(
        &mut self,
        text: &DisplayText<'_>,
        id: Option<&str>,
        output: Option<usize>,
    ) {
        self.end_open_lines();
        self.lines
            .push_block(text, &mut new_screen(&self.limits), id, output);
    }

    pub(crate) fn has_display(&self, id: &str) -> bool {
        self.lines.has_display(id)
    }

    /// Replaces the text of all displays with an id.
    pub(crate) fn update_display(&mut self, text: &DisplayText<'_>, id: &str) {
        if !self.has_display(id) {
            return;
        }
        let mut lines = BoundedLines::new(&self.limits);
        lines.push_block(text, &mut new_screen(&self.limits), None, None);
        self.lines.replace_display(id, &lines.bounded_text());
    }

    /// Adds a traceback.
    pub(crate) fn push_error(&mut self, traceback: &Traceback) {
        self.push_display(&traceback_text(traceback).into(), None, None);
    }

    /// Removes all text.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        for stream in &mut self.streams {
            stream.screen.clear();
        }
    }

    /// Returns the bounded text.
    pub(crate) fn finish(mut self) -> BoundedText {
        for stream in [other_stream(self.last_stream), self.last_stream] {
            let StreamScreen { decoder, screen } = &mut self.streams[stream.index()];
            let lines = &mut self.lines;
            decoder.finish(|text| screen.push(text, lines));
        }
        let [first, second] = [other_stream(self.last_stream), self.last_stream].map(Stream::index);
        if self.streams[second].screen.has_rows() {
            self.streams[first]
                .screen
                .flush_with_newline(&mut self.lines);
        }
        for at in [first, second] {
            self.streams[at]
                .screen
                .flush(&mut self.lines, LineEnd::Open);
        }
        self.lines.bounded_text()
    }

    /// Ends all open lines, because the next event is not stream text.
    fn end_open_lines(&mut self) {
        for stream in [other_stream(self.last_stream), self.last_stream] {
            self.streams[stream.index()]
                .screen
                .flush_with_newline(&mut self.lines);
        }
    }
}

/// Returns the traceback's lines, or name and message if there are none.
pub(crate) fn traceback_text(traceback: &Traceback) -> String {
    if !traceback.lines.is_empty() {
        return traceback.lines.join("\n");
    }
    if traceback.value.is_empty() {
        return traceback.name.clone();
    }
    format!("{}: {}", traceback.name, traceback.value)
}

fn new_screen(limits: &Limits) -> Screen {
    Screen::new(ColourMode::Drop, limits.line_characters, limits.cursor_rows)
}

fn other_stream(stream: Stream) -> Stream {
    match stream {
        Stream::Stdout => Stream::Stderr,
        Stream::Stderr => Stream::Stdout,
    }
}
