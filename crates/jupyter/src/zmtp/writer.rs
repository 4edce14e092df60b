//! [`Writer`]: the messages that go over a connection.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::error::ZmtpError;
use super::flag;
use super::stream::WriteHalf;

/// A frame from this size on is written from where it is.
const LARGE: usize = 32 * 1024;

/// Writes what goes over a connection.
#[derive(Debug)]
pub struct Writer<W = Half> {
    half: W,
    buffer: BytesMut,
}

/// The writing half of a connection.
#[derive(Debug)]
pub struct Half(pub(super) WriteHalf);

impl AsyncWrite for Half {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes to anything that takes a connection's bytes.
    pub fn new(half: W) -> Self {
        Self {
            half,
            buffer: BytesMut::new(),
        }
    }

    /// Writes a message. If this is given up half way, nothing else can be said on this connection.
    pub async fn send(&mut self, frames: &[Bytes]) -> Result<(), ZmtpError> {
        for (at, frame) in frames.iter().enumerate() {
            let more = if at + 1 < frames.len() { flag::MORE } else { 0 };
            self.head(more, frame.len());
            if frame.len() < LARGE {
                self.buffer.put_slice(frame);
                if self.buffer.len() >= LARGE {
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
    pub async fn command(&mut self, name: &str, carries: &[u8]) -> Result<(), ZmtpError> {
        let length = 1 + name.len() + carries.len();
        self.head(flag::COMMAND, length);
        self.buffer
            .put_u8(u8::try_from(name.len()).unwrap_or_default());
        self.buffer.put_slice(name.as_bytes());
        self.buffer.put_slice(carries);
        self.flush().await
    }

    /// Writes bytes as they are.
    pub(super) async fn raw(&mut self, bytes: &[u8]) -> Result<(), ZmtpError> {
        self.half.write_all(bytes).await?;
        Ok(())
    }

    /// Says that nothing more will come. Everything before it has been handed to the system.
    pub async fn close(mut self) {
        // The other side may be gone, which is as good.
        self.half.shutdown().await.ok();
    }

    fn head(&mut self, flags: u8, length: usize) {
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
