//! Displayed images. They are scaled to a model's limits on request; until then, only the header is read.

mod header;
mod metadata;
mod rows;
mod scale;

use std::borrow::Cow;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use crate::artifact::{ArtifactError, ArtifactId, Artifacts};
use crate::base64_text::{Base64Decoder, decode_or_keep};
use crate::bundle::Data;
use crate::display_text;
use crate::figure::Figure;
use crate::limits::ImageLimits;
use crate::stored_value::{Encoding, StoredValue};
use header::header_size;
use metadata::without_metadata;

/// MIME types of the images listed in a capture.
const LISTED_MIME_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];

pub(crate) fn is_listed(mime: &str) -> bool {
    LISTED_MIME_TYPES.contains(&mime)
}

/// A displayed image.
#[derive(Clone, Debug)]
pub struct Image {
    /// MIME type.
    pub mime: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Width in pixels, if the header states it.
    pub width: Option<u32>,
    /// Height in pixels, if the header states it.
    pub height: Option<u32>,
    /// The artifact with the original.
    pub artifact: Option<ArtifactId>,
    /// Where the text of its display is in the text of the cell.
    pub text_range: Option<Range<usize>>,
    source: ImageSource,
}

/// The location of an image's bytes.
#[derive(Clone, Debug)]
pub(crate) enum ImageSource {
    /// The displayed value.
    Data(Arc<Data>),
    /// An artifact.
    Artifact(Artifacts, ArtifactId),
    /// Lost: the value could not be stored.
    Lost,
}

/// An image within a model's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundedImage {
    /// The original, which is within the limits.
    Unchanged {
        /// MIME type.
        mime: String,
        /// The encoded image.
        bytes: Vec<u8>,
    },
    /// The image in another size or encoding.
    Scaled {
        /// MIME type.
        mime: &'static str,
        /// The encoded image.
        bytes: Vec<u8>,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The image cannot be shown; the text states type, size and reason.
    Placeholder(String),
}

impl Image {
    /// Creates the image of a representation with `bytes` bytes, and reads its header.
    pub(crate) fn new(mime: &str, bytes: u64, source: ImageSource) -> Self {
        let mut image = Self::from_source(mime, bytes, source);
        if let Ok((head, bytes)) = image.read_head() {
            let size = dimensions(&head);
            image.bytes = bytes;
            (image.width, image.height) = size.unzip();
        }
        image
    }

    /// Creates an image from an artifact, of which only the header is read.
    pub fn from_artifact(artifacts: &Artifacts, id: ArtifactId, mime: &str) -> Self {
        let bytes = artifacts.open(id).map_or(0, |artifact| artifact.bytes());
        Self::new(mime, bytes, ImageSource::Artifact(artifacts.clone(), id))
    }

    /// Creates the image of a figure whose header was read before.
    pub(crate) fn from_figure(figure: &Figure, source: ImageSource) -> Self {
        Self {
            width: figure.width,
            height: figure.height,
            artifact: figure.artifact,
            ..Self::from_source(&figure.mime, figure.bytes, source)
        }
    }

    /// Creates an image from a displayed value, such as base64 text.
    pub fn from_data(mime: &str, data: Data) -> Self {
        Self::new(mime, data.size(), ImageSource::Data(Arc::new(data)))
    }

    /// Returns what text says about the image.
    pub fn figure(&self) -> Figure {
        Figure {
            mime: self.mime.clone(),
            bytes: self.bytes,
            width: self.width,
            height: self.height,
            artifact: self.artifact,
        }
    }

    fn from_source(mime: &str, bytes: u64, source: ImageSource) -> Self {
        Self {
            mime: mime.to_owned(),
            bytes,
            width: None,
            height: None,
            artifact: match source {
                ImageSource::Artifact(_, id) => Some(id),
                ImageSource::Data(_) | ImageSource::Lost => None,
            },
            text_range: None,
            source,
        }
    }

    /// Returns the first bytes, which contain the dimensions, and the total size in bytes.
    fn read_head(&self) -> Result<(Cow<'_, [u8]>, u64), ArtifactError> {
        /// Camera and printer metadata may come before the dimensions.
        const HEAD_SIZE: usize = 1 << 20;
        if let ImageSource::Data(data) = &self.source
            && let Data::Stored(stored) = data.as_ref()
        {
            let head = stored
                .head(HEAD_SIZE)
                .map_err(|_| ArtifactError::NotStored)?;
            if stored.encoding() == Encoding::Text && self.mime != "image/svg+xml" {
                let (head, bytes) = base64_head(stored, head);
                return Ok((Cow::Owned(head), bytes));
            }
            return Ok((Cow::Owned(head), stored.size()));
        }
        if let ImageSource::Artifact(artifacts, id) = &self.source {
            let artifact = artifacts.open(*id)?;
            return Ok((
                Cow::Owned(artifact.read_raw(0, HEAD_SIZE)?),
                artifact.bytes(),
            ));
        }
        let original = self.original()?;
        let bytes = original.len() as u64;
        Ok((original, bytes))
    }

