//! Images for models: of a size that models take, and really what they say they are.

use cellwright_output::{ArtifactId, Artifacts, BoundedImage, Image};
use rmcp::model::ContentBlock;
use serde_json::Value;

/// Images in one answer; the others are named.
const IMAGES_MAX: usize = 6;

/// Images of an answer, and what is to be said of those that are not shown.
#[derive(Debug, Default)]
pub(super) struct ReplyImages {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) omissions: Vec<String>,
}

impl ReplyImages {
    /// Takes the images of a cell, as its report names them.
    pub(super) fn add_cell(&mut self, cell: u64, images: &Value, artifacts: Option<&Artifacts>) {
        for image in images.as_array().into_iter().flatten() {
            let mime = image["mime"].as_str().unwrap_or_default();
            let Some(id) = image["artifact"].as_str() else {
                self.omit(cell, mime, "it could not be kept");
                continue;
            };
            if self.blocks.len() >= IMAGES_MAX {
                self.omit(cell, mime, &format!("{id} has it"));
                continue;
            }
            let found = artifacts.zip(id.parse::<ArtifactId>().ok());
            let bounded = found.map(|(store, id)| Image::from_artifact(store, id, mime).bounded());
            match bounded {
                Some(
                    BoundedImage::Unchanged { bytes, .. } | BoundedImage::Scaled { bytes, .. },
                ) => {
                    // A host that is told a wrong type refuses the whole conversation.
                    match sniff_mime(&bytes) {
                        Some(mime) => self
                            .blocks
                            .push(ContentBlock::image(encode_base64(&bytes), mime)),
                        None => {
                            self.omit(cell, mime, &format!("models cannot see it; {id} has it"));
                        }
                    }
                }
                Some(BoundedImage::Placeholder(why)) => {
                    self.omit(cell, mime, &format!("{why}; {id} has it"));
                }
                None => self.omit(cell, mime, "it is not kept"),
            }
        }
    }

    fn omit(&mut self, cell: u64, mime: &str, why: &str) {
        self.omissions.push(format!(
            "an image of cell {cell} ({mime}) is not shown: {why}"
        ));
    }
}

/// The type of an image that models can see.
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

/// Bytes as MCP carries them.
pub(super) fn encode_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::STANDARD.encode(bytes)
}
