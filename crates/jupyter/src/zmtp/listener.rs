//! [`Listener`]: where a kernel's socket waits for clients.

use std::io;
use std::path::PathBuf;

use tokio::net::{TcpListener, UnixListener};

use super::{Endpoint, Stream};

/// Waits for clients.
#[derive(Debug)]
pub struct Listener {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Tcp(TcpListener),
    /// With the file to take away in the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Begins to wait there.
    pub async fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        let inner = match endpoint {
            Endpoint::Tcp { host, port } => {
                Inner::Tcp(TcpListener::bind((host.as_str(), *port)).await?)
            }
            Endpoint::Ipc(path) => Inner::Unix(UnixListener::bind(path)?, path.clone()),
        };
        Ok(Self { inner })
    }

    /// Where it waits; the port is known even if any would do.
    pub fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(match &self.inner {
            Inner::Tcp(listener) => {
                let address = listener.local_addr()?;
                Endpoint::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                }
            }
            Inner::Unix(_, path) => Endpoint::Ipc(path.clone()),
        })
    }

    /// The next client. Cancel-safe.
    pub async fn accept(&self) -> io::Result<Stream> {
        match &self.inner {
            Inner::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Inner::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Inner::Unix(_, path) = &self.inner {
            // Somebody may have cleaned up before.
            std::fs::remove_file(path).ok();
        }
    }
}
