//! [`MessageCodec`]: encodes messages as signed frames, and decodes them.

mod replay;

use bytes::Bytes;
use cellwright_stdext::hex;

use crate::frame::Frame;
use crate::message::{Header, Message};
use crate::signing::{Signature, Signer};
use replay::ReplayWindow;

/// The frame between the identities and the message.
pub(crate) const DELIMITER: &[u8] = b"<IDS|MSG>";

/// Header, parent and metadata: the number of signed frames before the content.
pub(crate) const PARTS_BEFORE_CONTENT: usize = 3;

/// Signature, header, parent, metadata, content.
const PART_COUNT: usize = 5;

/// Why frames are rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The frames hold no message.
    #[error("there is no delimiter")]
    NoDelimiter,
    /// Frames are missing.
    #[error("there are only {found} frames after the delimiter")]
    TooShort {
        /// Number of frames after the delimiter.
        found: usize,
    },
    /// The sender does not have the key, or the message was changed on its way.
    #[error("the signature is wrong")]
    BadSignature,
    /// A message with the same signature was decoded before.
    #[error("the message is a replay")]
    Replayed,
    /// A frame on disk cannot be read.
    #[error("the message cannot be read from disk: {reason}")]
    Unreadable {
        /// The error of the system.
        reason: String,
    },
    /// The header is not an object with a `msg_type`.
    #[error("the header is invalid: {reason}")]
    BadHeader {
        /// The reason.
        reason: String,
    },
}

impl CodecError {
    /// The kind of error, without any bytes of the message, for the log.
    pub(crate) fn summary(&self) -> &'static str {
        match self {
            Self::NoDelimiter => "no delimiter",
            Self::TooShort { .. } => "too few frames",
            Self::BadSignature => "wrong signature",
            Self::Replayed => "replay",
            Self::Unreadable { .. } => "unreadable file",
            Self::BadHeader { .. } => "invalid header",
        }
    }
}

/// Encodes messages as signed frames. Decodes frames whose sender has the key, each message once.
pub struct MessageCodec {
    /// `None`: messages are not signed.
    signer: Option<Signer>,
    replays: ReplayWindow,
}

impl MessageCodec {
    /// A codec for a key. An empty key means, as in Jupyter, that messages are not signed.
    pub fn new(key: &str) -> Self {
        Self {
            signer: Signer::new(key),
            replays: ReplayWindow::default(),
        }
    }

    /// Returns the frames of a message. Frames on disk are read; a frame that cannot be read becomes empty.
    pub fn encode(&self, message: &Message) -> Vec<Bytes> {
        let read = |frame: &Frame| frame.bytes().unwrap_or_default();
        let parts = [
            message.raw_header.clone(),
            message.parent.clone(),
            message.metadata.clone(),
            read(&message.content),
        ];
        let signature = self.signer.as_ref().map(|signer| {
            let mut signature = signer.builder();
            for part in &parts {
                signature.push(part);
            }
            hex::encode(&signature.finish().into_bytes())
        });
        let mut frames = message.identities.clone();
        frames.push(Bytes::from_static(DELIMITER));
        frames.push(Bytes::from(signature.unwrap_or_default()));
        frames.extend(parts);
        frames.extend(message.buffers.iter().map(read));
        frames
    }

    /// Returns the message in these frames.
    pub fn decode(&mut self, frames: Vec<impl Into<Frame>>) -> Result<Message, CodecError> {
        let mut frames: Vec<Frame> = frames.into_iter().map(Into::into).collect();
        let is_delimiter = |frame: &Frame| match frame {
            Frame::InMemory(bytes) => bytes == DELIMITER,
            Frame::OnDisk(_) => false,
        };
        let at = frames.iter().position(is_delimiter);
        let at = at.ok_or(CodecError::NoDelimiter)?;
        let mut parts = frames.split_off(at + 1);
        frames.pop();
        if parts.len() < PART_COUNT {
            return Err(CodecError::TooShort { found: parts.len() });
        }
        let buffers = parts.split_off(PART_COUNT);
        let mut parts = parts.into_iter();
        let mut part = || parts.next().unwrap_or_default();
        let (signature, raw_header, parent, metadata, content) =
            (part(), part(), part(), part(), part());
        if let Some(signer) = &self.signer {
            let received = match &signature {
                Frame::InMemory(signature) => hex::decode(signature),
                Frame::OnDisk(_) => None,
            };
            let received = received.ok_or(CodecError::BadSignature)?;
            let signed = [&raw_header, &parent, &metadata, &content];
            let expected = expected_signature(signer, signed).map_err(unreadable)?;
            if !expected.matches(received) {
                return Err(CodecError::BadSignature);
            }
            if !self.replays.insert(received) {
                return Err(CodecError::Replayed);
            }
        }
        let raw_header = into_memory(raw_header)?;
        let header: Header = serde_json::from_slice(&raw_header).map_err(|error| {
            let reason = error.to_string();
            CodecError::BadHeader { reason }
        })?;
        if header.msg_type.is_empty() {
            let reason = "it has no msg_type".to_owned();
            return Err(CodecError::BadHeader { reason });
        }
        Ok(Message {
            identities: frames
                .into_iter()
                .map(into_memory)
                .collect::<Result<_, _>>()?,
            header,
            parent: into_memory(parent)?,
            metadata: into_memory(metadata)?,
            content,
            buffers,
            raw_header,
        })
    }
}

/// Returns the signature that a message with these parts must carry. If the content is on disk and its signature was
/// computed while it was received, the content is not read again.
fn expected_signature(signer: &Signer, signed: [&Frame; 4]) -> std::io::Result<Signature> {
    if let Frame::OnDisk(content) = signed[3]
        && let Some(signature) = content.computed_signature()
    {
        return Ok(signature);
    }
    let mut signature = signer.builder();
    for part in signed {
        part.read(|piece| signature.push(piece))?;
    }
    Ok(signature.finish())
}

/// Returns the bytes of a part that must be in memory. Only contents and buffers are large.
fn into_memory(frame: Frame) -> Result<Bytes, CodecError> {
    match frame {
        Frame::InMemory(bytes) => Ok(bytes),
        Frame::OnDisk(stored) => stored.bytes().map_err(unreadable),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn unreadable(error: std::io::Error) -> CodecError {
    let reason = error.to_string();
    CodecError::Unreadable { reason }
}
