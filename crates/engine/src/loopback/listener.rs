//! [`LimitedListener`]: a TCP listener with limits on the number of connections and on the time that a client takes to
//! send a request. Any process on this machine can connect: its idle, slow and rejected connections must use up
//! neither file descriptors nor the places of clients that have the token.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};

pub use super::connections::{ConnectionHandle, ConnectionLimits, RequestGuard};
use super::connections::{Connections, ReadState};

/// A listener that limits its connections.
pub struct LimitedListener {
    listener: TcpListener,
    connections: Arc<Connections>,
}

impl LimitedListener {
    /// Accepts connections within these limits. If all places are taken, a new connection replaces the oldest one that
    /// has not authenticated, or an idle one; if there is none, it waits.
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        Self {
            listener,
            connections: Connections::new(limits),
        }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let number = self.connections.add().await;
        let stream = LimitedStream {
            stream,
            connections: Arc::clone(&self.connections),
            number,
            timer: Box::pin(sleep_until(Instant::now())),
        };
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection. Reading fails if a request does not arrive in time, or if the connection has to make room.
pub struct LimitedStream {
    stream: TcpStream,
    connections: Arc<Connections>,
    number: u64,
    timer: Pin<Box<Sleep>>,
}

impl Drop for LimitedStream {
    fn drop(&mut self) {
        self.connections.remove(self.number);
    }
}

impl Connected<IncomingStream<'_, LimitedListener>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, LimitedListener>) -> Self {
        let stream = stream.io();
        Self::new(&stream.connections, stream.number)
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let received = buffer.filled().len() > before;
        let state = self
            .connections
            .on_read(self.number, received, context.waker());
        match state {
            ReadState::Evicted => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            ReadState::Wait => read,
            ReadState::WaitUntil(deadline) => {
                if self.timer.deadline() != deadline {
                    self.timer.as_mut().reset(deadline);
                }
                // Also after data has arrived: single bytes do not extend the limit.
                if self.timer.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                read
            }
        }
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
