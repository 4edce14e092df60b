//! [`Stream`]: a TCP or Unix socket connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

use super::Endpoint;

/// A TCP or Unix socket connection.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects once.
    pub async fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                // Requests must not wait for more data.
                stream.set_nodelay(true)?;
                if stream.local_addr()? == stream.peer_addr()? {
                    // The socket is connected to itself: no process listens, and the system chose the target
                    // port as the local one.
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                Ok(Self::Tcp(stream))
            }
            Endpoint::Ipc(path) => Ok(Self::Unix(UnixStream::connect(path).await?)),
        }
    }

    /// Splits the connection into its two halves.
    pub(super) fn split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Self::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            Self::Unix(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write))
            }
        }
    }
}

/// The reading half of a connection.
#[derive(Debug)]
pub enum ReadHalf {
    /// Of a TCP connection.
    Tcp(tcp::OwnedReadHalf),
    /// Of a Unix socket.
    Unix(unix::OwnedReadHalf),
}

/// The writing half of a connection.
#[derive(Debug)]
pub enum WriteHalf {
    /// Of a TCP connection.
    Tcp(tcp::OwnedWriteHalf),
    /// Of a Unix socket.
    Unix(unix::OwnedWriteHalf),
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_read(context, buffer),
            Self::Unix(half) => Pin::new(half).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_write(context, bytes),
            Self::Unix(half) => Pin::new(half).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_flush(context),
            Self::Unix(half) => Pin::new(half).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_shutdown(context),
            Self::Unix(half) => Pin::new(half).poll_shutdown(context),
        }
    }
}
