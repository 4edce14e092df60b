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

/// How long a host stays awake after an answer.
const SPIN_TIME: Duration = Duration::from_micros(100);

/// Frames both ways. The two halves can be used at the same time.
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

    /// The next frame of the other side; `None` when it has closed. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        self.reader.next().await
    }

    /// Stays awake for a moment: whoever has just got an answer often asks again at once, and to be woken
    /// up takes longer than that.
    pub fn spin_for_request(&self) {
        let stream: &UnixStream = self.reader.inner().as_ref();
        busy_poll::spin_until_readable(stream, SPIN_TIME);
    }

    /// Sends an object.
    pub async fn send(&mut self, head: &impl Serialize) -> Result<(), FrameError> {
        self.writer.send(head).await
    }

    /// Sends an object with bytes after it.
    pub async fn send_with(
        &mut self,
        head: &impl Serialize,
        payload: &[u8],
    ) -> Result<(), FrameError> {
        self.writer.send_with(head, payload).await
    }

    /// Ends an answer by saying no: a code for programs, words for people.
    pub async fn send_refusal(&mut self, code: &str, message: &str) -> Result<(), FrameError> {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"end": true, "error": error})).await
    }
}

/// A connection to a host that has said who it is.
#[derive(Debug)]
pub struct Client {
    pub connection: Connection,
    pub host: HostHello,
}

impl Client {
    /// An error unless the host speaks as we do.
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

    /// Sends a request and waits for the frame that ends the answer, passing over those before it.
    pub async fn request(
        &mut self,
        request: &impl Serialize,
        patience: Duration,
    ) -> Result<Value, HostError> {
        let pid = self.host.pid;
        let answer = async {
            self.connection.send(request).await?;
            loop {
                let frame = self.connection.next().await?;
                let value = frame.ok_or(HostError::Disconnected)?.value()?;
                if value.get("end").is_some() {
                    return check_refusal(value);
                }
            }
        };
        match tokio::time::timeout(patience, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(HostError::Unresponsive { pid }),
        }
    }
}

/// The end of an answer, unless it says no.
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

/// Whether whoever is at the other end acts for our user; if not, for whom.
pub(super) fn foreign_peer(stream: &UnixStream) -> io::Result<Option<u32>> {
    let peer = stream.peer_cred()?.uid();
    Ok((peer != cellwright_kernel::process::daemon::effective_user()).then_some(peer))
}