    /// Stores the original as an artifact.
    pub fn store_original(&mut self, artifacts: &Artifacts) -> Result<(), ArtifactError> {
        if let (None, ImageSource::Data(data)) = (self.artifact, &self.source) {
            let (id, bytes) = artifacts.store_value(&self.mime, data)?;
            self.artifact = Some(id);
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Returns the original bytes.
    pub fn original(&self) -> Result<Cow<'_, [u8]>, ArtifactError> {
        match &self.source {
            ImageSource::Data(data) => Ok(match data.as_ref() {
                Data::Bytes(bytes) => Cow::Borrowed(bytes),
                Data::Text(text) if self.mime == "image/svg+xml" => Cow::Borrowed(text.as_bytes()),
                Data::Text(text) => decode_or_keep(text),
                Data::Json(value) => Cow::Owned(value.to_string().into_bytes()),
                Data::Stored(stored) => Cow::Owned(self.read_stored(stored)?),
            }),
            ImageSource::Artifact(artifacts, id) => {
                let artifact = artifacts.open(*id)?;
                let size = usize::try_from(artifact.bytes()).unwrap_or(usize::MAX);
                let bytes = artifact.read_raw(0, size)?;
                Ok(match std::str::from_utf8(&bytes) {
                    // An older version stored displayed base64 without decoding it.
                    Ok(text) if self.mime != "image/svg+xml" => {
                        Cow::Owned(decode_or_keep(text).into_owned())
                    }
                    _ => Cow::Owned(bytes),
                })
            }
            ImageSource::Lost => Err(ArtifactError::NotStored),
        }
    }

    fn read_stored(&self, stored: &StoredValue) -> Result<Vec<u8>, ArtifactError> {
        let bytes = stored.head(usize::MAX);
        let bytes = bytes.map_err(|_| ArtifactError::NotStored)?;
        if stored.encoding() == Encoding::Text && self.mime != "image/svg+xml" {
            return Ok(decode_or_keep(&String::from_utf8_lossy(&bytes)).into_owned());
        }
        Ok(bytes)
    }

    /// Returns the image within the limits of current models.
    pub fn bounded(&self) -> BoundedImage {
        self.bounded_to(&ImageLimits::default())
    }

    /// Returns the image within `limits`: the original, or another size or encoding.
    fn bounded_to(&self, limits: &ImageLimits) -> BoundedImage {
        let Ok(original) = self.original() else {
            return self.placeholder("it could not be stored");
        };
        if self.mime == "image/svg+xml" {
            if original.len() > limits.bytes {
                return self.placeholder("it is too large");
            }
            return BoundedImage::Unchanged {
                mime: self.mime.clone(),
                bytes: original.into_owned(),
            };
        }
        // Decoders inflate colour profiles and texts, which can be a thousand times as large as the image.
        let pixels = without_metadata(&original);
        let Some((width, height)) = decoded_dimensions(&pixels) else {
            return self.placeholder("it cannot be decoded");
        };
        let fits = width.min(height) >= limits.min_side && width.max(height) <= limits.max_side;
        if fits && original.len() <= limits.bytes {
            // Other programs could not decode it either, and some reject the whole request because of it.
            if !scale::can_be_decoded(&pixels, limits) {
                return self.placeholder("it cannot be decoded");
            }
            return BoundedImage::Unchanged {
                mime: self.mime.clone(),
                bytes: original.into_owned(),
            };
        }
        let scaled = if u64::from(width) * u64::from(height) > limits.pixels {
            match rows::shrink_png(&pixels, limits.max_side) {
                Some(image) => Some(scale::encode_within(image, limits)),
                None => return self.placeholder(&format!("{width}×{height} pixels are too many")),
            }
        } else {
            scale::decode_and_scale(&pixels, limits)
        };
        scaled.unwrap_or_else(|| self.placeholder("it cannot be decoded"))
    }

    fn placeholder(&self, why: &str) -> BoundedImage {
        BoundedImage::Placeholder(format!(
            "{}: {why}",
            display_text::mime_label(&self.mime, self.bytes)
        ))
    }
}

/// Returns width and height from the header.
fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    decoded_dimensions(&without_metadata(bytes))
}

fn decoded_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    decoder_size(bytes).or_else(|| header_size(bytes))
}

fn decoder_size(bytes: &[u8]) -> Option<(u32, u32)> {
    image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?
        .into_dimensions()
        .ok()
}

/// Decodes `head`, the beginning of a stored base64 text. Returns the bytes and the decoded size of the whole
/// text; for other text, `head` and the size of the text.
fn base64_head(stored: &StoredValue, head: Vec<u8>) -> (Vec<u8>, u64) {
    let (mut bytes, mut characters, mut padding) = (Vec::new(), 0_u64, 0_u64);
    let decoded = Base64Decoder::default().push(&head, |decoded| {
        bytes.extend_from_slice(decoded);
        Ok(())
    });
    let counted = stored.read(|text| {
        let blanks = text.iter().filter(|byte| byte.is_ascii_whitespace());
        characters += (text.len() - blanks.count()) as u64;
        padding += memchr::memchr_iter(b'=', text).count() as u64;
        Ok(())
    });
    if decoded.is_err() || counted.is_err() {
        return (head, stored.size());
    }
    (bytes, (characters / 4 * 3).saturating_sub(padding))
}
