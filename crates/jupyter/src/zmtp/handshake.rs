//! The handshake: each side sends a greeting of fixed size, then one command.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::error::ZmtpError;
use super::reader::{Limits, Reader, ReceivedItem};
use super::writer::Writer;
use super::{Endpoint, Stream};

/// Size of a greeting in bytes.
const GREETING_SIZE: usize = 64;

/// Size of the longest identity that the protocol allows, in bytes.
const IDENTITY_SIZE_LIMIT: usize = 255;

/// Limits on the first command.
const HANDSHAKE_LIMITS: Limits = Limits {
    message_bytes: 64 * 1024,
    frames: 1,
};

/// The type of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketType {
    /// Sends and receives messages asynchronously.
    Dealer,
    /// Routes messages to peers by their identities.
    Router,
    /// Receives the topics that it subscribes to.
    Sub,
    /// Publishes messages and receives subscriptions.
    Xpub,
    /// Sends a request, then receives its reply.
    Req,
    /// Receives a request, then sends its reply.
    Rep,
}

impl SocketType {
    fn name(self) -> &'static str {
        match self {
            Self::Dealer => "DEALER",
            Self::Router => "ROUTER",
            Self::Sub => "SUB",
            Self::Xpub => "XPUB",
            Self::Req => "REQ",
            Self::Rep => "REP",
        }
    }

    /// Whether the protocol allows a connection to a socket of type `other`.
    fn accepts(self, other: &[u8]) -> bool {
        let compatible: &[&[u8]] = match self {
            Self::Dealer => &[b"ROUTER", b"DEALER", b"REP"],
            Self::Router => &[b"DEALER", b"REQ", b"ROUTER"],
            Self::Sub => &[b"PUB", b"XPUB"],
            Self::Xpub => &[b"SUB", b"XSUB"],
            Self::Req => &[b"REP", b"ROUTER"],
            Self::Rep => &[b"REQ", b"DEALER"],
        };
        compatible.contains(&other)
    }
}

/// A connection after the handshake.
#[derive(Debug)]
pub struct Peer {
    /// Reads from the peer.
    pub reader: Reader,
    /// Writes to the peer.
    pub writer: Writer,
    /// The identity that the peer has chosen; usually empty.
    pub identity: Bytes,
}

/// Connects once and performs the handshake.
pub async fn connect(
    endpoint: &Endpoint,
    socket_type: SocketType,
    identity: &[u8],
    limits: Limits,
) -> Result<Peer, ZmtpError> {
    let stream = Stream::connect(endpoint).await?;
    handshake(stream, socket_type, identity, limits).await
}

/// Performs the handshake on a new connection.
pub async fn handshake(
    stream: Stream,
    socket_type: SocketType,
    identity: &[u8],
    limits: Limits,
) -> Result<Peer, ZmtpError> {
    let (mut read, write) = stream.split();
    let mut writer = Writer::new(write);
    writer.send_raw(&greeting()).await?;
    let mut received = [0; GREETING_SIZE];
    read.read_exact(&mut received).await?;
    check_greeting(&received)?;
    writer
        .send_command("READY", &encode_properties(socket_type, identity))
        .await?;
    let mut reader = Reader::new(read, HANDSHAKE_LIMITS);
    let identity = match reader.next().await? {
        Some(ReceivedItem::Command(name, data)) if name == "READY" => {
            parse_ready(socket_type, data)?
        }
        Some(ReceivedItem::Command(name, data)) if name == "ERROR" => {
            let length = data.first().map_or(0, |length| usize::from(*length));
            let reason = data.get(1..).unwrap_or_default();
            let reason = &reason[..length.min(reason.len())];
            let reason = String::from_utf8_lossy(reason).into_owned();
            return Err(ZmtpError::PeerError { reason });
        }
        Some(_) => return Err(ZmtpError::NotZmtp),
        None => return Err(ZmtpError::Io(std::io::ErrorKind::UnexpectedEof.into())),
    };
    Ok(Peer {
        reader: reader.with_limits(limits),
        writer,
        identity,
    })
}

fn greeting() -> [u8; GREETING_SIZE] {
    let mut greeting = [0; GREETING_SIZE];
    greeting[0] = 0xff;
    greeting[8] = 1;
    greeting[9] = 0x7f;
    // Version 3.0: subscriptions are messages, and peers send no PING.
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn check_greeting(received: &[u8; GREETING_SIZE]) -> Result<(), ZmtpError> {
    if received[0] != 0xff || received[9] & 1 == 0 || received[10] < 3 {
        return Err(ZmtpError::NotZmtp);
    }
    let mechanism = &received[12..32];
    let name = mechanism.split(|byte| *byte == 0).next();
    let name = name.unwrap_or_default();
    if name == b"NULL" {
        return Ok(());
    }
    let mechanism = String::from_utf8_lossy(name).into_owned();
    Err(ZmtpError::UnsupportedMechanism { mechanism })
}

fn encode_properties(socket_type: SocketType, identity: &[u8]) -> BytesMut {
    let mut properties = BytesMut::new();
    let mut property = |name: &str, value: &[u8]| {
        properties.put_u8(u8::try_from(name.len()).unwrap_or_default());
        properties.put_slice(name.as_bytes());
        properties.put_u32(u32::try_from(value.len()).unwrap_or_default());
        properties.put_slice(value);
    };
    property("Socket-Type", socket_type.name().as_bytes());
    if !identity.is_empty() {
        let identity = &identity[..identity.len().min(IDENTITY_SIZE_LIMIT)];
        property("Identity", identity);
    }
    properties
}

/// Checks the peer's socket type and returns its identity.
fn parse_ready(socket_type: SocketType, mut data: Bytes) -> Result<Bytes, ZmtpError> {
    let violation = "a truncated property";
    let malformed = || ZmtpError::Malformed { violation };
    let mut identity = Bytes::new();
    let mut found = Bytes::new();
    while data.has_remaining() {
        let name = usize::from(data.get_u8());
        if data.len() < name + 4 {
            return Err(malformed());
        }
        let name = data.split_to(name);
        let value = usize::try_from(data.get_u32()).map_err(|_| malformed())?;
        if data.len() < value {
            return Err(malformed());
        }
        let value = data.split_to(value);
        if name.eq_ignore_ascii_case(b"socket-type") {
            found = value;
        } else if name.eq_ignore_ascii_case(b"identity") {
            if value.len() > IDENTITY_SIZE_LIMIT {
                let violation = "an identity of more than 255 bytes";
                return Err(ZmtpError::Malformed { violation });
            }
            // A copy, because a slice would keep a large buffer alive.
            identity = Bytes::copy_from_slice(&value);
        }
    }
    if !socket_type.accepts(&found) {
        let found = String::from_utf8_lossy(&found).into_owned();
        return Err(ZmtpError::IncompatibleSocket { found });
    }
    Ok(identity)
}
