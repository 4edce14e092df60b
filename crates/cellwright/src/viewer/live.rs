//! Writes the output of a running cell. A terminal receives everything as it arrives. A pipe receives the head as it
//! arrives and the tail at the end, so that its reader is not flooded. With `--json` nothing is written.

use cellwright_output::{ByteSize, Limits, LiveTarget, LiveText, Stream, clean};

use crate::console::{Console, StdStream};

/// How much of the output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputExtent {
    /// Nothing now: the answer will hold it.
    Nothing,
    /// The beginning and the end.
    Bounded,
    /// Everything.
    Full,
}

/// Shows events as they come.
pub(crate) struct LiveWriter<'a> {
    screen: &'a Console,
    extent: OutputExtent,
    /// How much goes through at once where output is bounded, and how much of the end follows.
    limits: Limits,
    streams: [StreamState; 2],
    /// Why what goes to stdout does not arrive.
    error: Option<StdoutError>,
}

/// Why what goes to stdout does not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdoutError {
    /// Whoever read it has gone.
    Closed,
    /// It could not be written.
    Unwritable(String),
}

impl StdoutError {
    /// What an attempt to write came to.
    pub(crate) fn from_result(written: std::io::Result<()>) -> Option<Self> {
        let error = written.err()?;
        Some(match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Unwritable(error.to_string()),
        })
    }
}

/// One of our two streams.
struct StreamState {
    outlet: StdStream,
    live: LiveText,
    /// Bytes that went through.
    shown: usize,
    /// What comes after them.
    rest: Option<Tail>,
    at_line_start: bool,
}

impl<'a> LiveWriter<'a> {
    /// A face for one cell.
    pub(crate) fn new(screen: &'a Console, extent: OutputExtent, limits: &Limits) -> Self {
        let lane = |outlet: StdStream| StreamState {
            outlet,
            live: LiveText::new(screen.target(outlet)),
            shown: 0,
            rest: None,
            at_line_start: true,
        };
        Self {
            screen,
            extent,
            limits: limits.clone(),
            streams: [lane(StdStream::Stdout), lane(StdStream::Stderr)],
            error: None,
        }
    }

    /// Why what the cell says does not arrive.
    pub(crate) fn error(&self) -> Option<&StdoutError> {
        self.error.as_ref()
    }

    /// Shows what was held back.
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

    /// Whether what comes next begins a line.
    pub(crate) fn at_line_start(&self) -> bool {
        self.streams.iter().all(|lane| lane.at_line_start)
    }

    /// Ends the line that what was said last leaves open.
    pub(crate) fn end_line(&mut self) {
        for index in 0..2 {
            if !self.streams[index].at_line_start {
                self.print(index, "\n");
                self.streams[index].at_line_start = true;
            }
        }
    }

    /// Shows text as it came.
    pub(crate) fn write_text(&mut self, stream: Stream, bytes: &[u8]) {
        let index = stream_index(stream);
        let mut text = String::new();
        self.streams[index].live.push(bytes, &mut text);
        self.write_bounded(index, &text);
    }

    /// Shows a whole piece of text, which begins and ends a line.
    pub(crate) fn write_display(&mut self, stream: Stream, text: &str) {
        let index = stream_index(stream);
        let clean = match self.screen.target(self.streams[index].outlet) {
            LiveTarget::ColourTerminal => clean::coloured(text),
            _ => clean::plain(text),
        };
        if clean.is_empty() {
            return;
        }
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
        let extent = self.extent;
        let head = self.limits.head_bytes;
        let lane = &mut self.streams[index];
        lane.at_line_start = text.ends_with('\n');
        if let (Some(rest), OutputExtent::Bounded) = (&mut lane.rest, extent) {
            rest.push(text);
            return;
        }
        let mut now = text;
        if extent == OutputExtent::Bounded && lane.shown + text.len() > head {
            let room = head.saturating_sub(lane.shown);
            let cut = text.floor_char_boundary(room.min(text.len()));
            now = &text[..cut];
            let mut rest = Tail {
                text: String::new(),
                most: self.limits.inline_bytes.saturating_sub(head),
                line_open: !now.is_empty() && !now.ends_with('\n'),
                elided_bytes: 0,
                elided_lines: 0,
            };
            rest.push(&text[cut..]);
            lane.rest = Some(rest);
        }
        lane.shown += now.len();
        self.print(index, now);
    }

    fn print(&mut self, index: usize, text: &str) {
        if text.is_empty() {
            return;
        }
        let outlet = self.streams[index].outlet;
        // What goes to stderr is for people; when it cannot be told, nobody is left who misses it.
        if outlet == StdStream::Stderr || self.error.is_none() {
            let written = self.screen.write(outlet, text);
            if outlet == StdStream::Stdout {
                self.error = StdoutError::from_result(written);
            }
        }
    }
}

/// Which of our two streams it goes to.
fn stream_index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

/// The end of a text, and how much is missing before it.
struct Tail {
    text: String,
    /// Bytes of it that are shown.
    most: usize,
    /// Whether what went through before it ends within a line.
    line_open: bool,
    elided_bytes: u64,
    elided_lines: usize,
}

impl Tail {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Thrown away in large pieces, so that a long output is not moved again and again.
        if self.text.len() > self.most.max(4096).saturating_mul(8) {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let excess = self.text.len().saturating_sub(self.most);
        let mut cut = self.text.ceil_char_boundary(excess);
        // At the beginning of a line, unless that is far off.
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
        if self.text.len() > self.most {
            self.shorten();
        }
        if self.elided_bytes == 0 {
            return self.text;
        }
        let before = if self.line_open { "\n" } else { "" };
        let lines = self.elided_lines;
        let bytes = ByteSize(self.elided_bytes);
        format!(
            "{before}[… {lines} lines ({bytes}) elided …]\n{}",
            self.text
        )
    }
}
