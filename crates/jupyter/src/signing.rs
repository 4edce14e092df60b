//! [`Signer`]: computes the HMAC-SHA256 signatures of messages.

use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Size of a signature in bytes.
pub(crate) const SIGNATURE_SIZE: usize = 32;

/// Computes signatures with one key.
#[derive(Clone)]
pub(crate) struct Signer(Hmac<Sha256>);

impl Signer {
    /// A signer for a key. Returns `None` for an empty key: in Jupyter it means that messages are not signed.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let mac = Hmac::new_from_slice(key.as_bytes()).ok();
        mac.filter(|_| !key.is_empty()).map(Self)
    }

    /// Begins a signature.
    pub(crate) fn builder(&self) -> SignatureBuilder {
        SignatureBuilder(self.0.clone())
    }
}

impl std::fmt::Debug for Signer {
    /// Does not print the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Signer")
    }
}

/// Computes one signature from the signed bytes, piece by piece.
pub(crate) struct SignatureBuilder(Hmac<Sha256>);

impl SignatureBuilder {
    /// Appends signed bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the signature of all appended bytes.
    pub(crate) fn finish(self) -> Signature {
        Signature(self.0.finalize())
    }
}

impl std::fmt::Debug for SignatureBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SignatureBuilder")
    }
}

/// The signature that a message must carry.
#[derive(Clone)]
pub(crate) struct Signature(CtOutput<Hmac<Sha256>>);

impl Signature {
    /// Whether a received signature is the same. Takes constant time.
    pub(crate) fn matches(&self, received: [u8; SIGNATURE_SIZE]) -> bool {
        self.0 == CtOutput::new(received.into())
    }

    /// The bytes of the signature, for an outgoing message.
    pub(crate) fn into_bytes(self) -> [u8; SIGNATURE_SIZE] {
        self.0.into_bytes().into()
    }
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Signature")
    }
}
