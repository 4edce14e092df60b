//! Outputs as nbformat 4 writes them, whole: what is not in memory is read piece by piece from where it is.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::display::Shown;
use super::paper::{Paper, Relaid};
use super::stream::Printed;
use super::values::is_split;
use super::{Log, Output, Outputs, lines};
use crate::artifact::place;
use crate::bundle::Data;
use crate::clean::Redraw;
use crate::event::Traceback;
use crate::size::Bytes;
use crate::stored::{Form, Stored};
use crate::style::Style;
use crate::utf8::Decoder;

impl Outputs {
    /// Writes the outputs as one JSON array, as nbformat writes it; its brackets stand at `depth` levels
    /// of indentation. Everything is whole and as it came, read piece by piece from where it is kept; but
    /// lines that were drawn again and again are what a terminal shows of them in the end. What could not be
    /// kept is named.
    pub fn write(&self, out: &mut dyn Write, style: &Style, depth: usize) -> io::Result<()> {
        let mut paper = Paper::new(out, style, depth);
        paper.open(b'[');
        let mut first = true;
        let list = self.list.iter().enumerate();
        for (_, output) in list.filter(|(at, _)| !self.asides.has(*at)) {
            paper.item(first);
            first = false;
            paper.open(b'{');
            match output {
                Output::Stream(printed) => stream(printed, self.log.as_ref(), &mut paper)?,
                Output::Display(shown) => display(shown, &mut paper)?,
                Output::Error(traceback) => error(traceback, &mut paper)?,
            }
            paper.close(b'}', false)?;
        }
        paper.close(b']', first)?;
        paper.finish()
    }
}

fn error(traceback: &Traceback, paper: &mut Paper<'_>) -> io::Result<()> {
    paper.member(true, "ename")?;
    paper.string(&traceback.name)?;
    paper.member(false, "evalue")?;
    paper.string(&traceback.value)?;
    paper.member(false, "output_type")?;
    paper.string("error")?;
    paper.member(false, "traceback")?;
    paper.open(b'[');
    for (at, line) in traceback.lines.iter().enumerate() {
        paper.item(at == 0);
        paper.string(line)?;
    }
    paper.close(b']', traceback.lines.is_empty())
}

fn display(shown: &Shown, paper: &mut Paper<'_>) -> io::Result<()> {
    let stub = shown.stub(|payload| payload.verbatim().is_some());
    let mut parts: BTreeMap<&str, Option<&Data>> = BTreeMap::new();
    for (mime, payload) in &shown.parts {
        if let Some(data) = payload.verbatim() {
            parts.insert(mime, Some(data));
        }
    }
    if stub.is_some() {
        parts.insert("text/plain", None);
    }
    paper.member(true, "data")?;
    paper.open(b'{');
    for (at, (mime, data)) in parts.iter().enumerate() {
        paper.member(at == 0, mime)?;
        match data {
            Some(data) => representation(mime, data, paper)?,
            None => text_lines(stub.as_deref().unwrap_or_default(), paper)?,
        }
    }
    paper.close(b'}', parts.is_empty())?;
    if let Some(count) = shown.result {
        paper.member(false, "execution_count")?;
        paper.plain(count.to_string().as_bytes())?;
    }
    paper.member(false, "metadata")?;
    match shown.metadata.verbatim() {
        Some(metadata) => representation("", metadata, paper)?,
        None => paper.plain(b"{}")?,
    }
    paper.member(false, "output_type")?;
    paper.string(match shown.result {
        Some(_) => "execute_result",
        None => "display_data",
    })
}

fn representation(mime: &str, data: &Data, paper: &mut Paper<'_>) -> io::Result<()> {
    match data {
        Data::Text(text) if is_split(mime) => text_lines(text, paper),
        Data::Text(text) => paper.string(text),
        Data::Json(value) => paper.value(value),
        Data::Bytes(bytes) => {
            paper.quote();
            paper.base64(bytes)?;
            paper.quote();
            Ok(())
        }
        Data::Stored(stored) => from_file(mime, stored, paper),
    }
}

