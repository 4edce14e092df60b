//! What happens while a notebook runs, a JSON document on a line of its own for each thing.

use cellwright_output::Stream;
use serde_json::{Value, json};

use super::mark::Mark;
use super::viewer::Looks;
use crate::failure::Failure;
use crate::feed::Chunk;
use crate::live::Trouble;
use crate::screen::{Outlet, Screen};

pub(super) struct Events<'s> {
    screen: &'s Screen,
    /// The cell that says what comes.
    cell: Option<usize>,
    /// The beginning of a character, of each stream.
    halves: [Vec<u8>; 2],
    trouble: Option<Trouble>,
}

impl<'s> Events<'s> {
    pub(super) fn new(screen: &'s Screen) -> Self {
        Self {
            screen,
            cell: None,
            halves: [Vec::new(), Vec::new()],
            trouble: None,
        }
    }

    fn print(&mut self, event: &Value) {
        if self.trouble.is_none() {
            let printed = self.screen.stream(Outlet::Stdout, &format!("{event}\n"));
            self.trouble = Trouble::of(printed);
        }
    }

    fn text(&mut self, stream: Stream, bytes: &[u8]) {
        let half = &mut self.halves[usize::from(stream == Stream::Stderr)];
        half.extend_from_slice(bytes);
        // What may be the beginning of a character waits for the rest of it.
        let whole = match std::str::from_utf8(half) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => half.len(),
        };
        let rest = half.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(half, rest)).into_owned();
        self.told("text", stream, &text);
    }

    fn told(&mut self, event: &str, stream: Stream, text: &str) {
        if !text.is_empty() {
            let cell = self.cell;
            let stream = stream.name();
            self.print(&json!({"event": event, "index": cell, "stream": stream, "text": text}));
        }
    }

    fn flush(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let half = std::mem::take(&mut self.halves[usize::from(stream == Stream::Stderr)]);
            let text = String::from_utf8_lossy(&half).into_owned();
            self.told("text", stream, &text);
        }
    }
}

/// Tells how everything ended, as the last event.
pub(crate) fn done(screen: &Screen, answer: Value) -> Result<(), Failure> {
    let mut event = json!({"event": "done"});
    if let (Some(event), Value::Object(answer)) = (event.as_object_mut(), answer) {
        event.extend(answer);
    }
    screen.bytes(format!("{event}\n").as_bytes())
}

/// Tells why nothing came of it, as the last event. It is also said to people, so nobody has to be told if
/// this cannot be written.
pub(crate) fn refused(screen: &Screen, failure: &Failure) {
    if !failure.is_silent() {
        let mut answer = failure.document();
        answer["status"] = json!("refused");
        done(screen, answer).ok();
    }
}

impl Looks for Events<'_> {
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Cell => {}
            Chunk::Text(stream, bytes) => self.text(stream, &bytes),
            Chunk::Piece(stream, text) => self.told("display", stream, &text),
            Chunk::Lost(bytes) => {
                let cell = self.cell;
                self.print(&json!({"event": "lost", "index": cell, "bytes": bytes}));
            }
            Chunk::Mark(mark) => {
                self.flush();
                if let Mark::Begin { cell } = mark.as_ref() {
                    self.cell = Some(cell.index);
                }
                self.print(&json!(mark));
            }
        }
    }

    fn finish(&mut self) {
        self.flush();
    }

    fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }
}
