//! Peers that violate the protocols, by mistake or on purpose.

mod endpoints;
mod frames;
mod greeting;
mod messages;

use bytes::{BufMut, Bytes};
use cellwright_jupyter::codec::MessageCodec;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::zmtp::{Limits, Peer, SocketType, Stream, ZmtpError, handshake};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::support::{KEY, within};

/// A valid greeting.
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

/// The header of a frame without its bytes.
fn frame_header(flags: u8, length: u64) -> Vec<u8> {
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

/// The handshake of a socket: greeting and READY.
fn opening(socket_type: &str) -> Vec<u8> {
    let properties = property("Socket-Type", socket_type.as_bytes());
    [greeting(), ready(&properties)].concat()
}

/// The bytes of a signed message on a connection.
fn signed_bytes(msg_type: &str) -> Vec<u8> {
    let message = Message::new(msg_type, "s", &json!({"a": 1}));
    encode_frames(&MessageCodec::new(KEY).encode(&message))
}

fn encode_frames(frames: &[Bytes]) -> Vec<u8> {
    let last = frames.len() - 1;
    let frames = frames.iter().enumerate();
    frames
        .flat_map(|(at, bytes)| frame(u8::from(at < last), bytes))
        .collect()
}

/// The result of a handshake with a peer that sends these bytes and disconnects.
async fn handshake_with(socket_type: SocketType, bytes: &[u8]) -> Result<Peer, ZmtpError> {
    let (local, mut remote) = UnixStream::pair().unwrap();
    let bytes = bytes.to_vec();
    let peer = async move {
        // The connection may be closed before all bytes are written.
        remote.write_all(&bytes).await.ok();
        remote.shutdown().await.ok();
        remote
    };
    let handshake = handshake(Stream::Unix(local), socket_type, b"", Limits::default());
    let (result, _remote) = within(async { tokio::join!(handshake, peer) }).await;
    result
}
