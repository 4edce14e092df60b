//! [`DisplayOutput`]: one displayed value, in memory or in files.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::Omissions;
use super::json_writer::JsonWriter;
use crate::artifact::{ArtifactId, Artifacts};
use crate::bundle::{Bundle, Data, map_memory_size};
use crate::display_text;
use crate::figure::Figure;
use crate::json_style::JsonStyle;
use crate::scratch::Scratch;
use crate::stored_value::{Encoding, StoredValue};

/// A displayed value.
#[derive(Clone, Debug)]
pub(crate) struct DisplayOutput {
    pub(crate) parts: Vec<(String, Payload)>,
    /// A JSON object.
    pub(crate) metadata: Payload,
    pub(crate) id: Option<String>,
    pub(crate) result: Option<u32>,
    /// The images among the parts that were stored when they were displayed.
    pub(crate) figures: Vec<Figure>,
}

/// One representation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Payload {
    /// The value, in memory or in a file, within the limits for serialization.
    Inline(Arc<Data>),
    /// Stored elsewhere.
    Moved(Arc<MovedPayload>),
}

/// The location of a representation beyond the memory limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MovedPayload {
    pub(crate) bytes: u64,
    /// The unchanged value in the scratch file, for the notebook.
    pub(crate) verbatim: Option<Data>,
    /// The artifact for users, set at the end of the cell.
    artifact: OnceLock<Option<ArtifactId>>,
}

impl MovedPayload {
    pub(crate) fn artifact(&self) -> Option<ArtifactId> {
        self.artifact.get().copied().flatten()
    }
}

impl Payload {
    pub(crate) fn inline(data: Data) -> Self {
        Self::Inline(Arc::new(data))
    }

    fn moved(data: &Data, scratch: &Scratch) -> Self {
        Self::Moved(Arc::new(MovedPayload {
            bytes: data.size(),
            verbatim: store_data(scratch, data).ok().map(Data::Stored),
            artifact: OnceLock::new(),
        }))
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Inline(data) => data.size(),
            Self::Moved(moved) => moved.bytes,
        }
    }

    /// Returns the unchanged value, if it is stored.
    pub(crate) fn verbatim(&self) -> Option<&Data> {
        match self {
            Self::Inline(data) => Some(data),
            Self::Moved(moved) => moved.verbatim.as_ref(),
        }
    }

    fn memory_size(&self) -> u64 {
        match self {
            Self::Inline(data) => match data.as_ref() {
                Data::Json(Value::Object(members)) => map_memory_size(members),
                data => data.size(),
            },
            Self::Moved(_) => 0,
        }
    }
}

/// Smaller representations always stay in memory: a placeholder would save little.
const INLINE_LIMIT: u64 = 512;

/// Maximum number of representations beyond the memory limit; real values have fewer.
const PARTS_MAX: usize = 16;

impl DisplayOutput {
    /// Creates a display. If `room` bytes do not suffice, only small representations stay in memory.
    pub(super) fn new(
        bundle: Bundle,
        id: Option<String>,
        result: Option<u32>,
        room: u64,
        scratch: &Scratch,
    ) -> Self {
        let fits = bundle.size() <= room;
        let metadata = Data::Json(Value::Object(bundle.metadata));
        let metadata = if fits || metadata.size() <= INLINE_LIMIT {
            Payload::inline(metadata)
        } else {
            Payload::moved(&metadata, scratch)
        };
        let mut parts = Vec::with_capacity(bundle.data.len().min(PARTS_MAX));
        for (mime, data) in bundle.data {
            if !fits && parts.len() == PARTS_MAX {
                break;
            }
            let payload = if fits || data.size() + mime.len() as u64 <= INLINE_LIMIT {
                Payload::inline(data)
            } else {
                Payload::moved(&data, scratch)
            };
            parts.push((mime, payload));
        }
        Self {
            parts,
            metadata,
            id,
            result,
            figures: Vec::new(),
        }
    }

    /// Returns the stored image of a MIME type.
    pub(crate) fn figure(&self, mime: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.mime == mime)
    }

    /// Returns the bytes that count towards the memory limit.
    pub(crate) fn memory_size(&self) -> u64 {
        let parts = self.parts.iter();
        let parts: u64 = parts
            .map(|(mime, payload)| mime.len() as u64 + payload.memory_size())
            .sum();
        parts + self.metadata.memory_size()
    }

    /// Stores moved representations as artifacts.
    pub(super) fn store_moved(&self, artifacts: Option<&Artifacts>, omissions: &mut Omissions) {
        /// Maximum number of artifacts to report.
        const NAMED_MAX: usize = 1000;
        for (mime, payload) in &self.parts {
            let Payload::Moved(moved) = payload else {
                continue;
            };
            // Displays with the same id share the payload.
            moved.artifact.get_or_init(|| {
                let stored = artifacts.zip(moved.verbatim.as_ref());
                let store = || stored.map(|(artifacts, data)| artifacts.store_value(mime, data));
                let figure = self.figure(mime).and_then(|figure| figure.artifact);
                let id = figure.or_else(|| store().and_then(Result::ok).map(|(id, _)| id));
                match id {
                    Some(id) if omissions.moved.len() < NAMED_MAX => omissions.moved.push(id),
                    Some(_) => {}
                    None => omissions.lost += 1,
                }
                id
            });
        }
    }

    /// Returns the text that replaces absent representations, unless there is a `text/plain`.
    pub(super) fn placeholder(&self, is_present: impl Fn(&Payload) -> bool) -> Option<String> {
        let mut lines = Vec::new();
        for (mime, payload) in &self.parts {
            match payload {
                payload if is_present(payload) => {
                    if mime == "text/plain" {
                        return None;
                    }
                }
                Payload::Moved(moved) => {
                    let name = display_text::mime_label(mime, moved.bytes);
                    lines.push(match moved.artifact() {
                        Some(id) => format!("{name} in {id}"),
                        None => format!("{name} could not be stored"),
                    });
                }
                Payload::Inline(_) => {}
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Stores a value unchanged in the scratch file.
pub(super) fn store_data(scratch: &Scratch, data: &Data) -> io::Result<StoredValue> {
    match data {
        Data::Text(text) => scratch.store(Encoding::Text, text.as_bytes()),
        Data::Bytes(bytes) => scratch.store(Encoding::Bytes, bytes),
        Data::Json(value) => {
            let mut length = ByteCounter(0);
            write_compact(&mut length, value)?;
            let mut writer = scratch.reserve(length.0)?;
            write_compact(&mut writer, value)?;
            Ok(writer.finish(Encoding::Json))
        }
        Data::Stored(stored) if stored.is_in_shared_file() => Ok(stored.clone()),
        Data::Stored(stored) => scratch.copy(stored),
    }
}

fn write_compact(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    let style = JsonStyle::compact();
    let mut writer = JsonWriter::new(out, &style, 0);
    writer.write_value(value)?;
    writer.finish()
}

/// Counts written bytes.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Moves large representations of a bundle to the scratch file. Those that cannot be stored are removed.
pub(super) fn move_to_scratch(scratch: &Scratch, mut bundle: Bundle) -> Bundle {
    bundle.data.truncate(PARTS_MAX);
    bundle.data.retain_mut(|(_, data)| {
        if data.memory_size() <= INLINE_LIMIT {
            return true;
        }
        match store_data(scratch, data) {
            Ok(stored) => *data = Data::Stored(stored),
            Err(_) => return false,
        }
        true
    });
    bundle
}
