//! Outputs as nbformat 4 writes them: keys sorted, text as a list of lines, bytes as base64.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::display::{Payload, Shown};
use super::lines;
use super::stream::Printed;
use super::{Log, Output, Outputs};
use crate::artifact::place;
use crate::bundle::Data;
use crate::pick;
use crate::size::Bytes;
use crate::utf8::{self, Decoder};

impl Outputs {
    /// The outputs as values. Of what was printed they hold what is in memory, and a line that says
    /// how much is missing and where it is.
    pub fn to_values(&self) -> Vec<Value> {
        self.list
            .iter()
            .map(|output| match output {
                Output::Stream(printed) => json!({
                    "name": printed.stream.name(),
                    "output_type": "stream",
                    "text": split(&self.bounded(printed)),
                }),
                other => self.value(other),
            })
            .collect()
    }

    /// Writes the outputs as one JSON array, with all that was printed, as far as it was kept. Reads
    /// the artifact piece by piece.
    pub fn write_whole(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"[")?;
        for (at, output) in self.list.iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            match (output, &self.log) {
                (Output::Stream(printed), Some(log)) if printed.missing() > 0 => {
                    write_stream(printed, log, out)?;
                }
                _ => {
                    let outputs = self;
                    serde_json::to_writer(&mut *out, &OneOutput { outputs, output })?;
                }
            }
        }
        out.write_all(b"]")
    }

    fn value(&self, output: &Output) -> Value {
        match output {
            Output::Stream(_) => Value::Null,
            Output::Display(shown) => display(shown),
            Output::Error(traceback) => json!({
                "ename": traceback.name,
                "evalue": traceback.value,
                "output_type": "error",
                "traceback": traceback.lines,
            }),
        }
    }

    /// What is held of a stream.
    fn bounded<'a>(&self, printed: &'a Printed) -> Cow<'a, str> {
        let missing = printed.missing();
        if missing == 0 && printed.tail.is_empty() {
            return String::from_utf8_lossy(&printed.head);
        }
        if missing == 0 {
            let bytes = [&printed.head[..], &printed.tail[..]].concat();
            return Cow::Owned(String::from_utf8_lossy(&bytes).into_owned());
        }
        let (head, tail) = ends(printed);
        let mut text = String::from_utf8_lossy(head).into_owned();
        text.push_str(&self.elision(printed, &text, head.len() + tail.len()));
        text.push_str(&String::from_utf8_lossy(tail));
        Cow::Owned(text)
    }

    fn elision(&self, printed: &Printed, before: &str, shown: usize) -> String {
        let newline = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let bytes = Bytes(printed.length - shown as u64);
        match &self.log {
            Some(log) => format!("{newline}[… {bytes} elided, see {} …]\n", log.id),
            None => format!("{newline}[… {bytes} elided …]\n"),
        }
    }
}

/// The same as [`Outputs::to_values`], without the values: a text of four million lines would be four
/// million strings.
impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list.iter().map(|output| OneOutput {
            outputs: self,
            output,
        }))
    }
}

struct OneOutput<'a> {
    outputs: &'a Outputs,
    output: &'a Output,
}

impl Serialize for OneOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Output::Stream(printed) = self.output else {
            return self.outputs.value(self.output).serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", printed.stream.name())?;
        map.serialize_entry("output_type", "stream")?;
        map.serialize_entry("text", &Lines(&self.outputs.bounded(printed)))?;
        map.end()
    }
}

/// A text as a list of its lines.
struct Lines<'a>(&'a str);

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lines::split(self.0))
    }
}

/// Head and tail without half a character.
fn ends(printed: &Printed) -> (&[u8], &[u8]) {
    let head = &printed.head[..printed.head.len() - utf8::incomplete_suffix(&printed.head)];
    let tail = &printed.tail[utf8::continuation_prefix(&printed.tail)..];
    (head, tail)
}

