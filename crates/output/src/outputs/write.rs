//! Writes complete outputs in nbformat 4. Data in files is read in chunks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::display::DisplayOutput;
use super::json_writer::{JsonRelayout, JsonWriter};
use super::stream::StreamOutput;
use super::values::is_line_list;
use super::{Output, Outputs, StreamLog, lines};
use crate::bundle::Data;
use crate::clean::Redraw;
use crate::event::Traceback;
use crate::files;
use crate::json_style::JsonStyle;
use crate::size::ByteSize;
use crate::stored_value::{Encoding, StoredValue};
use crate::utf8::Utf8Decoder;

impl Outputs {
    /// Writes the outputs as one JSON array in nbformat 4, with its brackets at `depth` levels of
    /// indentation. Outputs are complete and unchanged, read in chunks from memory and files; except that
    /// redrawn lines are replaced by their final state. Values that could not be stored become placeholders.
    pub fn write(&self, out: &mut dyn Write, style: &JsonStyle, depth: usize) -> io::Result<()> {
        let mut writer = JsonWriter::new(out, style, depth);
        writer.open(b'[');
        let mut first = true;
        let list = self.list.iter().enumerate();
        for (_, output) in list.filter(|(at, _)| !self.show_only.contains(*at)) {
            writer.start_item(first);
            first = false;
            writer.open(b'{');
            match output {
                Output::Stream(output) => write_stream(output, self.log.as_ref(), &mut writer)?,
                Output::Display(display) => write_display(display, &mut writer)?,
                Output::Error(traceback) => write_error(traceback, &mut writer)?,
            }
            writer.close(b'}', false)?;
        }
        writer.close(b']', first)?;
        writer.finish()
    }
}

fn write_error(traceback: &Traceback, writer: &mut JsonWriter<'_>) -> io::Result<()> {
    writer.start_member(true, "ename")?;
    writer.write_string(&traceback.name)?;
    writer.start_member(false, "evalue")?;
    writer.write_string(&traceback.value)?;
    writer.start_member(false, "output_type")?;
    writer.write_string("error")?;
    writer.start_member(false, "traceback")?;
    writer.open(b'[');
    for (at, line) in traceback.lines.iter().enumerate() {
        writer.start_item(at == 0);
        writer.write_string(line)?;
    }
    writer.close(b']', traceback.lines.is_empty())
}

fn write_display(display: &DisplayOutput, writer: &mut JsonWriter<'_>) -> io::Result<()> {
    let placeholder = display.placeholder(|payload| payload.verbatim().is_some());
    let mut parts: BTreeMap<&str, Option<&Data>> = BTreeMap::new();
    for (mime, payload) in &display.parts {
        if let Some(data) = payload.verbatim() {
            parts.insert(mime, Some(data));
        }
    }
    if placeholder.is_some() {
        parts.insert("text/plain", None);
    }
    writer.start_member(true, "data")?;
    writer.open(b'{');
    for (at, (mime, data)) in parts.iter().enumerate() {
        writer.start_member(at == 0, mime)?;
        match data {
            Some(data) => write_representation(mime, data, writer)?,
            None => write_line_list(placeholder.as_deref().unwrap_or_default(), writer)?,
        }
    }
    writer.close(b'}', parts.is_empty())?;
    if let Some(count) = display.result {
        writer.start_member(false, "execution_count")?;
        writer.write_raw(count.to_string().as_bytes())?;
    }
    writer.start_member(false, "metadata")?;
    match display.metadata.verbatim() {
        Some(metadata) => write_representation("", metadata, writer)?,
        None => writer.write_raw(b"{}")?,
    }
    writer.start_member(false, "output_type")?;
    writer.write_string(match display.result {
        Some(_) => "execute_result",
        None => "display_data",
    })
}

fn write_representation(mime: &str, data: &Data, writer: &mut JsonWriter<'_>) -> io::Result<()> {
    match data {
        Data::Text(text) if is_line_list(mime) => write_line_list(text, writer),
        Data::Text(text) => writer.write_string(text),
        Data::Json(value) => writer.write_value(value),
        Data::Bytes(bytes) => {
            writer.quote();
            writer.write_base64(bytes)?;
            writer.quote();
            Ok(())
        }
        Data::Stored(stored) => write_stored(mime, stored, writer),
    }
}

