//! [`Message`]: a message on one of the channels, independent of its encoding.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html>

mod lossy_json;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cellwright_stdext::{hex, rfc3339};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::frame::Frame;

/// The version of the messaging protocol that this crate implements.
pub const PROTOCOL_VERSION: &str = "5.3";

/// A message on one of the channels. Parent, metadata and content stay JSON text until they are needed: an invalid part
/// does not cost the whole message.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Routing identities of the receiver or of the sender; on iopub the topic.
    pub identities: Vec<Bytes>,
    /// The parsed header.
    pub header: Header,
    /// `parent_header`, the header of the message that caused this one, as it was received: `{}` if there is none.
    pub parent: Bytes,
    /// The metadata, as JSON text.
    pub metadata: Bytes,
    /// The content, as JSON text.
    pub content: Frame,
    /// Binary buffers after the content.
    pub buffers: Vec<Frame>,
    /// The header as it was received. Replies repeat it byte for byte as their parent.
    pub raw_header: Bytes,
}

/// The header of a message. Fields that are not strings are read as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Unique id of the message.
    #[serde(default, deserialize_with = "string_or_default")]
    pub msg_id: String,
    /// Type of the message, for example `execute_request`.
    #[serde(default, deserialize_with = "string_or_default")]
    pub msg_type: String,
    /// Session id of the sender.
    #[serde(default, deserialize_with = "string_or_default")]
    pub session: String,
    /// Name of the user.
    #[serde(default, deserialize_with = "string_or_default")]
    pub username: String,
    /// Time of creation, ISO 8601.
    #[serde(default, deserialize_with = "string_or_default")]
    pub date: String,
    /// Version of the messaging protocol.
    #[serde(default, deserialize_with = "string_or_default")]
    pub version: String,
    /// Id of the subshell that handles the request (protocol 5.5).
    #[serde(
        default,
        deserialize_with = "string_or_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub subshell_id: Option<String>,
}

impl Header {
    /// A header with a new id and the current time.
    pub fn new(msg_type: &str, session: &str) -> Self {
        Self {
            msg_id: random_id(),
            msg_type: msg_type.to_owned(),
            session: session.to_owned(),
            username: "cellwright".to_owned(),
            date: rfc3339::format_micros(SystemTime::now()),
            version: PROTOCOL_VERSION.to_owned(),
            subshell_id: None,
        }
    }
}

impl Message {
    /// A message without a parent.
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

    /// Sets the message that caused this one.
    #[must_use]
    pub fn with_parent(mut self, parent: &Self) -> Self {
        self.parent = parent.raw_header.clone();
        self
    }

    /// A reply to this message, addressed to its sender.
    #[must_use]
    pub fn reply(&self, msg_type: &str, session: &str, content: &Value) -> Self {
        let mut reply = Self::new(msg_type, session, content).with_parent(self);
        reply.identities.clone_from(&self.identities);
        reply
    }

    /// The id of the parent message; empty without a parent.
    pub fn parent_id(&self) -> String {
        #[derive(Default, Deserialize)]
        struct Parent {
            #[serde(default, deserialize_with = "string_or_default")]
            msg_id: String,
        }
        // An invalid parent counts as none.
        let parent: Parent = serde_json::from_slice(&self.parent).unwrap_or_default();
        parent.msg_id
    }

    /// The content as a JSON value. Invalid characters are replaced. Returns null if the content is not JSON at all.
    pub fn value(&self) -> Value {
        let content = self.content.bytes().unwrap_or_default();
        serde_json::from_slice(&content)
            .or_else(|_| serde_json::from_str(&lossy_json::to_valid_json(&content)))
            .unwrap_or_default()
    }

    /// Bytes that the message occupies in memory or on disk.
    pub fn size(&self) -> u64 {
        let parts = (self.parent.len() + self.metadata.len()) as u64;
        let frames = std::iter::once(&self.content).chain(&self.buffers);
        parts + frames.map(Frame::size).sum::<u64>()
    }
}

/// A unique id: 128 random bits in hexadecimal digits.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without a random source the time is unique enough.
    if getrandom::fill(&mut bytes).is_err() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        bytes = now.map_or(0, |since| since.as_nanos()).to_be_bytes();
    }
    hex::encode(&bytes)
}

/// Deserializes a string; any other value becomes an empty one.
fn string_or_default<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    string_or_none(from).map(Option::unwrap_or_default)
}

/// Deserializes a string; any other value becomes `None`.
fn string_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    LenientString.deserialize(from)
}

/// Accepts a string and skips any other value. Implemented by hand: every message has a header, and an untagged enum
/// would cost more than the rest of the decoding.
struct LenientString;

// Elements of lists and objects are visited the same way. `IgnoredAny` has no recursion limit: a header that is nested
// without end must be rejected.
impl<'de> DeserializeSeed<'de> for LenientString {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LenientString {
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
        while seq.next_element_seed(LenientString)?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry_seed(LenientString, LenientString)?.is_some() {}
        Ok(None)
    }
}
