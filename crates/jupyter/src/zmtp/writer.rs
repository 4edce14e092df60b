//! [`Writer`]: writes messages and commands to a connection.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::error::ZmtpError;
use super::flag;
use super::stream::WriteHalf;

/// A frame from this size on is written without a copy into the buffer.
const LARGE_FRAME_SIZE: usize = 32 * 1024;

/// Writes messages and commands to a connection.
#[derive(Debug)]
pub struct Writer<W = WriteHalf> {
    half: W,
    buffer: BytesMut,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// A writer of a connection's bytes.
    pub fn new(half: W) -> Self {
        Self {
            half,
            buffer: BytesMut::new(),
        }
    }

    /// Writes a message. Not cancel-safe: after a cancelled call the connection cannot be used any more.
    pub async fn send(&mut self, frames: &[Bytes]) -> Result<(), ZmtpError> {
        for (at, frame) in frames.iter().enumerate() {
            let more = if at + 1 < frames.len() { flag::MORE } else { 0 };
            self.push_header(more, frame.len());
            if frame.len() < LARGE_FRAME_SIZE {
                self.buffer.put_slice(frame);
                if self.buffer.len() >= LARGE_FRAME_SIZE {
                    self.flush().await?;
                }
            } else {
                self.flush().await?;
                self.half.write_all(frame).await?;
            }
        }
        self.flush().await
    }

    /// Writes a command.
    pub async fn send_command(&mut self, name: &str, data: &[u8]) -> Result<(), ZmtpError> {
        let length = 1 + name.len() + data.len();
        self.push_header(flag::COMMAND, length);
        self.buffer
            .put_u8(u8::try_from(name.len()).unwrap_or_default());
        self.buffer.put_slice(name.as_bytes());
        self.buffer.put_slice(data);
        self.flush().await
    }

    /// Writes bytes without a frame around them.
    pub(super) async fn send_raw(&mut self, bytes: &[u8]) -> Result<(), ZmtpError> {
        self.half.write_all(bytes).await?;
        Ok(())
    }

    /// Closes this half of the connection. The system already has all earlier bytes.
    pub async fn close(mut self) {
        // An error means that the peer has disconnected already.
        self.half.shutdown().await.ok();
    }

    fn push_header(&mut self, flags: u8, length: usize) {
        if let Ok(length) = u8::try_from(length) {
            self.buffer.put_u8(flags);
            self.buffer.put_u8(length);
        } else {
            self.buffer.put_u8(flags | flag::LONG);
            self.buffer.put_u64(length as u64);
        }
    }

    async fn flush(&mut self) -> Result<(), ZmtpError> {
        if !self.buffer.is_empty() {
            self.half.write_all(&self.buffer).await?;
            self.buffer.clear();
        }
        Ok(())
    }
}
