//! [`LimitedListener`]: a TCP listener with a limit on connections and a timeout for the first byte. Any process on this
//! machine can connect; idle connections must not use up the file descriptors that sessions need.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// How long a connection may wait before its first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(5);

/// A listener that limits the number of open connections.
pub struct LimitedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl LimitedListener {
    /// Accepts up to `max_connections` at once; others wait in the backlog of the system.
    pub fn new(listener: TcpListener, max_connections: usize) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(max_connections)),
        }
    }
}

impl Listener for LimitedListener {
    type Io = TimedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedStream, SocketAddr) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let stream = TimedStream {
            stream,
            first_byte_timer: Some(Box::pin(sleep(FIRST_BYTE_TIMEOUT))),
            _permit: permit,
        };
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection. Reading fails if the first byte does not arrive in time.
pub struct TimedStream {
    stream: TcpStream,
    /// Runs until the first byte arrives.
    first_byte_timer: Option<Pin<Box<Sleep>>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.first_byte_timer = None;
        } else if let Some(timer) = &mut self.first_byte_timer
            && timer.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for TimedStream {
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
