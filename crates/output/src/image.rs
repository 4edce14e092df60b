//! Images, made small enough for a model when someone asks for it. Until then only the header is
//! looked at.

mod decoded;
mod rows;
mod scale;

use std::borrow::Cow;
use std::io::Cursor;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::artifact::{ArtifactError, ArtifactId, Artifacts};
use crate::bundle::Data;
use crate::limits::ImageLimits;
use crate::outputs::Payload;
use crate::pick;
use crate::stored::{Form, Stored};
pub(crate) use decoded::Decoded;

/// MIME types of images that are listed.
const LISTED: [&str; 3] = ["image/png", "image/jpeg", "image/svg+xml"];

pub(crate) fn is_listed(mime: &str) -> bool {
    LISTED.contains(&mime)
}

/// An image that was displayed.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its MIME type.
    pub mime: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its width in pixels, if its header says so.
    pub width: Option<u32>,
    /// Its height in pixels.
    pub height: Option<u32>,
    /// Where the original is.
    pub artifact: Option<ArtifactId>,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Held(Arc<Data>),
    Stored(Artifacts),
    Lost,
}

/// An image for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// The original, which is small enough.
    Unchanged {
        /// Its MIME type.
        mime: String,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The image in another size.
    Scaled {
        /// Its MIME type.
        mime: &'static str,
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// It cannot be shown; the text names it and says why.
    Stub(String),
}

impl Image {
    pub(crate) fn new(mime: &str, payload: &Payload, artifacts: Option<&Artifacts>) -> Self {
        let (artifact, source) = match (payload, artifacts) {
            (Payload::Held(data), _) => (None, Source::Held(Arc::clone(data))),
            (Payload::Moved(moved), artifacts) => match (moved.artifact(), artifacts) {
                (Some(id), Some(artifacts)) => (Some(id), Source::Stored(artifacts.clone())),
                _ => match &moved.verbatim {
                    Some(data) => (None, Source::Held(Arc::new(data.clone()))),
                    None => (None, Source::Lost),
                },
            },
        };
        let mut image = Self {
            mime: mime.to_owned(),
            bytes: payload.bytes(),
            width: None,
            height: None,
            artifact,
            source,
        };
        if let Ok((head, bytes)) = image.head() {
            let size = dimensions(&head);
            image.bytes = bytes;
            (image.width, image.height) = size.unzip();
        }
        image
    }

    /// One that was kept. Whether it is there, and what it is, shows when it is looked at.
    pub fn kept(artifacts: &Artifacts, id: ArtifactId, mime: &str) -> Self {
        let bytes = artifacts.open(id).map_or(0, |artifact| artifact.bytes());
        Self {
            mime: mime.to_owned(),
            bytes,
            width: None,
            height: None,
            artifact: Some(id),
            source: Source::Stored(artifacts.clone()),
        }
    }

    /// The first bytes, where the size in pixels stands, and how many there are in all.
    fn head(&self) -> Result<(Cow<'_, [u8]>, u64), ArtifactError> {
        /// What cameras and printers have to say comes first.
        const HEAD: usize = 1 << 20;
        if let Source::Held(data) = &self.source
            && let Data::Stored(stored) = data.as_ref()
        {
            let head = stored.head(HEAD).map_err(|_| ArtifactError::NotKept)?;
            if stored.form() == Form::Text && self.mime != "image/svg+xml" {
                let (head, bytes) = decoded::head(stored, head);
                return Ok((Cow::Owned(head), bytes));
            }
            return Ok((Cow::Owned(head), stored.size()));
        }
        if let (Source::Stored(artifacts), Some(id)) = (&self.source, self.artifact) {
            let artifact = artifacts.open(id)?;
            return Ok((Cow::Owned(artifact.read_raw(0, HEAD)?), artifact.bytes()));
        }
        let original = self.original()?;
        let bytes = original.len() as u64;
        Ok((original, bytes))
    }

    /// Keeps the original in an artifact.
    pub(crate) fn keep(&mut self, artifacts: &Artifacts) -> Result<(), ArtifactError> {
        if let (None, Source::Held(data)) = (self.artifact, &self.source) {
            let (id, bytes) = artifacts.store_value(&self.mime, data)?;
            self.artifact = Some(id);
            self.bytes = bytes;
        }
        Ok(())
    }

    /// The bytes as they were displayed.
    pub fn original(&self) -> Result<Cow<'_, [u8]>, ArtifactError> {
        match (&self.source, self.artifact) {
            (Source::Held(data), _) => Ok(match data.as_ref() {
                Data::Bytes(bytes) => Cow::Borrowed(bytes),
                Data::Text(text) if self.mime == "image/svg+xml" => Cow::Borrowed(text.as_bytes()),
                Data::Text(text) => from_base64(text),
                Data::Json(value) => Cow::Owned(value.to_string().into_bytes()),
                Data::Stored(stored) => Cow::Owned(self.reread(stored)?),
            }),
            (Source::Stored(artifacts), Some(id)) => {
                let artifact = artifacts.open(id)?;
                let most = usize::try_from(artifact.bytes()).unwrap_or(usize::MAX);
                let bytes = artifact.read_raw(0, most)?;
                Ok(match std::str::from_utf8(&bytes) {
                    // It was displayed as base64, and stored so by an older version.
                    Ok(text) if self.mime != "image/svg+xml" => {
                        Cow::Owned(from_base64(text).into_owned())
                    }
                    _ => Cow::Owned(bytes),
                })
            }
            _ => Err(ArtifactError::NotKept),
        }
    }

    fn reread(&self, stored: &Stored) -> Result<Vec<u8>, ArtifactError> {
        let bytes = stored.head(usize::MAX);
        let bytes = bytes.map_err(|_| ArtifactError::NotKept)?;
        if stored.form() == Form::Text && self.mime != "image/svg+xml" {
            return Ok(from_base64(&String::from_utf8_lossy(&bytes)).into_owned());
        }
        Ok(bytes)
    }

    /// The image within the usual limits.
    pub fn bounded(&self) -> Bounded {
        self.bounded_to(&ImageLimits::default())
    }

    /// The image within limits: the original if it is, else another encoding or size.
    pub fn bounded_to(&self, limits: &ImageLimits) -> Bounded {
        let Ok(original) = self.original() else {
            return self.stub("it could not be kept");
        };
        if self.mime == "image/svg+xml" {
            if original.len() > limits.bytes {
                return self.stub("it is too large");
            }
            return Bounded::Unchanged {
                mime: self.mime.clone(),
                bytes: original.into_owned(),
            };
        }
        let Some((width, height)) = dimensions(&original) else {
            return self.stub("it cannot be decoded");
        };
        let sane = width.min(height) >= limits.least_side && width.max(height) <= limits.side;
        if sane && original.len() <= limits.bytes {
            // What cannot be decoded here cannot be elsewhere, and some refuse everything because of it.
            if !scale::can_be_decoded(&original, limits) {
                return self.stub("it cannot be decoded");
            }
            return Bounded::Unchanged {
                mime: self.mime.clone(),
                bytes: original.into_owned(),
            };
        }
        let scaled = if u64::from(width) * u64::from(height) > limits.pixels {
            match rows::shrunk(&original, limits.side) {
                Some(image) => Some(scale::encoded(image, limits)),
                None => return self.stub(&format!("{width}×{height} pixels are too many")),
            }
        } else {
            scale::within(&original, limits)
        };
        scaled.unwrap_or_else(|| self.stub("it cannot be decoded"))
    }

    fn stub(&self, why: &str) -> Bounded {
        Bounded::Stub(format!("{}: {why}", pick::name(&self.mime, self.bytes)))
    }
}

/// Width and height from the header.
fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?
        .into_dimensions()
        .ok()
}

/// The bytes that base64 stands for; text that is none stands for itself.
pub(crate) fn from_base64(text: &str) -> Cow<'_, [u8]> {
    let compact: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    match STANDARD.decode(compact) {
        Ok(bytes) => Cow::Owned(bytes),
        Err(_) => Cow::Borrowed(text.as_bytes()),
    }
}
