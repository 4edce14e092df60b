//! Images in replies: scaled down to what models accept, with the MIME type of their content.

use cellwright_execution::ImageReport;
use cellwright_output::{ArtifactId, Artifacts, BoundedImage, Image};
use rmcp::model::ContentBlock;

/// Maximum number of images in one reply; the reply names the others.
const IMAGES_MAX: usize = 6;

/// Images of a reply, and descriptions of those that it omits.
#[derive(Debug, Default)]
pub(super) struct ReplyImages {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) omissions: Vec<String>,
}

impl ReplyImages {
    /// Adds the images of a cell.
    pub(super) fn add_cell(
        &mut self,
        cell: usize,
        images: &[ImageReport],
        artifacts: Option<&Artifacts>,
    ) {
        for image in images {
            let mime = image.mime.as_str();
            let Some(id) = &image.artifact else {
                self.omit(cell, mime, "it could not be stored");
                continue;
            };
            if self.blocks.len() >= IMAGES_MAX {
                self.omit(cell, mime, &format!("see {id}"));
                continue;
            }
            let found = artifacts.zip(id.parse::<ArtifactId>().ok());
            let bounded = found.map(|(store, id)| Image::from_artifact(store, id, mime).bounded());
            match bounded {
                Some(
                    BoundedImage::Unchanged { bytes, .. } | BoundedImage::Scaled { bytes, .. },
                ) => {
                    // A model API rejects the whole conversation if the MIME type of an image is wrong.
                    match sniff_mime(&bytes) {
                        Some(mime) => self
                            .blocks
                            .push(ContentBlock::image(encode_base64(&bytes), mime)),
                        None => {
                            self.omit(
                                cell,
                                mime,
                                &format!("models do not support this format; see {id}"),
                            );
                        }
                    }
                }
                Some(BoundedImage::Placeholder(why)) => {
                    self.omit(cell, mime, &format!("{why}; see {id}"));
                }
                None => self.omit(cell, mime, "it is not stored"),
            }
        }
    }

    fn omit(&mut self, cell: usize, mime: &str, why: &str) {
        self.omissions.push(format!(
            "an image of cell {cell} ({mime}) is not shown: {why}"
        ));
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
