//! How a connection begins: a greeting of fixed size, then one command each.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use super::error::ZmtpError;
use super::reader::{self, Incoming, Limits, Reader};
use super::writer::{self, Writer};
use super::{Endpoint, Stream};

const GREETING_BYTES: usize = 64;

/// Longer identities are not allowed by the protocol.
const IDENTITY_BYTES: usize = 255;

/// What a greeting or a first command may cost.
const HANDSHAKE: Limits = Limits {
    message_bytes: 64 * 1024,
    frames: 1,
};

/// The socket types of the five channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client's end of shell, stdin and control.
    Dealer,
    /// A kernel's end of them.
    Router,
    /// A client's end of iopub.
    Sub,
    /// A kernel's end of it.
    Xpub,
    /// A client's end of the heartbeat.
    Req,
    /// A kernel's end of it.
    Rep,
}

impl Role {
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

    /// Whether it can talk with a socket of that type.
    fn goes_with(self, other: &[u8]) -> bool {
        let fitting: &[&[u8]] = match self {
            Self::Dealer => &[b"ROUTER", b"DEALER", b"REP"],
            Self::Router => &[b"DEALER", b"REQ", b"ROUTER"],
            Self::Sub => &[b"PUB", b"XPUB"],
            Self::Xpub => &[b"SUB", b"XSUB"],
            Self::Req => &[b"REP", b"ROUTER"],
            Self::Rep => &[b"REQ", b"DEALER"],
        };
        fitting.contains(&other)
    }
}

/// A connection whose other side has said who it is.
#[derive(Debug)]
pub struct Peer {
    /// What comes from it.
    pub reader: Reader,
    /// What goes to it.
    pub writer: Writer,
    /// The name that it gave itself; empty for most.
    pub identity: Bytes,
}

/// Connects once, and says who we are.
pub async fn connect(
    endpoint: &Endpoint,
    role: Role,
    identity: &[u8],
    limits: Limits,
) -> Result<Peer, ZmtpError> {
    let stream = Stream::connect(endpoint).await?;
    greet(stream, role, identity, limits).await
}

/// Says who we are on a connection that has just been made, and hears who is there.
pub async fn greet(
    stream: Stream,
    role: Role,
    identity: &[u8],
    limits: Limits,
) -> Result<Peer, ZmtpError> {
    let (read, write) = stream.split();
    let (mut read, mut writer) = (reader::Half(read), Writer::new(writer::Half(write)));
    writer.raw(&greeting()).await?;
    let mut theirs = [0; GREETING_BYTES];
    read.read_exact(&mut theirs).await?;
    check_greeting(&theirs)?;
    writer.command("READY", &properties(role, identity)).await?;
    let mut first = Reader::new(read, HANDSHAKE);
    let identity = match first.next().await? {
        Some(Incoming::Command(name, carries)) if name == "READY" => check_ready(role, carries)?,
        Some(Incoming::Command(name, carries)) if name == "ERROR" => {
            let length = carries.first().map_or(0, |length| usize::from(*length));
            let reason = carries.get(1..).unwrap_or_default();
            let reason = &reason[..length.min(reason.len())];
            let reason = String::from_utf8_lossy(reason).into_owned();
            return Err(ZmtpError::Refused { reason });
        }
        Some(_) => return Err(ZmtpError::NotZmtp),
        None => return Err(ZmtpError::Io(std::io::ErrorKind::UnexpectedEof.into())),
    };
    Ok(Peer {
        reader: first.with_limits(limits),
        writer,
        identity,
    })
}

fn greeting() -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    greeting[0] = 0xff;
    greeting[8] = 1;
    greeting[9] = 0x7f;
    // Version 3.0: subscriptions are messages, nobody pings.
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn check_greeting(theirs: &[u8; GREETING_BYTES]) -> Result<(), ZmtpError> {
    if theirs[0] != 0xff || theirs[9] & 1 == 0 || theirs[10] < 3 {
        return Err(ZmtpError::NotZmtp);
    }
    let mechanism = &theirs[12..32];
    let name = mechanism.split(|byte| *byte == 0).next();
    let name = name.unwrap_or_default();
    if name == b"NULL" {
        return Ok(());
    }
    let mechanism = String::from_utf8_lossy(name).into_owned();
    Err(ZmtpError::Mechanism { mechanism })
}

fn properties(role: Role, identity: &[u8]) -> BytesMut {
    let mut properties = BytesMut::new();
    let mut property = |name: &str, value: &[u8]| {
        properties.put_u8(u8::try_from(name.len()).unwrap_or_default());
        properties.put_slice(name.as_bytes());
        properties.put_u32(u32::try_from(value.len()).unwrap_or_default());
        properties.put_slice(value);
    };
    property("Socket-Type", role.name().as_bytes());
    if !identity.is_empty() {
        let identity = &identity[..identity.len().min(IDENTITY_BYTES)];
        property("Identity", identity);
    }
    properties
}

/// The identity that the other side gives, if it is a socket that we can talk with.
fn check_ready(role: Role, mut carries: Bytes) -> Result<Bytes, ZmtpError> {
    let what = "a property is cut short";
    let malformed = || ZmtpError::Malformed { what };
    let mut identity = Bytes::new();
    let mut found = Bytes::new();
    while carries.has_remaining() {
        let name = usize::from(carries.get_u8());
        if carries.len() < name + 4 {
            return Err(malformed());
        }
        let name = carries.split_to(name);
        let value = usize::try_from(carries.get_u32()).map_err(|_| malformed())?;
        if carries.len() < value {
            return Err(malformed());
        }
        let value = carries.split_to(value);
        if name.eq_ignore_ascii_case(b"socket-type") {
            found = value;
        } else if name.eq_ignore_ascii_case(b"identity") {
            if value.len() > IDENTITY_BYTES {
                let what = "an identity is too long";
                return Err(ZmtpError::Malformed { what });
            }
            // A copy, so that a short name does not hold on to a large buffer.
            identity = Bytes::copy_from_slice(&value);
        }
    }
    if !role.goes_with(&found) {
        let found = String::from_utf8_lossy(&found).into_owned();
        return Err(ZmtpError::WrongPeer { found });
    }
    Ok(identity)
}
