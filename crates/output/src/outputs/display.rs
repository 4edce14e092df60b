//! One displayed value, as far as it is held.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Tally;
use crate::artifact::{ArtifactId, Artifacts, Kind};
use crate::bundle::{Bundle, Data};
use crate::image::from_base64;

/// A displayed value.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) parts: Vec<(String, Payload)>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) id: Option<String>,
    pub(crate) result: Option<u32>,
}

/// One representation.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// In memory.
    Held(Arc<Data>),
    /// In an artifact.
    Stored { id: ArtifactId, bytes: u64 },
    /// Nowhere.
    Lost { bytes: u64 },
}

impl Payload {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Held(data) => data.size(),
            Self::Stored { bytes, .. } | Self::Lost { bytes } => *bytes,
        }
    }
}

/// What is smaller than this stays in memory in any case: a stub would not be smaller by much.
const SMALL: u64 = 512;

/// How many representations stay when there is no room; nobody makes more.
const MOST_PARTS: usize = 16;

impl Shown {
    /// Holds the value if there is room, else only what is small.
    pub(crate) fn new(
        bundle: Bundle,
        id: Option<String>,
        result: Option<u32>,
        room: u64,
        artifacts: Option<&Artifacts>,
        tally: &mut Tally,
    ) -> Self {
        let mut shown = Self {
            parts: Vec::with_capacity(bundle.data.len().min(MOST_PARTS)),
            metadata: Map::new(),
            id,
            result,
        };
        let fits = bundle.size() <= room;
        if fits {
            shown.metadata = bundle.metadata;
        }
        for (mime, data) in bundle.data {
            if !fits && shown.parts.len() == MOST_PARTS {
                break;
            }
            let payload = if fits || data.size() + mime.len() as u64 <= SMALL {
                Payload::Held(Arc::new(data))
            } else {
                store(&mime, &data, artifacts, tally)
            };
            shown.parts.push((mime, payload));
        }
        shown
    }

    /// Bytes that it takes in memory.
    pub(crate) fn held(&self) -> u64 {
        self.parts
            .iter()
            .map(|(mime, payload)| {
                mime.len() as u64
                    + match payload {
                        Payload::Held(data) => data.size(),
                        _ => 0,
                    }
            })
            .sum()
    }
}

/// Whether the text of such a representation is base64.
fn is_binary(mime: &str) -> bool {
    let picture = mime.starts_with("image/") && !mime.ends_with("+xml");
    picture || mime == "application/pdf" || mime.starts_with("audio/") || mime.starts_with("video/")
}

fn store(mime: &str, data: &Data, artifacts: Option<&Artifacts>, tally: &mut Tally) -> Payload {
    /// More are not named.
    const MOST_NAMED: usize = 1000;
    let bytes = data.size();
    let kind = Kind::of_mime(mime);
    let stored = artifacts.and_then(|artifacts| {
        match data {
            // Kernels of Jupyter's send pictures as base64; a file with that in it is no picture.
            Data::Text(text) if is_binary(mime) => artifacts.store(kind, &from_base64(text)),
            Data::Text(text) => artifacts.store(kind, text.as_bytes()),
            Data::Bytes(bytes) => artifacts.store(kind, bytes),
            Data::Json(value) => artifacts.store(kind, value.to_string().as_bytes()),
        }
        .ok()
    });
    let Some(id) = stored else {
        tally.lost += 1;
        return Payload::Lost { bytes };
    };
    if tally.moved.len() < MOST_NAMED {
        tally.moved.push(id);
    }
    Payload::Stored { id, bytes }
}
