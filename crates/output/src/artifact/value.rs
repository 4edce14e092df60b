//! Displayed values as artifacts: files that other programs open.

use std::io;

use super::{ArtifactError, ArtifactId, Artifacts, Kind};
use crate::bundle::Data;
use crate::image::{Decoded, from_base64};
use crate::stored::{Form, Stored};

impl Artifacts {
    /// Keeps one representation of a displayed value; how many bytes that is.
    pub(crate) fn store_value(
        &self,
        mime: &str,
        data: &Data,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let kind = Kind::of_mime(mime);
        match data {
            // Kernels of Jupyter's send pictures as base64; a file with that in it is no picture.
            Data::Text(text) if is_binary(mime) => {
                self.store_with(kind, |recording| recording.write(&from_base64(text)))
            }
            Data::Text(text) => self.store_with(kind, |recording| recording.write(text.as_bytes())),
            Data::Bytes(bytes) => self.store_with(kind, |recording| recording.write(bytes)),
            Data::Json(value) => {
                let text = value.to_string();
                self.store_with(kind, |recording| recording.write(text.as_bytes()))
            }
            Data::Stored(stored) => self.store_stored(mime, stored),
        }
    }

    fn store_stored(
        &self,
        mime: &str,
        stored: &Stored,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let kind = Kind::of_mime(mime);
        if stored.form() == Form::Text && is_binary(mime) {
            let decoded = self.store_with(kind, |recording| {
                let mut decoded = Decoded::default();
                stored.read(|bytes| decoded.push(bytes, |bytes| recording.write(bytes)))?;
                decoded.finish()
            });
            match decoded {
                // It is no base64, and stands for itself.
                Err(ArtifactError::Io { source, .. })
                    if source.kind() == io::ErrorKind::InvalidData => {}
                decoded => return decoded,
            }
        }
        self.store_with(kind, |recording| {
            stored.read(|bytes| recording.write(bytes))
        })
    }
}

/// Whether the text of such a representation is base64.
fn is_binary(mime: &str) -> bool {
    let picture = mime.starts_with("image/") && !mime.ends_with("+xml");
    picture || mime == "application/pdf" || mime.starts_with("audio/") || mime.starts_with("video/")
}
