//! [`Connection`]: sends and receives frames over a socket, on either side.

use std::io;
use std::time::Duration;

use cellwright_kernel::process::busy_poll;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::error::HostError;
use super::frame::{Frame, FrameError, FrameReader, FrameWriter};
use super::hello::{HostHello, PROTOCOL};
use super::suspend_check::SuspendCheck;

/// Time that a host polls for the next request after a reply.
const SPIN_TIMEOUT: Duration = Duration::from_micros(100);

/// A socket that carries frames in both directions. Both halves can be used at the same time.
#[derive(Debug)]
pub struct Connection {
    pub reader: FrameReader<OwnedReadHalf>,
    pub writer: FrameWriter<OwnedWriteHalf>,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            reader: FrameReader::new(read),
            writer: FrameWriter::new(write),
        }
    }

    /// Receives the next frame. Returns `None` when the peer has closed the connection. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        self.reader.next().await
    }

    /// Polls for the next request for a short time: after a reply, a client often sends the next request at once, and
    /// waking a sleeping thread takes longer.
    pub fn spin_for_request(&self) {
        let stream: &UnixStream = self.reader.inner().as_ref();
        busy_poll::spin_until_readable(stream, SPIN_TIMEOUT);
    }

    /// Sends a JSON object.
    pub async fn send(&mut self, head: &impl Serialize) -> Result<(), FrameError> {
        self.writer.send(head).await
    }

    /// Sends a JSON object and the raw bytes that follow it.
    pub async fn send_with(
        &mut self,
        head: &impl Serialize,
        payload: &[u8],
    ) -> Result<(), FrameError> {
        self.writer.send_with(head, payload).await
    }

    /// Ends a reply with an error: a code for programs and a message for users.
    pub async fn send_refusal(&mut self, code: &str, message: &str) -> Result<(), FrameError> {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"end": true, "error": error})).await
    }
}

/// A connection to a host, after the hello.
#[derive(Debug)]
pub struct Client {
    pub connection: Connection,
    pub host: HostHello,
}

impl Client {
    /// Returns an error unless the host uses the protocol of this program.
    pub fn check_protocol(self) -> Result<Self, HostError> {
        if self.host.protocol == PROTOCOL {
            return Ok(self);
        }
        Err(HostError::ProtocolMismatch {
            pid: self.host.pid,
            protocol: self.host.protocol,
            version: self.host.version,
        })
    }

    /// Sends a request and returns the frame that ends the reply. Discards the frames before it.
    pub async fn request(
        &mut self,
        request: &impl Serialize,
        timeout: Duration,
    ) -> Result<Value, HostError> {
        let pid = self.host.pid;
        let reply = async {
            self.connection.send(request).await?;
            loop {
                let frame = self.connection.next().await?;
                let value = frame.ok_or(HostError::Disconnected)?.value()?;
                if value.get("end").is_some() {
                    return check_refusal(value);
                }
            }
        };
        let mut suspend_check = SuspendCheck::new(pid);
        tokio::select! {
            biased;
            reply = tokio::time::timeout(timeout, reply) => match reply {
                Ok(reply) => reply,
                Err(_) => Err(HostError::Unresponsive { pid }),
            },
            () = suspend_check.suspended() => Err(HostError::Unresponsive { pid }),
        }
    }
}

/// Returns the last frame of a reply, or its error.
pub fn check_refusal(end: Value) -> Result<Value, HostError> {
    let Some(error) = end.get("error") else {
        return Ok(end);
    };
    let text = |name: &str| {
        let text = error.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    Err(HostError::Refused {
        code: text("code"),
        message: text("message"),
    })
}

/// Returns the user id of the peer if it is not the user of this process.
pub(super) fn foreign_peer(stream: &UnixStream) -> io::Result<Option<u32>> {
    let peer = stream.peer_cred()?.uid();
    Ok((peer != cellwright_kernel::process::daemon::effective_user()).then_some(peer))
}
