//! [`Sealer`]: the signature that a message should have. Of a content that goes to disk it is made while that
//! comes: reading it once more would cost as much as everything else that is done with it.

use bytes::Bytes;
use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::frame::Frame;

/// What stands between the identities and the message.
pub(crate) const DELIMITER: &[u8] = b"<IDS|MSG>";

/// Header, parent, metadata: what is signed before the content.
const BEFORE_CONTENT: usize = 3;

/// The bytes of a signature.
pub(crate) const SIGNATURE: usize = 32;

/// Makes signatures with one key.
#[derive(Clone)]
pub(crate) struct Sealer(Hmac<Sha256>);

impl Sealer {
    /// For that key; none for an empty one: nothing is signed then, as Jupyter has it.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let mac = Hmac::new_from_slice(key.as_bytes()).ok();
        mac.filter(|_| !key.is_empty()).map(Self)
    }

    /// A signature of which nothing is known yet.
    pub(crate) fn begin(&self) -> Growing {
        Growing(self.0.clone())
    }

    /// The signature of the message that these frames begin, if what comes next is its content.
    pub(crate) fn before_content(&self, frames: &[Bytes]) -> Option<Growing> {
        let at = frames.iter().position(|frame| frame == DELIMITER)?;
        // The signature itself is not signed.
        let signed = frames.get(at + 2..)?;
        let mut growing = self.begin();
        for frame in signed {
            growing.push(frame);
        }
        (signed.len() == BEFORE_CONTENT).then_some(growing)
    }
}

impl std::fmt::Debug for Sealer {
    /// Keys are nobody's business.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealer")
    }
}

/// A signature that is being made.
pub(crate) struct Growing(Hmac<Sha256>);

impl Growing {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Seal {
        Seal(self.0.finalize())
    }
}

impl std::fmt::Debug for Growing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Growing")
    }
}

/// The signature that a message should have.
#[derive(Clone)]
pub(crate) struct Seal(CtOutput<Hmac<Sha256>>);

impl Seal {
    /// Whether it is that one. Takes as long for a wrong one as for a right one.
    pub(crate) fn is(&self, given: [u8; SIGNATURE]) -> bool {
        self.0 == CtOutput::new(given.into())
    }

    /// The signature itself, for whoever signs.
    pub(crate) fn bytes(self) -> [u8; SIGNATURE] {
        self.0.into_bytes().into()
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Seal")
    }
}

/// The seal of a whole message.
pub(crate) fn seal(sealer: &Sealer, signed: [&Frame; 4]) -> std::io::Result<Seal> {
    if let Frame::Stored(content) = signed[3]
        && let Some(seal) = content.seal()
    {
        return Ok(seal);
    }
    let mut growing = sealer.begin();
    for part in signed {
        part.read(|piece| growing.push(piece))?;
    }
    Ok(growing.finish())
}
