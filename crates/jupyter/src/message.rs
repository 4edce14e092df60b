//! [`Message`]: what is said on a channel, apart from how it is sent.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html>

mod date;
mod mend;

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::frame::Frame;

/// The version of the protocol that we speak.
pub const PROTOCOL: &str = "5.3";

/// What is said on a channel. What it is about stays JSON text until somebody wants to know: a message
/// that is odd in one place is not lost for it.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// To whom it goes or from whom it came; on iopub the topic.
    pub identities: Vec<Bytes>,
    /// Which message it is.
    pub header: Header,
    /// The header of the message that caused it, as it came: `{}` if there is none.
    pub parent: Bytes,
    /// What else is said about it.
    pub metadata: Bytes,
    /// What it says.
    pub content: Frame,
    /// Binary data that belongs to it.
    pub buffers: Vec<Frame>,
    /// The header as it came, for replies: they repeat it to the letter.
    pub raw_header: Bytes,
}

/// Which message it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Its number.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub msg_id: String,
    /// What sort of message.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub msg_type: String,
    /// Whose it is.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub session: String,
    /// The person's name.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub username: String,
    /// When it was made.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub date: String,
    /// The version of the protocol.
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub version: String,
    /// The subshell that is meant (protocol 5.5).
    #[serde(
        default,
        deserialize_with = "text_or_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub subshell_id: Option<String>,
}

impl Header {
    /// A header with a number of its own.
    pub fn new(msg_type: &str, session: &str) -> Self {
        Self {
            msg_id: fresh_id(),
            msg_type: msg_type.to_owned(),
            session: session.to_owned(),
            username: "cellwright".to_owned(),
            date: date::now(),
            version: PROTOCOL.to_owned(),
            subshell_id: None,
        }
    }
}

impl Message {
    /// A message of its own.
    pub fn new(msg_type: &str, session: &str, content: &Value) -> Self {
        let header = Header::new(msg_type, session);
        let raw_header = Bytes::from(json!(header).to_string());
        Self {
            header,
            raw_header,
            parent: Bytes::from_static(b"{}"),
            metadata: Bytes::from_static(b"{}"),
            content: Frame::from(content.to_string()),
            ..Self::default()
        }
    }

    /// The same, caused by another one.
    #[must_use]
    pub fn caused_by(mut self, cause: &Self) -> Self {
        self.parent = cause.raw_header.clone();
        self
    }

    /// A message that answers this one, on the way back to whoever sent it.
    #[must_use]
    pub fn reply(&self, msg_type: &str, session: &str, content: &Value) -> Self {
        let mut reply = Self::new(msg_type, session, content).caused_by(self);
        reply.identities.clone_from(&self.identities);
        reply
    }

    /// The number of the message that caused it; empty if none did.
    pub fn parent_id(&self) -> String {
        #[derive(Default, Deserialize)]
        struct Parent {
            #[serde(default, deserialize_with = "text_or_nothing")]
            msg_id: String,
        }
        // A parent that makes no sense is as good as none.
        let parent: Parent = serde_json::from_slice(&self.parent).unwrap_or_default();
        parent.msg_id
    }

    /// What it says, as a value. Characters that JSON cannot hold are replaced; null if it is not JSON
    /// at all.
    pub fn value(&self) -> Value {
        let content = self.content.bytes().unwrap_or_default();
        serde_json::from_slice(&content)
            .or_else(|_| serde_json::from_str(&mend::mended(&content)))
            .unwrap_or_default()
    }

    /// How many bytes it takes, in memory or on disk.
    pub fn size(&self) -> u64 {
        let about = (self.parent.len() + self.metadata.len()) as u64;
        let frames = std::iter::once(&self.content).chain(&self.buffers);
        about + frames.map(Frame::size).sum::<u64>()
    }
}

/// A number that nobody else has: 128 random bits.
pub fn fresh_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness there is the time, which will do to tell messages apart.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes = now.map_or(0, |since| since.as_nanos()).to_be_bytes();
    }
    hex(&bytes)
}

/// Bytes as two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Text; anything else is nothing.
fn text_or_nothing<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text_or_none(from).map(Option::unwrap_or_default)
}

fn text_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Lenient.deserialize(from)
}

/// Takes text, and passes over anything else. Written out: every message has a header, and to have serde
/// try one thing after the other would cost more than all the rest of it.
struct Lenient;

// What is in a list or an object goes the same way, and not through what ignores things without a limit: a
// header that is nested without end is none.
impl<'de> DeserializeSeed<'de> for Lenient {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Lenient {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element_seed(Lenient)?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry_seed(Lenient, Lenient)?.is_some() {}
        Ok(None)
    }
}