fn from_file(mime: &str, stored: &Stored, paper: &mut Paper<'_>) -> io::Result<()> {
    match stored.form() {
        Form::Text if is_split(mime) => {
            let mut lines = Lines::begin(paper);
            stored.read_text(|text| lines.push(text))?;
            lines.finish()
        }
        Form::Text => {
            paper.quote();
            stored.read_text(|text| paper.escaped(text))?;
            paper.quote();
            Ok(())
        }
        Form::Bytes => {
            paper.quote();
            stored.read(|bytes| paper.base64(bytes))?;
            paper.quote();
            Ok(())
        }
        Form::Json => {
            let mut relaid = Relaid::default();
            stored.read_text(|text| relaid.push(text, paper))
        }
    }
}

fn text_lines(text: &str, paper: &mut Paper<'_>) -> io::Result<()> {
    let mut lines = Lines::begin(paper);
    lines.push(text)?;
    lines.finish()
}

fn stream(printed: &Printed, log: Option<&Log>, paper: &mut Paper<'_>) -> io::Result<()> {
    paper.member(true, "name")?;
    paper.string(printed.stream.name())?;
    paper.member(false, "output_type")?;
    paper.string("stream")?;
    paper.member(false, "text")?;
    let mut lines = Lines::begin(paper);
    let mut redraw = Redraw::new();
    let mut decoder = Decoder::default();
    let mut result = Ok(());
    pieces(printed, log, &mut |bytes| {
        decoder.push(bytes, |text| {
            if result.is_ok() {
                result = redraw.push(text, &mut |text| lines.push(text));
            }
        });
        std::mem::replace(&mut result, Ok(()))
    })?;
    decoder.finish(|text| result = redraw.push(text, &mut |text| lines.push(text)));
    result?;
    redraw.finish(&mut |text| lines.push(text))?;
    lines.finish()
}

/// Hands on what was printed. What is not in memory is in the log, as far as that goes.
fn pieces(
    printed: &Printed,
    log: Option<&Log>,
    push: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const PART: usize = 64 * 1024;
    push(&printed.head)?;
    let mut position = printed.offset + (printed.head.len() - printed.carried) as u64;
    let end = printed.offset + printed.length - printed.carried as u64;
    let tail_start = end - printed.tail.len() as u64;
    if let (Some(log), true) = (log, printed.missing() > 0) {
        let stop = end.min(log.kept.max(position));
        let mut buffer = vec![0; PART];
        while position < stop {
            let most = usize::try_from(stop - position).map_or(PART, |left| left.min(PART));
            match place::read_at(&log.file, &mut buffer[..most], position) {
                Ok(0) => break,
                Ok(count) => {
                    push(&buffer[..count])?;
                    position += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    if position < tail_start {
        let note = format!("\n[… {} lost …]\n", Bytes(tail_start - position));
        push(note.as_bytes())?;
    }
    let skip = usize::try_from(position.saturating_sub(tail_start)).unwrap_or(usize::MAX);
    push(&printed.tail[skip.min(printed.tail.len())..])
}

/// A list of the lines of a text that comes in pieces. However long a line is, it is one string.
struct Lines<'p, 'a> {
    paper: &'p mut Paper<'a>,
    any: bool,
    /// Whether a line has begun and not ended.
    begun: bool,
    /// It ends with `\r`, and `\n` may follow.
    returned: bool,
}

impl<'p, 'a> Lines<'p, 'a> {
    fn begin(paper: &'p mut Paper<'a>) -> Self {
        paper.open(b'[');
        Self {
            paper,
            any: false,
            begun: false,
            returned: false,
        }
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        if self.returned && !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('\n') {
                self.paper.escaped("\n")?;
                rest = after;
            }
            self.end_line();
        }
        while !rest.is_empty() {
            if !self.begun {
                self.paper.item(!self.any);
                self.paper.quote();
                self.any = true;
                self.begun = true;
            }
            rest = self.paper.up_to_special(rest)?;
            let mut characters = rest.chars();
            let Some(character) = characters.next() else {
                break;
            };
            self.paper.character(character);
            rest = characters.as_str();
            if character == '\r' && rest.is_empty() {
                self.returned = true;
            } else if character == '\r' && rest.starts_with('\n') {
                // The line goes on with it.
            } else if lines::is_end(character) {
                self.end_line();
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        self.paper.quote();
        self.begun = false;
        self.returned = false;
    }

    fn finish(mut self) -> io::Result<()> {
        if self.begun {
            self.end_line();
        }
        self.paper.close(b']', !self.any)
    }
}
