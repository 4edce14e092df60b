//! Writes the output of a running cell. A terminal receives everything as it arrives. A pipe receives the head as it
//! arrives and the tail at the end, so that its reader is not flooded. With `--json` nothing is written.

use cellwright_operations::table::count;
use cellwright_output::{ByteSize, Limits, LiveTarget, LiveText, Stream, clean};

use crate::console::{Console, StdStream};

/// How much of the output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputExtent {
    /// Nothing: the report contains it.
    Nothing,
    /// The head and the tail.
    Bounded,
    /// Everything.
    Full,
}

/// Writes the output of one cell as it arrives.
pub(crate) struct LiveWriter<'a> {
    console: &'a Console,
    extent: OutputExtent,
    /// Sizes of the head and the tail of bounded output.
    limits: Limits,
    streams: [StreamState; 2],
    /// Why writing to stdout failed.
    error: Option<StdoutError>,
}

/// Why writing to stdout failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdoutError {
    /// The reader closed the pipe.
    Closed,
    /// Another error.
    Unwritable(String),
}

impl StdoutError {
    /// The error of a write, if any.
    pub(crate) fn from_result(written: std::io::Result<()>) -> Option<Self> {
        let error = written.err()?;
        Some(match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Unwritable(error.to_string()),
        })
    }
}

/// The state of stdout or stderr.
struct StreamState {
    outlet: StdStream,
    live: LiveText,
    /// Bytes of the head that were written.
    shown: usize,
    /// The output after the head.
    rest: Option<Tail>,
    at_line_start: bool,
}

impl<'a> LiveWriter<'a> {
    /// A writer for one cell.
    pub(crate) fn new(console: &'a Console, extent: OutputExtent, limits: &Limits) -> Self {
        let state = |outlet: StdStream| StreamState {
            outlet,
            live: LiveText::new(console.target(outlet)).with_columns(match outlet {
                StdStream::Stdout => console.width(),
                StdStream::Stderr => console.stderr_width(),
            }),
            shown: 0,
            rest: None,
            at_line_start: true,
        };
        Self {
            console,
            extent,
            limits: limits.clone(),
            streams: [state(StdStream::Stdout), state(StdStream::Stderr)],
            error: None,
        }
    }

    /// Why writing to stdout failed.
    pub(crate) fn error(&self) -> Option<&StdoutError> {
        self.error.as_ref()
    }

    /// Writes incomplete characters and the tail.
    pub(crate) fn finish(&mut self) {
        for index in 0..2 {
            let mut last = String::new();
            self.streams[index].live.finish(&mut last);
            self.write_bounded(index, &last);
            if let Some(rest) = self.streams[index].rest.take() {
                self.print(index, &rest.into_text());
            }
        }
    }

    /// Whether the next output starts a line.
    pub(crate) fn at_line_start(&self) -> bool {
        self.streams.iter().all(|stream| stream.at_line_start)
    }

    /// Ends an incomplete line.
    pub(crate) fn end_line(&mut self) {
        for index in 0..2 {
            if !self.streams[index].at_line_start {
                self.print(index, "\n");
                self.streams[index].at_line_start = true;
            }
        }
    }

    /// Writes the text of a stream.
    pub(crate) fn write_text(&mut self, stream: Stream, bytes: &[u8]) {
        let index = stream_index(stream);
        let mut text = String::new();
        self.streams[index].live.push(bytes, &mut text);
        self.write_bounded(index, &text);
    }

    /// Writes the text of a display on lines that contain nothing else.
    pub(crate) fn write_display(&mut self, stream: Stream, text: &str) {
        let index = stream_index(stream);
        let clean = match self.console.target(self.streams[index].outlet) {
            LiveTarget::ColourTerminal => clean::coloured(text),
            _ => clean::plain(text),
        };
        if clean.is_empty() {
            return;
        }
        self.leave_rows(index);
        let before = if self.streams[index].at_line_start {
            ""
        } else {
            "\n"
        };
        let after = if clean.ends_with('\n') { "" } else { "\n" };
        self.write_bounded(index, &format!("{before}{clean}{after}"));
    }

    fn write_bounded(&mut self, index: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        self.leave_rows(1 - index);
        let extent = self.extent;
        let head = self.limits.head_bytes;
        let stream = &mut self.streams[index];
        stream.at_line_start = text.ends_with('\n');
        if let (Some(rest), OutputExtent::Bounded) = (&mut stream.rest, extent) {
            rest.push(text);
            return;
        }
        let mut now = text;
        if extent == OutputExtent::Bounded && stream.shown + text.len() > head {
            let room = head.saturating_sub(stream.shown);
            let cut = text.floor_char_boundary(room.min(text.len()));
            now = &text[..cut];
            let mut rest = Tail {
                text: String::new(),
                limit: self.limits.inline_bytes.saturating_sub(head),
                line_open: !now.is_empty() && !now.ends_with('\n'),
                elided_bytes: 0,
                elided_lines: 0,
            };
            rest.push(&text[cut..]);
            stream.rest = Some(rest);
        }
        stream.shown += now.len();
        self.print(index, now);
    }

    /// Moves below the rows that a stream redraws, because the other stream writes to the same terminal.
    fn leave_rows(&mut self, index: usize) {
        let mut end = String::new();
        self.streams[index].live.leave_rows(&mut end);
        if !end.is_empty() {
            self.print(index, &end);
            self.streams[index].at_line_start = true;
        }
    }

    fn print(&mut self, index: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        let outlet = self.streams[index].outlet;
        // Errors of stderr are ignored: there is no other place to report them.
        if outlet == StdStream::Stderr || self.error.is_none() {
            let written = self.console.write_styled(outlet, text);
            if outlet == StdStream::Stdout {
                self.error = StdoutError::from_result(written);
            }
        }
    }
}

/// The index of a stream in [`LiveWriter::streams`].
fn stream_index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

/// The tail of a text, and the size of the omitted part before it.
struct Tail {
    text: String,
    /// Maximum size of the tail in bytes.
    limit: usize,
    /// Whether the head ends within a line.
    line_open: bool,
    elided_bytes: u64,
    elided_lines: usize,
}

impl Tail {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Shortened rarely, because each time moves the tail.
        if self.text.len() > self.limit.max(4096).saturating_mul(8) {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let excess = self.text.len().saturating_sub(self.limit);
        let mut cut = self.text.ceil_char_boundary(excess);
        // The tail starts with a whole line, unless that is far away.
        let near = self
            .text
            .floor_char_boundary((cut + 4096).min(self.text.len()));
        if let Some(end) = self.text[cut..near].find('\n') {
            cut += end + 1;
        }
        self.elided_lines += self.text[..cut].matches('\n').count();
        self.elided_bytes += cut as u64;
        self.text.drain(..cut);
    }

    fn into_text(mut self) -> String {
        if self.text.len() > self.limit {
            self.shorten();
        }
        if self.elided_bytes == 0 {
            return self.text;
        }
        let before = if self.line_open { "\n" } else { "" };
        let lines = count(self.elided_lines, "line");
        let bytes = ByteSize(self.elided_bytes);
        // A pager shows this line, but not the notice on stderr.
        format!(
            "{before}[… {lines} ({bytes}) elided; `--full` shows all …]\n{}",
            self.text
        )
    }
}
