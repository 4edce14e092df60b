//! What a model reads: streams, displays and the error, in the order of events.
//!
//! The two streams share a page, as on a terminal, but each has a cursor of its own. When one speaks
//! while the other has not finished its line, that line is ended, so that the two never mix within
//! a line; unless it is being redrawn, as a progress bar is. Such a line waits until it is done.

mod page;

use crate::artifact::ArtifactId;
use crate::clean::{Colours, End, Screen};
use crate::event::{Stream, Traceback};
use crate::limits::Limits;
use crate::pick::Words;
use crate::size::Size;
use crate::utf8::Decoder;
use page::Page;
pub(crate) use page::Reading;

/// What of a text is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// All there was, cleaned.
    pub total: Size,
    /// What is shown, without the line that says what is missing. `total` is `shown`, `elided` and
    /// `columns` together, in bytes; lines that were made shorter count as shown.
    pub shown: Size,
    /// What is missing from the middle.
    pub elided: Size,
    /// What is missing from the ends of long lines.
    pub columns: Columns,
    /// Where all of it is, but for what was lost.
    pub artifact: Option<ArtifactId>,
    /// Bytes at the end of what came that the artifact does not hold, because it could not be
    /// written.
    pub lost: u64,
}

/// What is missing from the ends of long lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Bytes that are missing.
    pub bytes: u64,
    /// Lines that are shorter than they were.
    pub lines: u64,
}

/// The text of a cell so far.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    page: Page,
    /// Standard output, standard error.
    streams: [StreamText; 2],
    /// Who spoke last.
    last: Stream,
    limits: Limits,
}

#[derive(Clone, Debug)]
struct StreamText {
    decoder: Decoder,
    screen: Screen,
}

impl Text {
    pub(crate) fn new(limits: &Limits) -> Self {
        let stream = StreamText {
            decoder: Decoder::default(),
            screen: screen(limits),
        };
        Self {
            page: Page::new(limits),
            streams: [stream.clone(), stream],
            last: Stream::Stdout,
            limits: limits.clone(),
        }
    }

    /// Takes what was written to a stream.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if stream != self.last {
            let other = &mut self.streams[index(self.last)];
            if !other.screen.is_redrawn() {
                other.screen.settle(&mut self.page);
            }
            self.last = stream;
        }
        let StreamText { decoder, screen } = &mut self.streams[index(stream)];
        let page = &mut self.page;
        decoder.push(bytes, |text| screen.push(text, page));
    }

    /// Takes the text of something displayed, which may be changed under its id.
    pub(crate) fn display(&mut self, words: &Words<'_>, id: Option<&str>) {
        self.settle();
        self.page.place(words, &mut screen(&self.limits), id);
    }

    /// Changes the text of everything displayed under an id.
    pub(crate) fn update(&mut self, words: &Words<'_>, id: &str) {
        if !self.page.has(id) {
            return;
        }
        let mut page = Page::new(&self.limits);
        page.place(words, &mut screen(&self.limits), None);
        self.page.replace(id, &page.read());
    }

    /// Takes an exception.
    pub(crate) fn raised(&mut self, traceback: &Traceback) {
        self.display(&traceback_text(traceback).into(), None);
    }

    /// Forgets what was shown so far.
    pub(crate) fn clear(&mut self) {
        self.page.clear();
        for stream in &mut self.streams {
            stream.screen.clear();
        }
    }

    /// What there is to read, as if nothing more came.
    pub(crate) fn finish(mut self) -> Reading {
        for stream in [other(self.last), self.last] {
            let StreamText { decoder, screen } = &mut self.streams[index(stream)];
            let page = &mut self.page;
            decoder.finish(|text| screen.push(text, page));
        }
        let [first, second] = [other(self.last), self.last].map(index);
        if self.streams[second].screen.is_held() {
            self.streams[first].screen.settle(&mut self.page);
        }
        for at in [first, second] {
            self.streams[at].screen.flush(&mut self.page, End::Open);
        }
        self.page.read()
    }

    /// Ends all lines: something comes that is not text.
    fn settle(&mut self) {
        for stream in [other(self.last), self.last] {
            self.streams[index(stream)].screen.settle(&mut self.page);
        }
    }
}

/// The traceback's lines, or what is known of the exception if there are none.
pub(crate) fn traceback_text(traceback: &Traceback) -> String {
    if !traceback.lines.is_empty() {
        return traceback.lines.join("\n");
    }
    if traceback.value.is_empty() {
        return traceback.name.clone();
    }
    format!("{}: {}", traceback.name, traceback.value)
}

fn screen(limits: &Limits) -> Screen {
    Screen::new(Colours::Dropped, limits.line_characters, limits.rows)
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::Stdout => Stream::Stderr,
        Stream::Stderr => Stream::Stdout,
    }
}
