//! Images in replies: scaled down to what models accept, with the MIME type of their content, and named in the text.

use cellwright_execution::ImageReport;
use cellwright_output::{ArtifactId, Artifacts, BoundedImage, Figure, Image};

/// Maximum number of images in one reply; the reply names the others.
const IMAGES_MAX: usize = 6;

/// An image as MCP sends it.
#[derive(Debug)]
pub(super) struct EncodedImage {
    pub(super) base64: String,
    pub(super) mime: &'static str,
}

/// The images of a reply.
#[derive(Debug, Default)]
pub(super) struct ReplyImages {
    pub(super) images: Vec<EncodedImage>,
}

impl ReplyImages {
    /// Adds an image and returns the line that names it in the text.
    pub(super) fn add(&mut self, image: &ImageReport, artifacts: Option<&Artifacts>) -> String {
        let found = image.artifact.as_deref().and_then(|id| id.parse().ok());
        let found = artifacts.zip(found);
        let location = image.artifact.as_deref();
        let result = if self.images.len() >= IMAGES_MAX {
            Err("a reply has at most 6 images".to_owned())
        } else {
            match found {
                Some((store, id)) => encode_artifact(store, id, &image.mime),
                None => Err("it could not be stored".to_owned()),
            }
        };
        self.add_encoded(result, &image.mime, image.width.zip(image.height), location)
    }

    /// Adds an encoded image, or names one that cannot be sent.
    pub(super) fn add_encoded(
        &mut self,
        encoded: Result<EncodedImage, String>,
        mime: &str,
        size: Option<(u32, u32)>,
        location: Option<&str>,
    ) -> String {
        let name = Figure::label(mime, size, location.unwrap_or("not stored"));
        match encoded {
            Ok(image) if self.images.len() < IMAGES_MAX => {
                self.images.push(image);
                let number = self.images.len();
                format!("[{name}, image {number}]\n")
            }
            Ok(_) => format!("[{name}, not sent: a reply has at most 6 images]\n"),
            Err(why) => format!("[{name}, not sent: {why}]\n"),
        }
    }
}

/// Encodes an image that is stored as an artifact.
fn encode_artifact(
    artifacts: &Artifacts,
    id: ArtifactId,
    mime: &str,
) -> Result<EncodedImage, String> {
    encode(&Image::from_artifact(artifacts, id, mime))
}

/// Encodes an image within the limits of models.
pub(super) fn encode(image: &Image) -> Result<EncodedImage, String> {
    match image.bounded() {
        BoundedImage::Unchanged { bytes, .. } | BoundedImage::Scaled { bytes, .. } => {
            // A model API rejects the whole conversation if the MIME type of an image is wrong.
            let mime = sniff_mime(&bytes).ok_or("models do not support this format")?;
            Ok(EncodedImage {
                base64: encode_base64(&bytes),
                mime,
            })
        }
        BoundedImage::Placeholder(why) => Err(why),
    }
}

/// Returns the MIME type of an image if models support it.
fn sniff_mime(bytes: &[u8]) -> Option<&'static str> {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
    const JPEG: &[u8] = b"\xff\xd8\xff";
    if bytes.starts_with(PNG) {
        Some("image/png")
    } else if bytes.starts_with(JPEG) {
        Some("image/jpeg")
    } else {
        None
    }
}

/// Encodes bytes for MCP.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::STANDARD.encode(bytes)
}
