//! Outputs as values: keys sorted, text as a list of lines, bytes as base64, as nbformat 4 has them. What
//! is not in memory is not here; a line says where it is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::display::{Payload, Shown};
use super::lines;
use super::stream::Printed;
use super::{Output, Outputs};
use crate::bundle::Data;
use crate::clean::redrawn;
use crate::event::Traceback;
use crate::size::Bytes;
use crate::stored::{Form, Stored};
use crate::utf8;

impl Outputs {
    /// The outputs as values. Of what was printed they hold what is in memory, and a line that says
    /// how much is missing and where it is.
    pub fn to_values(&self) -> Vec<Value> {
        let value = |output| serde_json::to_value(OneOutput(self, output)).unwrap_or_default();
        self.list.iter().map(value).collect()
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
        serializer.collect_seq(self.list.iter().map(|output| OneOutput(self, output)))
    }
}

struct OneOutput<'a>(&'a Outputs, &'a Output);

impl Serialize for OneOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Output::Stream(printed) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("name", printed.stream.name())?;
                map.serialize_entry("output_type", "stream")?;
                let text = self.0.bounded(printed);
                map.serialize_entry("text", &Lines(&redrawn(&text)))?;
                map.end()
            }
            Output::Display(shown) => display(shown, serializer),
            Output::Error(traceback) => error(traceback, serializer),
        }
    }
}

fn error<S: Serializer>(traceback: &Traceback, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(4))?;
    map.serialize_entry("ename", &traceback.name)?;
    map.serialize_entry("evalue", &traceback.value)?;
    map.serialize_entry("output_type", "error")?;
    map.serialize_entry("traceback", &traceback.lines)?;
    map.end()
}

fn display<S: Serializer>(shown: &Shown, serializer: S) -> Result<S::Ok, S::Error> {
    let stub = shown.stub(|payload| matches!(payload, Payload::Held(_)));
    let mut data = BTreeMap::new();
    for (mime, payload) in &shown.parts {
        if let Payload::Held(held) = payload {
            data.insert(mime.as_str(), Representation::Of(mime, held));
        }
    }
    if let Some(stub) = &stub {
        data.insert("text/plain", Representation::Stub(stub));
    }
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("data", &data)?;
    if let Some(count) = shown.result {
        map.serialize_entry("execution_count", &count)?;
    }
    let mut metadata = match &shown.metadata {
        Payload::Held(held) => match held.as_ref() {
            Data::Json(value) => value.clone(),
            _ => Value::Object(serde_json::Map::new()),
        },
        Payload::Moved(_) => Value::Object(serde_json::Map::new()),
    };
    metadata.sort_all_objects();
    map.serialize_entry("metadata", &metadata)?;
    let kind = match shown.result {
        Some(_) => "execute_result",
        None => "display_data",
    };
    map.serialize_entry("output_type", kind)?;
    map.end()
}

enum Representation<'a> {
    Of(&'a str, &'a Data),
    Stub(&'a str),
}

impl Serialize for Representation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mime, data) = match self {
            Self::Of(mime, data) => (mime, data),
            Self::Stub(stub) => return Lines(stub).serialize(serializer),
        };
        match data {
            Data::Text(text) if is_split(mime) => Lines(text).serialize(serializer),
            Data::Text(text) => serializer.serialize_str(text),
            Data::Json(value) => {
                let mut value = value.clone();
                value.sort_all_objects();
                value.serialize(serializer)
            }
            Data::Bytes(bytes) => serializer.collect_str(&Base64Display::new(bytes, &STANDARD)),
            Data::Stored(stored) => match stored.form() {
                // Lines cannot be told one by one, and what is written here is not that large.
                Form::Text if is_split(mime) => {
                    Lines(&FromFile(stored).to_string()).serialize(serializer)
                }
                Form::Text | Form::Bytes => serializer.collect_str(&FromFile(stored)),
                Form::Json => {
                    let text = FromFile(stored).to_string();
                    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                    value.serialize(serializer)
                }
            },
        }
    }
}

/// Whether nbformat writes text of this type as a list of lines.
pub(super) fn is_split(mime: &str) -> bool {
    mime.starts_with("text/") || mime == "image/svg+xml" || mime == "application/javascript"
}

/// A stored value, read piece by piece.
struct FromFile<'a>(&'a Stored);

impl fmt::Display for FromFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        let mut put = |text: &str| {
            result = f.write_str(text);
            result.map_err(std::io::Error::other)
        };
        let read = if self.0.form() == Form::Bytes {
            self.0.read(|bytes| put(&STANDARD.encode(bytes)))
        } else {
            self.0.read_text(&mut put)
        };
        match (result, read) {
            // A file of our own that cannot be read is a broken disk; whoever reads this shall see it.
            (Ok(()), Err(error)) => write!(f, "[… {error} …]"),
            (result, _) => result,
        }
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
