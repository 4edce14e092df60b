//! An HTTP proxy that opens tunnels with `CONNECT`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::Service;

const HEAD_LIMIT: usize = 64 * 1024;
const HEADERS_MAX: usize = 64;

/// A running proxy. It ends with all its tunnels when it is dropped.
pub struct ConnectProxy {
    service: Service,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    tunnels: AtomicUsize,
    refusals: AtomicUsize,
}

impl ConnectProxy {
    /// Starts a proxy for all clients.
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// Starts a proxy for clients that send this user and password with the `Basic` scheme.
    pub fn with_password(user: &str, password: &str) -> Self {
        Self::serve(Some(format!(
            "Basic {}",
            BASE64_STANDARD.encode(format!("{user}:{password}"))
        )))
    }

    fn serve(authorization: Option<String>) -> Self {
        let counts = Arc::<Counts>::default();
        let service = Service::start({
            let counts = Arc::clone(&counts);
            async move |listener| {
                while let Ok((client, _)) = listener.accept().await {
                    let counts = Arc::clone(&counts);
                    let authorization = authorization.clone();
                    tokio::spawn(async move {
                        tunnel(client, authorization.as_deref(), &counts).await.ok();
                    });
                }
            }
        });
        Self { service, counts }
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// `http://ADDRESS`, the value of `HTTPS_PROXY`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Number of tunnels that were opened.
    pub fn tunnels(&self) -> usize {
        self.counts.tunnels.load(Ordering::SeqCst)
    }

    /// Number of requests that were refused.
    pub fn refusals(&self) -> usize {
        self.counts.refusals.load(Ordering::SeqCst)
    }
}

async fn tunnel(
    mut client: TcpStream,
    authorization: Option<&str>,
    counts: &Counts,
) -> io::Result<()> {
    let mut head = Vec::new();
    // Byte by byte: what follows the head belongs to the tunnel.
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_LIMIT {
        head.push(client.read_u8().await?);
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(&head).map_err(io::Error::other)?;
    let sent = request
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("proxy-authorization"))
        .map(|header| header.value);
    let refusal = if authorization.is_some() && sent != authorization.map(str::as_bytes) {
        Some("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"test\"")
    } else if request.method != Some("CONNECT") {
        Some("405 Method Not Allowed")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        counts.refusals.fetch_add(1, Ordering::SeqCst);
        let answer =
            format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return client.write_all(answer.as_bytes()).await;
    }
    let target = request.path.unwrap_or_default().to_owned();
    let Ok(mut server) = TcpStream::connect(target).await else {
        counts.refusals.fetch_add(1, Ordering::SeqCst);
        return client
            .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            .await;
    };
    counts.tunnels.fetch_add(1, Ordering::SeqCst);
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::ConnectProxy;
    use crate::service::Service;

    fn greeter() -> Service {
        Service::start(async |listener| {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"greeting").await.ok();
            }
        })
    }

    async fn request(proxy: &ConnectProxy, head: &str) -> String {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn a_tunnel_carries_bytes() {
        let server = greeter();
        let proxy = ConnectProxy::start();
        let head = format!("CONNECT {} HTTP/1.1\r\n\r\n", server.address());
        let answer = request(&proxy, &head).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\ngreeting"), "{answer}");
        let answer = request(&proxy, "GET http://x/ HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        assert_eq!((proxy.tunnels(), proxy.refusals()), (1, 1));
    }

    #[tokio::test]
    async fn a_password_is_required() {
        let server = greeter();
        let proxy = ConnectProxy::with_password("user", "secret");
        let head = format!("CONNECT {} HTTP/1.1\r\n", server.address());
        let answer = request(&proxy, &format!("{head}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
        let sent = format!("{head}Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n");
        assert!(request(&proxy, &sent).await.ends_with("greeting"));
        assert_eq!((proxy.tunnels(), proxy.refusals()), (1, 1));
    }
}
