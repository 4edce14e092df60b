//! One displayed value, as far as it is held.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::Tally;
use super::paper::Paper;
use crate::artifact::{ArtifactId, Artifacts};
use crate::bundle::{Bundle, Data, map_size};
use crate::pick;
use crate::scratch::Scratch;
use crate::stored::{Form, Stored};
use crate::style::Style;

/// A displayed value.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) parts: Vec<(String, Payload)>,
    /// An object.
    pub(crate) metadata: Payload,
    pub(crate) id: Option<String>,
    pub(crate) result: Option<u32>,
}

/// One representation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Payload {
    /// Here: in memory, or in a file, but not too large for whoever wants values.
    Held(Arc<Data>),
    /// Elsewhere.
    Moved(Arc<Moved>),
}

/// What became of a representation for which there was no room.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    /// As it came, for the notebook.
    pub(crate) verbatim: Option<Data>,
    /// Where people find it; known in the end.
    artifact: OnceLock<Option<ArtifactId>>,
}

impl Moved {
    pub(crate) fn artifact(&self) -> Option<ArtifactId> {
        self.artifact.get().copied().flatten()
    }
}

impl Payload {
    pub(crate) fn held(data: Data) -> Self {
        Self::Held(Arc::new(data))
    }

    fn moved(data: &Data, scratch: &Scratch) -> Self {
        Self::Moved(Arc::new(Moved {
            bytes: data.size(),
            verbatim: aside(scratch, data).ok().map(Data::Stored),
            artifact: OnceLock::new(),
        }))
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Held(data) => data.size(),
            Self::Moved(moved) => moved.bytes,
        }
    }

    /// The value as it came, wherever it is.
    pub(crate) fn verbatim(&self) -> Option<&Data> {
        match self {
            Self::Held(data) => Some(data),
            Self::Moved(moved) => moved.verbatim.as_ref(),
        }
    }

    fn held_bytes(&self) -> u64 {
        match self {
            Self::Held(data) => match data.as_ref() {
                Data::Json(Value::Object(members)) => map_size(members),
                data => data.size(),
            },
            Self::Moved(_) => 0,
        }
    }
}

/// What is smaller than this stays in memory in any case: a stub would not be smaller by much.
const SMALL: u64 = 512;

/// How many representations stay when there is no room; nobody makes more.
const MOST_PARTS: usize = 16;

impl Shown {
    /// Holds the value if there is room, else only what is small; the rest goes to a file.
    pub(super) fn new(
        bundle: Bundle,
        id: Option<String>,
        result: Option<u32>,
        room: u64,
        scratch: &Scratch,
    ) -> Self {
        let fits = bundle.size() <= room;
        let metadata = Data::Json(Value::Object(bundle.metadata));
        let metadata = if fits || metadata.size() <= SMALL {
            Payload::held(metadata)
        } else {
            Payload::moved(&metadata, scratch)
        };
        let mut parts = Vec::with_capacity(bundle.data.len().min(MOST_PARTS));
        for (mime, data) in bundle.data {
            if !fits && parts.len() == MOST_PARTS {
                break;
            }
            let payload = if fits || data.size() + mime.len() as u64 <= SMALL {
                Payload::held(data)
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
        }
    }

    /// Bytes for which there must be room.
    pub(crate) fn held(&self) -> u64 {
        let parts = self.parts.iter();
        let parts: u64 = parts
            .map(|(mime, payload)| mime.len() as u64 + payload.held_bytes())
            .sum();
        parts + self.metadata.held_bytes()
    }

    /// Puts what is not here where people find it.
    pub(super) fn keep(&self, artifacts: Option<&Artifacts>, tally: &mut Tally) {
        /// More are not named.
        const MOST_NAMED: usize = 1000;
        for (mime, payload) in &self.parts {
            let Payload::Moved(moved) = payload else {
                continue;
            };
            // Shared with others of the same id.
            moved.artifact.get_or_init(|| {
                let kept = artifacts.zip(moved.verbatim.as_ref());
                let kept = kept.map(|(artifacts, data)| artifacts.store_value(mime, data));
                let id = kept.and_then(Result::ok).map(|(id, _)| id);
                match id {
                    Some(id) if tally.moved.len() < MOST_NAMED => tally.moved.push(id),
                    Some(_) => {}
                    None => tally.lost += 1,
                }
                id
            });
        }
    }

    /// What stands in the place of the representations that are not there, if there is room for words.
    pub(super) fn stub(&self, is_there: impl Fn(&Payload) -> bool) -> Option<String> {
        let mut stubs = Vec::new();
        for (mime, payload) in &self.parts {
            match payload {
                there if is_there(there) => {
                    if mime == "text/plain" {
                        return None;
                    }
                }
                Payload::Moved(moved) => {
                    let name = pick::name(mime, moved.bytes);
                    stubs.push(match moved.artifact() {
                        Some(id) => format!("{name} in {id}"),
                        None => format!("{name} could not be kept"),
                    });
                }
                Payload::Held(_) => {}
            }
        }
        (!stubs.is_empty()).then(|| stubs.join("\n"))
    }
}

/// Puts a value into a file, as it is.
pub(super) fn aside(scratch: &Scratch, data: &Data) -> io::Result<Stored> {
    match data {
        Data::Text(text) => scratch.store(Form::Text, text.as_bytes()),
        Data::Bytes(bytes) => scratch.store(Form::Bytes, bytes),
        Data::Json(value) => {
            let mut length = Length(0);
            compact(&mut length, value)?;
            let mut room = scratch.reserve(length.0)?;
            compact(&mut room, value)?;
            Ok(room.finish(Form::Json))
        }
        Data::Stored(stored) if stored.shares_its_file() => Ok(stored.clone()),
        Data::Stored(stored) => scratch.copy(stored),
    }
}

fn compact(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    let style = Style::compact();
    let mut paper = Paper::new(out, &style, 0);
    paper.value(value)?;
    paper.finish()
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A bundle of which nothing large is in memory; what no disk takes is missing.
pub(super) fn put_aside(scratch: &Scratch, mut bundle: Bundle) -> Bundle {
    bundle.data.truncate(MOST_PARTS);
    bundle.data.retain_mut(|(_, data)| {
        if data.held() <= SMALL {
            return true;
        }
        match aside(scratch, data) {
            Ok(stored) => *data = Data::Stored(stored),
            Err(_) => return false,
        }
        true
    });
    bundle
}