fn write_stream(printed: &Printed, log: &Log, out: &mut dyn Write) -> io::Result<()> {
    const PART: usize = 64 * 1024;
    write!(
        out,
        "{{\"name\":\"{}\",\"output_type\":\"stream\",\"text\":[",
        printed.stream.name()
    )?;
    let mut array = LineArray::new(out);
    let mut decoder = Decoder::default();
    let mut push = |bytes: &[u8]| {
        let mut result = Ok(());
        decoder.push(bytes, |text| {
            if result.is_ok() {
                result = array.push(text);
            }
        });
        result
    };
    push(&printed.head)?;
    // The rest is in the log, as far as that goes; what is not there may be in the tail.
    let mut position = printed.offset + (printed.head.len() - printed.carried) as u64;
    let end = printed.offset + printed.length - printed.carried as u64;
    let tail_start = end - printed.tail.len() as u64;
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
    if position < tail_start {
        let note = format!("\n[… {} lost …]\n", Bytes(tail_start - position));
        push(note.as_bytes())?;
    }
    let skip = usize::try_from(position.saturating_sub(tail_start)).unwrap_or(usize::MAX);
    push(&printed.tail[skip.min(printed.tail.len())..])?;
    let mut result = Ok(());
    decoder.finish(|text| result = array.push(text));
    result?;
    array.finish()?;
    out.write_all(b"]}")
}

/// Writes the lines of a text as JSON strings, though it comes in pieces.
struct LineArray<'a> {
    out: &'a mut dyn Write,
    /// What is known of the line that has not been written.
    line: String,
    any: bool,
}

impl<'a> LineArray<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            line: String::new(),
            any: false,
        }
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        /// Of a longer line the parts are written one after the other; joined they are the same.
        const LONGEST: usize = 256 * 1024;
        self.line.push_str(text);
        let mut start = 0;
        loop {
            let rest = &self.line[start..];
            let end = lines::line_length(rest);
            // The last one may go on; and its `\r` may be half of `\r\n`.
            if end == rest.len() && (end < LONGEST || rest.ends_with('\r')) {
                break;
            }
            write_item(self.out, &mut self.any, &rest[..end])?;
            start += end;
        }
        self.line.drain(..start);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        for line in lines::split(&line) {
            write_item(self.out, &mut self.any, line)?;
        }
        Ok(())
    }
}

fn write_item(out: &mut dyn Write, any: &mut bool, line: &str) -> io::Result<()> {
    if std::mem::replace(any, true) {
        out.write_all(b",")?;
    }
    serde_json::to_writer(out, line)?;
    Ok(())
}

fn display(shown: &Shown) -> Value {
    let mut data = Map::new();
    let mut stubs = Vec::new();
    for (mime, payload) in &shown.parts {
        match payload {
            Payload::Held(held) => {
                data.insert(mime.clone(), representation(mime, held));
            }
            Payload::Stored { id, bytes } => {
                let name = pick::name(mime, *bytes);
                stubs.push(format!("{name} in {id}"));
            }
            Payload::Lost { bytes } => {
                stubs.push(format!("{} could not be kept", pick::name(mime, *bytes)));
            }
        }
    }
    if !stubs.is_empty() && !data.contains_key("text/plain") {
        data.insert("text/plain".to_owned(), split(&stubs.join("\n")));
    }
    let mut output = match shown.result {
        Some(count) => json!({
            "data": data,
            "execution_count": count,
            "metadata": shown.metadata,
            "output_type": "execute_result",
        }),
        None => json!({
            "data": data,
            "metadata": shown.metadata,
            "output_type": "display_data",
        }),
    };
    output.sort_all_objects();
    output
}

fn representation(mime: &str, data: &Data) -> Value {
    match data {
        // As nbformat does: only these are split.
        Data::Text(text)
            if mime.starts_with("text/")
                || mime == "image/svg+xml"
                || mime == "application/javascript" =>
        {
            split(text)
        }
        Data::Text(text) => Value::String(text.clone()),
        Data::Json(value) => value.clone(),
        Data::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
    }
}

fn split(text: &str) -> Value {
    Value::Array(
        lines::split(text)
            .map(|line| Value::String(line.to_owned()))
            .collect(),
    )
}
