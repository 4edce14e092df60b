//! [`Listener`]: accepts connections.

use std::io;
use std::path::PathBuf;

use tokio::net::{TcpListener, UnixListener};

use super::{Endpoint, Stream};

/// A bound socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    socket: BoundSocket,
}

#[derive(Debug)]
enum BoundSocket {
    Tcp(TcpListener),
    /// With the path of its file, which is removed at the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Binds a socket and listens.
    pub async fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        let socket = match endpoint {
            Endpoint::Tcp { host, port } => {
                BoundSocket::Tcp(TcpListener::bind((host.as_str(), *port)).await?)
            }
            Endpoint::Ipc(path) => BoundSocket::Unix(UnixListener::bind(path)?, path.clone()),
        };
        Ok(Self { socket })
    }

    /// The address of the socket, with the actual port.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(match &self.socket {
            BoundSocket::Tcp(listener) => {
                let address = listener.local_addr()?;
                Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                }
            }
            BoundSocket::Unix(_, path) => Endpoint::Ipc(path.clone()),
        })
    }

    /// Waits for the next connection. Cancel-safe.
    pub async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            BoundSocket::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            BoundSocket::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let BoundSocket::Unix(_, path) = &self.socket {
            // The file may be gone already.
            std::fs::remove_file(path).ok();
        }
    }
}
