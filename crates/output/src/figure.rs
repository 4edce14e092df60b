//! [`Figure`]: an image among the representations of a display, as text names it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::artifact::ArtifactId;
use crate::size::ByteSize;

/// An image of a display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// MIME type.
    pub mime: String,
    /// Size of the decoded image in bytes.
    pub bytes: u64,
    /// Width in pixels, if the header states it.
    pub width: Option<u32>,
    /// Height in pixels, if the header states it.
    pub height: Option<u32>,
    /// The artifact with the image.
    pub artifact: Option<ArtifactId>,
}

impl Figure {
    /// Returns the name of the image in text, with its location: `figure 563×433, artifact://19`.
    pub fn label(mime: &str, size: Option<(u32, u32)>, location: &str) -> String {
        match size {
            Some((width, height)) => format!("figure {width}×{height}, {location}"),
            None => format!("figure {mime}, {location}"),
        }
    }
}

/// The line of text at the place of the image: `[figure 563×433, artifact://19]`. An image without an artifact has
/// its size.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = match self.artifact {
            Some(id) => id.to_string(),
            None => ByteSize(self.bytes).to_string(),
        };
        // A MIME type from a kernel may contain anything.
        let mime: String = self.mime.chars().filter(|c| !c.is_control()).collect();
        let label = Self::label(&mime, self.width.zip(self.height), &location);
        write!(f, "[{label}]")
    }
}
