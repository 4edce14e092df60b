//! [`Wire`]: messages as signed frames, and back.

mod replay;

use bytes::Bytes;

use crate::frame::Frame;
use crate::message::{Header, Message, hex};
use crate::seal::{DELIMITER, SIGNATURE, Sealer, seal};
use replay::Window;

/// Signature, header, parent, metadata, content.
const PARTS: usize = 5;

/// Why frames are not a message that we accept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// There is no message in them.
    #[error("there is no delimiter")]
    NoDelimiter,
    /// Frames are missing.
    #[error("there are {found} frames after the delimiter")]
    TooShort {
        /// How many there are.
        found: usize,
    },
    /// Whoever sent it does not have the key.
    #[error("the signature is wrong")]
    BadSignature,
    /// It came before.
    #[error("it came before")]
    Replayed,
    /// What was put on disk cannot be read.
    #[error("it cannot be read from disk: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// It does not say which message it is.
    #[error("the header makes no sense: {why}")]
    BadHeader {
        /// Why.
        why: String,
    },
}

/// Turns messages into signed frames, and frames into messages that are certainly from somebody with the
/// key, and came only once.
pub struct Wire {
    /// `None`: nothing is signed.
    sealer: Option<Sealer>,
    seen: Window,
}

impl Wire {
    /// A wire with that key; an empty one means that nothing is signed, as Jupyter has it.
    pub fn new(key: &str) -> Self {
        Self {
            sealer: Sealer::new(key),
            seen: Window::default(),
        }
    }

    /// The frames of a message. What is on disk is read; what cannot be read is empty.
    pub fn encode(&self, message: &Message) -> Vec<Bytes> {
        let held = |frame: &Frame| frame.bytes().unwrap_or_default();
        let parts = [
            message.raw_header.clone(),
            message.parent.clone(),
            message.metadata.clone(),
            held(&message.content),
        ];
        let signature = self.sealer.as_ref().map(|sealer| {
            let mut growing = sealer.begin();
            for part in &parts {
                growing.push(part);
            }
            hex(&growing.finish().bytes())
        });
        let mut frames = message.identities.clone();
        frames.push(Bytes::from_static(DELIMITER));
        frames.push(Bytes::from(signature.unwrap_or_default()));
        frames.extend(parts);
        frames.extend(message.buffers.iter().map(held));
        frames
    }

    /// The message in these frames.
    pub fn decode(&mut self, frames: Vec<impl Into<Frame>>) -> Result<Message, WireError> {
        let mut frames: Vec<Frame> = frames.into_iter().map(Into::into).collect();
        let is_delimiter = |frame: &Frame| match frame {
            Frame::Held(bytes) => bytes == DELIMITER,
            Frame::Stored(_) => false,
        };
        let at = frames.iter().position(is_delimiter);
        let at = at.ok_or(WireError::NoDelimiter)?;
        let mut parts = frames.split_off(at + 1);
        frames.pop();
        if parts.len() < PARTS {
            return Err(WireError::TooShort { found: parts.len() });
        }
        let buffers = parts.split_off(PARTS);
        let mut parts = parts.into_iter();
        let mut part = || parts.next().unwrap_or_default();
        let (signature, raw_header, parent, metadata, content) =
            (part(), part(), part(), part(), part());
        if let Some(sealer) = &self.sealer {
            let given = match &signature {
                Frame::Held(signature) => unhex(signature),
                Frame::Stored(_) => None,
            };
            let given = given.ok_or(WireError::BadSignature)?;
            let signed = [&raw_header, &parent, &metadata, &content];
            if !seal(sealer, signed).map_err(unreadable)?.is(given) {
                return Err(WireError::BadSignature);
            }
            if !self.seen.is_new(given) {
                return Err(WireError::Replayed);
            }
        }
        let raw_header = held(raw_header)?;
        let header: Header = serde_json::from_slice(&raw_header).map_err(|error| {
            let why = error.to_string();
            WireError::BadHeader { why }
        })?;
        if header.msg_type.is_empty() {
            let why = "it has no msg_type".to_owned();
            return Err(WireError::BadHeader { why });
        }
        Ok(Message {
            identities: frames.into_iter().map(held).collect::<Result<_, _>>()?,
            header,
            parent: held(parent)?,
            metadata: held(metadata)?,
            content,
            buffers,
            raw_header,
        })
    }
}

/// What must be in memory: what is said about a message is never large.
fn held(frame: Frame) -> Result<Bytes, WireError> {
    match frame {
        Frame::Held(bytes) => Ok(bytes),
        Frame::Stored(stored) => stored.bytes().map_err(unreadable),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what goes wrong")]
fn unreadable(error: std::io::Error) -> WireError {
    let why = error.to_string();
    WireError::Unreadable { why }
}

fn unhex(text: &[u8]) -> Option<[u8; SIGNATURE]> {
    let mut bytes = [0; SIGNATURE];
    if text.len() != 2 * SIGNATURE {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
        let digit = |at: usize| match digits[at] {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
            // Nobody writes them in capitals, and a signature is to have one form.
            _ => None,
        };
        *byte = digit(0)? << 4 | digit(1)?;
    }
    Some(bytes)
}
