//! The two encodings of a Jupyter message in a WebSocket frame.
//!
//! * [`Encoding::Binary`], subprotocol `v1.kernel.websocket.jupyter.org`: offsets, then the parts of the message as they
//!   are on the kernel's sockets.
//! * [`Encoding::Json`], without a subprotocol: the whole message as one JSON text; a message with buffers is binary, with
//!   the JSON text as its first part.

use bytes::{BufMut, Bytes, BytesMut};
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Message as WebSocketMessage;

/// The name of the binary encoding in the handshake.
pub(super) const BINARY_SUBPROTOCOL: &str = "v1.kernel.websocket.jupyter.org";

/// Header, parent, metadata and content.
const PART_COUNT: usize = 4;

/// The most parts of a message: a frame cannot ask for more memory than this.
const PARTS_MAX: usize = 100_000;

/// How messages are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// The parts with offsets.
    Binary,
    /// One JSON text.
    Json,
}

/// A message as the server sent it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedMessage {
    pub(super) channel: Channel,
    /// Header, parent, metadata, content, buffers.
    pub(super) parts: Vec<Bytes>,
}

impl Encoding {
    /// A message for the server.
    pub(super) fn encode(self, channel: Channel, message: &Message) -> WebSocketMessage {
        let content = message.content.bytes().unwrap_or_default();
        let buffers = message.buffers.iter();
        let buffers: Vec<Bytes> = buffers.filter_map(|buffer| buffer.bytes().ok()).collect();
        match self {
            Self::Binary => {
                let mut parts = vec![
                    Bytes::from_static(name(channel).as_bytes()),
                    message.raw_header.clone(),
                    message.parent.clone(),
                    message.metadata.clone(),
                    content,
                ];
                parts.extend(buffers);
                WebSocketMessage::Binary(join_with_offsets(&parts))
            }
            Self::Json => {
                let text = json_text(channel, message, &content);
                if buffers.is_empty() {
                    return WebSocketMessage::Text(text.into());
                }
                let mut parts = vec![Bytes::from(text)];
                parts.extend(buffers);
                WebSocketMessage::Binary(join_with_short_offsets(&parts))
            }
        }
    }

    /// The message in a frame of the server. `None`: it is malformed.
    pub(super) fn decode(self, frame: WebSocketMessage) -> Option<ReceivedMessage> {
        match (self, frame) {
            (Self::Binary, WebSocketMessage::Binary(bytes)) => {
                let mut parts = split_at_offsets(&bytes)?.into_iter();
                let channel = channel(std::str::from_utf8(&parts.next()?).ok()?)?;
                let parts: Vec<_> = parts.collect();
                (parts.len() >= PART_COUNT).then_some(ReceivedMessage { channel, parts })
            }
            (Self::Json, WebSocketMessage::Binary(bytes)) => {
                let mut parts = split_at_short_offsets(&bytes)?.into_iter();
                let mut message = decode_json(std::str::from_utf8(&parts.next()?).ok()?)?;
                message.parts.extend(parts);
                Some(message)
            }
            // Some servers send JSON texts whatever was agreed on.
            (_, WebSocketMessage::Text(text)) => decode_json(&text),
            _ => None,
        }
    }
}

/// The members of the JSON encoding, whose values stay text.
#[derive(Deserialize)]
struct JsonMessage<'a> {
    channel: &'a str,
    #[serde(borrow)]
    header: &'a RawValue,
    #[serde(borrow, default)]
    parent_header: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    content: &'a RawValue,
}

fn decode_json(text: &str) -> Option<ReceivedMessage> {
    let message: JsonMessage<'_> = serde_json::from_str(text).ok()?;
    let part = |value: &RawValue| Bytes::copy_from_slice(value.get().as_bytes());
    let object = |value: Option<&RawValue>| match value {
        Some(value) if value.get() != "null" => part(value),
        _ => Bytes::from_static(b"{}"),
    };
    Some(ReceivedMessage {
        channel: channel(message.channel)?,
        parts: vec![
            part(message.header),
            object(message.parent_header),
            object(message.metadata),
            part(message.content),
        ],
    })
}

fn json_text(channel: Channel, message: &Message, content: &[u8]) -> String {
    let part = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok();
        text.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok())
            .unwrap_or("{}")
            .to_owned()
    };
    format!(
        r#"{{"channel":{},"header":{},"parent_header":{},"metadata":{},"content":{},"buffers":[]}}"#,
        json!(name(channel)),
        part(&message.raw_header),
        part(&message.parent),
        part(&message.metadata),
        part(content),
    )
}

