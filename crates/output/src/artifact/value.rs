//! Displayed values stored as artifacts, in formats that other programs can open.

use std::io;

use super::{ArtifactError, ArtifactId, ArtifactKind, Artifacts};
use crate::base64_text::{Base64Decoder, decode_or_keep};
use crate::bundle::Data;
use crate::stored_value::{Encoding, StoredValue};

impl Artifacts {
    /// Stores one representation of a displayed value. Returns its id and size in bytes.
    pub(crate) fn store_value(
        &self,
        mime: &str,
        data: &Data,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let kind = ArtifactKind::from_mime(mime);
        match data {
            // Jupyter kernels send images as base64; the file must hold the decoded image.
            Data::Text(text) if is_binary(mime) => {
                self.store_with(kind, |writer| writer.write(&decode_or_keep(text)))
            }
            Data::Text(text) => self.store_with(kind, |writer| writer.write(text.as_bytes())),
            Data::Bytes(bytes) => self.store_with(kind, |writer| writer.write(bytes)),
            Data::Json(value) => {
                let text = value.to_string();
                self.store_with(kind, |writer| writer.write(text.as_bytes()))
            }
            Data::Stored(stored) => self.store_stored(mime, stored),
        }
    }

    fn store_stored(
        &self,
        mime: &str,
        stored: &StoredValue,
    ) -> Result<(ArtifactId, u64), ArtifactError> {
        let kind = ArtifactKind::from_mime(mime);
        if stored.encoding() == Encoding::Text && is_binary(mime) {
            let decoded = self.store_with(kind, |writer| {
                let mut decoded = Base64Decoder::default();
                stored.read(|bytes| decoded.push(bytes, |bytes| writer.write(bytes)))?;
                decoded.finish()
            });
            match decoded {
                // Not base64: stored as it is.
                Err(ArtifactError::Io { source, .. })
                    if source.kind() == io::ErrorKind::InvalidData => {}
                decoded => return decoded,
            }
        }
        self.store_with(kind, |writer| stored.read(|bytes| writer.write(bytes)))
    }
}

/// Returns whether text of this MIME type is base64.
fn is_binary(mime: &str) -> bool {
    let picture = mime.starts_with("image/") && !mime.ends_with("+xml");
    picture || mime == "application/pdf" || mime.starts_with("audio/") || mime.starts_with("video/")
}
