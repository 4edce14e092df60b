//! Outputs as JSON values in nbformat 4: sorted keys, text as a list of lines, bytes as base64. They contain
//! only data in memory; an elision line refers to the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::display::{DisplayOutput, Payload};
use super::lines;
use super::stream::StreamOutput;
use super::{Output, Outputs};
use crate::bundle::Data;
use crate::clean::collapse_redraws;
use crate::event::Traceback;
use crate::size::ByteSize;
use crate::stored_value::{Encoding, StoredValue};
use crate::utf8;

impl Outputs {
    /// Returns the text of a stream in memory.
    fn held_text<'a>(&self, output: &'a StreamOutput) -> Cow<'a, str> {
        let elided = output.elided_bytes();
        if elided == 0 && output.tail.is_empty() {
            return String::from_utf8_lossy(&output.head);
        }
        if elided == 0 {
            let bytes = [&output.head[..], &output.tail[..]].concat();
            return Cow::Owned(String::from_utf8_lossy(&bytes).into_owned());
        }
        let (head, tail) = whole_characters(output);
        let mut text = String::from_utf8_lossy(head).into_owned();
        text.push_str(&self.elision_line(output, &text, head.len() + tail.len()));
        text.push_str(&String::from_utf8_lossy(tail));
        Cow::Owned(text)
    }

    fn elision_line(&self, output: &StreamOutput, before: &str, shown_bytes: usize) -> String {
        let newline = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let bytes = ByteSize(output.length - shown_bytes as u64);
        match &self.log {
            Some(log) => format!("{newline}[… {bytes} elided, see {} …]\n", log.id),
            None => format!("{newline}[… {bytes} elided …]\n"),
        }
    }
}

/// Serializes the outputs as an array in nbformat 4. Stream text is limited to the part in memory, with an
/// elision line that states size and location of the rest. Values are written as they are produced: a text
/// of four million lines would otherwise be four million strings.
impl Serialize for Outputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.list.iter().map(|output| OutputValue(self, output)))
    }
}

struct OutputValue<'a>(&'a Outputs, &'a Output);

impl Serialize for OutputValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Output::Stream(output) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("name", output.stream.name())?;
                map.serialize_entry("output_type", "stream")?;
                let text = self.0.held_text(output);
                map.serialize_entry("text", &LineList(&collapse_redraws(&text)))?;
                map.end()
            }
            Output::Display(display) => serialize_display(display, serializer),
            Output::Error(traceback) => serialize_error(traceback, serializer),
        }
    }
}

fn serialize_error<S: Serializer>(traceback: &Traceback, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(4))?;
    map.serialize_entry("ename", &traceback.name)?;
    map.serialize_entry("evalue", &traceback.value)?;
    map.serialize_entry("output_type", "error")?;
    map.serialize_entry("traceback", &traceback.lines)?;
    map.end()
}

fn serialize_display<S: Serializer>(
    display: &DisplayOutput,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let placeholder = display.placeholder(|payload| matches!(payload, Payload::Inline(_)));
    let mut representations = BTreeMap::new();
    for (mime, payload) in &display.parts {
        if let Payload::Inline(data) = payload {
            representations.insert(mime.as_str(), RepresentationValue::Data(mime, data));
        }
    }
    if let Some(placeholder) = &placeholder {
        representations.insert("text/plain", RepresentationValue::Placeholder(placeholder));
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("data", &representations)?;
    if let Some(count) = display.result {
        map.serialize_entry("execution_count", &count)?;
    }
    let mut metadata = match &display.metadata {
        Payload::Inline(data) => match data.as_ref() {
            Data::Json(value) => value.clone(),
            _ => Value::Object(serde_json::Map::new()),
        },
        Payload::Moved(_) => Value::Object(serde_json::Map::new()),
    };
    metadata.sort_all_objects();
    map.serialize_entry("metadata", &metadata)?;
    let kind = match display.result {
        Some(_) => "execute_result",
        None => "display_data",
    };
    map.serialize_entry("output_type", kind)?;
    map.end()
}

enum RepresentationValue<'a> {
    Data(&'a str, &'a Data),
    Placeholder(&'a str),
}

impl Serialize for RepresentationValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mime, data) = match self {
            Self::Data(mime, data) => (mime, data),
            Self::Placeholder(placeholder) => return LineList(placeholder).serialize(serializer),
        };
        match data {
            Data::Text(text) if is_line_list(mime) => LineList(text).serialize(serializer),
            Data::Text(text) => serializer.serialize_str(text),
            Data::Json(value) => {
                let mut value = value.clone();
                value.sort_all_objects();
                value.serialize(serializer)
            }
            Data::Bytes(bytes) => serializer.collect_str(&Base64Display::new(bytes, &STANDARD)),
            Data::Stored(stored) => match stored.encoding() {
                // A sequence needs all lines; inline values are not large.
                Encoding::Text if is_line_list(mime) => {
                    LineList(&StoredText(stored).to_string()).serialize(serializer)
                }
                Encoding::Text | Encoding::Bytes => serializer.collect_str(&StoredText(stored)),
                Encoding::Json => {
                    let text = StoredText(stored).to_string();
                    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                    value.serialize(serializer)
                }
            },
        }
    }
}

/// Returns whether nbformat writes text of this type as a list of lines.
pub(super) fn is_line_list(mime: &str) -> bool {
    mime.starts_with("text/") || mime == "image/svg+xml" || mime == "application/javascript"
}

/// Displays a stored value, read in chunks.
struct StoredText<'a>(&'a StoredValue);

impl fmt::Display for StoredText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        let mut push = |text: &str| {
            result = f.write_str(text);
            result.map_err(std::io::Error::other)
        };
        let read = if self.0.encoding() == Encoding::Bytes {
            self.0.read(|bytes| push(&STANDARD.encode(bytes)))
        } else {
            self.0.read_text(&mut push)
        };
        match (result, read) {
            // The scratch file cannot be read, for example because the disk failed; the output must show it.
            (Ok(()), Err(error)) => write!(f, "[… {error} …]"),
            (result, _) => result,
        }
    }
}

/// Serializes a text as a list of lines.
struct LineList<'a>(&'a str);

impl Serialize for LineList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lines::split_lines(self.0))
    }
}

/// Returns head and tail without partial characters.
fn whole_characters(output: &StreamOutput) -> (&[u8], &[u8]) {
    let head = &output.head[..output.head.len() - utf8::incomplete_suffix(&output.head)];
    let tail = &output.tail[utf8::continuation_prefix(&output.tail)..];
    (head, tail)
}