/// The number of offsets, the offsets of all parts and of the end, the parts.
fn join_with_offsets(parts: &[Bytes]) -> Bytes {
    let count = parts.len() + 1;
    let mut offset = 8 * (count + 1);
    let size: usize = parts.iter().map(Bytes::len).sum();
    let mut bytes = BytesMut::with_capacity(offset + size);
    bytes.put_u64_le(count as u64);
    bytes.put_u64_le(offset as u64);
    for part in parts {
        offset += part.len();
        bytes.put_u64_le(offset as u64);
    }
    for part in parts {
        bytes.put_slice(part);
    }
    bytes.freeze()
}

fn split_at_offsets(bytes: &Bytes) -> Option<Vec<Bytes>> {
    let number = |index: usize| {
        let at = index.checked_mul(8)?;
        let number = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let count = number(0).filter(|count| (2..=PARTS_MAX).contains(count))?;
    let offsets: Option<Vec<usize>> = (1..=count).map(number).collect();
    split(bytes, &offsets?)
}

/// The number of parts, their offsets, the parts.
fn join_with_short_offsets(parts: &[Bytes]) -> Bytes {
    let mut offset = 4 * (parts.len() + 1);
    let size: usize = parts.iter().map(Bytes::len).sum();
    let mut bytes = BytesMut::with_capacity(offset + size);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    bytes.put_u32(number(parts.len()));
    for part in parts {
        bytes.put_u32(number(offset));
        offset += part.len();
    }
    for part in parts {
        bytes.put_slice(part);
    }
    bytes.freeze()
}

fn split_at_short_offsets(bytes: &Bytes) -> Option<Vec<Bytes>> {
    let number = |index: usize| {
        let at = index.checked_mul(4)?;
        let number = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(number)).ok()
    };
    let count = number(0).filter(|count| (1..=PARTS_MAX).contains(count))?;
    let offsets: Option<Vec<usize>> = (1..=count).map(number).collect();
    let mut offsets = offsets?;
    offsets.push(bytes.len());
    split(bytes, &offsets)
}

/// The parts between each two offsets.
fn split(bytes: &Bytes, offsets: &[usize]) -> Option<Vec<Bytes>> {
    let part = |range: &[usize]| {
        let (start, end) = (range[0], range[1]);
        (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
    };
    offsets.windows(2).map(part).collect()
}

/// The name of a channel in a frame.
fn name(channel: Channel) -> &'static str {
    match channel {
        Channel::Shell => "shell",
        Channel::Iopub => "iopub",
        Channel::Stdin => "stdin",
        Channel::Control => "control",
        Channel::Heartbeat => "hb",
    }
}

fn channel(name: &str) -> Option<Channel> {
    Some(match name {
        "shell" => Channel::Shell,
        "iopub" => Channel::Iopub,
        "stdin" => Channel::Stdin,
        "control" => Channel::Control,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(buffers: &[&'static [u8]]) -> Message {
        let mut message = Message::new("execute_request", "s", &json!({"code": "é\u{1F600}"}));
        message.buffers = buffers.iter().map(|buffer| (*buffer).into()).collect();
        message
    }

    #[test]
    fn both_encodings_keep_all_parts() {
        for encoding in [Encoding::Binary, Encoding::Json] {
            let all: [&[&'static [u8]]; 2] = [&[], &[b"\x00\xff", b"", b"x"]];
            for buffers in all {
                let message = message(buffers);
                let frame = encoding.encode(Channel::Control, &message);
                let received = encoding.decode(frame).unwrap();
                assert_eq!(received.channel, Channel::Control);
                let content = message.content.bytes().unwrap();
                let head = [
                    &message.raw_header,
                    &message.parent,
                    &message.metadata,
                    &content,
                ];
                assert_eq!(
                    received.parts[..4].iter().collect::<Vec<_>>(),
                    head,
                    "{encoding:?}"
                );
                assert_eq!(received.parts[4..], *buffers, "{encoding:?}");
            }
        }
    }

    #[test]
    fn a_json_text_without_parent_and_metadata_is_a_message() {
        let text = r#"{"channel": "iopub", "header": {"msg_type": "status"}, "parent_header": null, "content": {"a": NaN_}}"#;
        assert_eq!(
            Encoding::Json.decode(WebSocketMessage::Text(text.into())),
            None
        );
        let text = text.replace("NaN_", "1.50");
        for encoding in [Encoding::Binary, Encoding::Json] {
            let received = encoding
                .decode(WebSocketMessage::Text(text.as_str().into()))
                .unwrap();
            let parts: Vec<&[u8]> = received.parts.iter().map(|part| &part[..]).collect();
            let expected: [&[u8]; 4] = [
                br#"{"msg_type": "status"}"#,
                b"{}",
                b"{}",
                br#"{"a": 1.50}"#,
            ];
            assert_eq!(parts, expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_rejected(bytes: Vec<u8>, count in 0_u8..9) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = count;
            }
            for encoding in [Encoding::Binary, Encoding::Json] {
                encoding.decode(WebSocketMessage::Binary(bytes.clone().into()));
            }
        }
    }
}