fn write_stored(mime: &str, stored: &StoredValue, writer: &mut JsonWriter<'_>) -> io::Result<()> {
    match stored.encoding() {
        Encoding::Text if is_line_list(mime) => {
            let mut lines = LineListWriter::start(writer);
            stored.read_text(|text| lines.push(text))?;
            lines.finish()
        }
        Encoding::Text => {
            writer.quote();
            stored.read_text(|text| writer.write_escaped(text))?;
            writer.quote();
            Ok(())
        }
        Encoding::Bytes => {
            writer.quote();
            stored.read(|bytes| writer.write_base64(bytes))?;
            writer.quote();
            Ok(())
        }
        Encoding::Json => {
            let mut relayout = JsonRelayout::default();
            stored.read_text(|text| relayout.push(text, writer))
        }
    }
}

fn write_line_list(text: &str, writer: &mut JsonWriter<'_>) -> io::Result<()> {
    let mut lines = LineListWriter::start(writer);
    lines.push(text)?;
    lines.finish()
}

fn write_stream(
    output: &StreamOutput,
    log: Option<&StreamLog>,
    writer: &mut JsonWriter<'_>,
) -> io::Result<()> {
    writer.start_member(true, "name")?;
    writer.write_string(output.stream.name())?;
    writer.start_member(false, "output_type")?;
    writer.write_string("stream")?;
    writer.start_member(false, "text")?;
    let mut lines = LineListWriter::start(writer);
    let mut redraw = Redraw::new();
    let mut decoder = Utf8Decoder::default();
    let mut result = Ok(());
    for_each_chunk(output, log, &mut |bytes| {
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

/// Calls `push` with the bytes of a stream output. Bytes not in memory come from the log, as far as it was
/// written.
fn for_each_chunk(
    output: &StreamOutput,
    log: Option<&StreamLog>,
    push: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const READ_SIZE: usize = 64 * 1024;
    push(&output.head)?;
    let mut position = output.offset + (output.head.len() - output.carried) as u64;
    let end = output.offset + output.length - output.carried as u64;
    let tail_start = end - output.tail.len() as u64;
    if let (Some(log), true) = (log, output.elided_bytes() > 0) {
        let stop = end.min(log.kept.max(position));
        let mut buffer = vec![0; READ_SIZE];
        while position < stop {
            let size =
                usize::try_from(stop - position).map_or(READ_SIZE, |left| left.min(READ_SIZE));
            match files::read_at(&log.file, &mut buffer[..size], position) {
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
        let note = format!("\n[… {} lost …]\n", ByteSize(tail_start - position));
        push(note.as_bytes())?;
    }
    let skip = usize::try_from(position.saturating_sub(tail_start)).unwrap_or(usize::MAX);
    push(&output.tail[skip.min(output.tail.len())..])
}

/// Writes text that arrives in chunks as a list of lines. Each line is one string, whatever its length.
struct LineListWriter<'p, 'a> {
    writer: &'p mut JsonWriter<'a>,
    any: bool,
    /// Whether a line has started and not ended.
    line_started: bool,
    /// The line ends with `\r`; `\n` may follow.
    pending_return: bool,
}

impl<'p, 'a> LineListWriter<'p, 'a> {
    fn start(writer: &'p mut JsonWriter<'a>) -> Self {
        writer.open(b'[');
        Self {
            writer,
            any: false,
            line_started: false,
            pending_return: false,
        }
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        if self.pending_return && !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('\n') {
                self.writer.write_escaped("\n")?;
                rest = after;
            }
            self.end_line();
        }
        while !rest.is_empty() {
            if !self.line_started {
                self.writer.start_item(!self.any);
                self.writer.quote();
                self.any = true;
                self.line_started = true;
            }
            rest = self.writer.write_plain_prefix(rest)?;
            let mut characters = rest.chars();
            let Some(character) = characters.next() else {
                break;
            };
            self.writer.write_char(character);
            rest = characters.as_str();
            if character == '\r' && rest.is_empty() {
                self.pending_return = true;
            } else if character == '\r' && rest.starts_with('\n') {
                // The newline belongs to this line.
            } else if lines::is_line_end(character) {
                self.end_line();
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        self.writer.quote();
        self.line_started = false;
        self.pending_return = false;
    }

    fn finish(mut self) -> io::Result<()> {
        if self.line_started {
            self.end_line();
        }
        self.writer.close(b']', !self.any)
    }
}
