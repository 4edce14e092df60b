//! Peers that break the rules: by mistake, or on purpose.

mod doors;
mod frames;
mod greeting;
mod signed;

use bytes::{BufMut, Bytes};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::wire::Wire;
use cellwright_jupyter::zmtp::{Limits, Peer, Role, Stream, ZmtpError, greet};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::support::{KEY, within};

/// A greeting as it should be.
fn greeting() -> Vec<u8> {
    let mut greeting = vec![0; 64];
    greeting[0] = 0xff;
    greeting[8] = 1;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn frame(flags: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![flags | 2];
    frame.put_u64(bytes.len() as u64);
    frame.put_slice(bytes);
    frame
}

/// A frame of which only the beginning is there.
fn announced(flags: u8, length: u64) -> Vec<u8> {
    let mut frame = vec![flags | 2];
    frame.put_u64(length);
    frame
}

fn property(name: &str, value: &[u8]) -> Vec<u8> {
    let mut property = vec![u8::try_from(name.len()).unwrap()];
    property.put_slice(name.as_bytes());
    property.put_u32(u32::try_from(value.len()).unwrap());
    property.put_slice(value);
    property
}

fn ready(properties: &[u8]) -> Vec<u8> {
    frame(4, &[&b"\x05READY"[..], properties].concat())
}

/// Greeting and first command of a socket.
fn opening(kind: &str) -> Vec<u8> {
    let properties = property("Socket-Type", kind.as_bytes());
    [greeting(), ready(&properties)].concat()
}

/// A signed message, as it is on a connection.
fn signed_bytes(msg_type: &str) -> Vec<u8> {
    let message = Message::new(msg_type, "s", &json!({"a": 1}));
    whole(&Wire::new(KEY).encode(&message))
}

fn whole(frames: &[Bytes]) -> Vec<u8> {
    let last = frames.len() - 1;
    let frames = frames.iter().enumerate();
    frames
        .flat_map(|(at, bytes)| frame(u8::from(at < last), bytes))
        .collect()
}

/// What comes of a handshake with somebody who says just that, and goes.
async fn met(role: Role, bytes: &[u8]) -> Result<Peer, ZmtpError> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let bytes = bytes.to_vec();
    let says = async move {
        // We may have hung up before it is through.
        theirs.write_all(&bytes).await.ok();
        theirs.shutdown().await.ok();
        theirs
    };
    let greets = greet(Stream::Unix(ours), role, b"", Limits::default());
    let (result, _theirs) = within(async { tokio::join!(greets, says) }).await;
    result
}
