//! Certificates made at test time, and a server that terminates TLS before a server without it.

mod certificates;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

pub use self::certificates::{Authority, Identity};
use crate::fault_proxy::replace_authority;
use crate::service::Service;

/// Terminates TLS and forwards to a server without it. It ends with all its connections when it is dropped.
pub struct TlsFront {
    service: Service,
    handshakes: Arc<Handshakes>,
}

#[derive(Default)]
struct Handshakes {
    completed: AtomicUsize,
    failed: AtomicUsize,
}

impl TlsFront {
    /// Starts a server with the certificate `identity` before the server at `upstream`. With `clients`, it accepts only
    /// clients that have a certificate of that authority.
    pub fn start(upstream: SocketAddr, identity: &Identity, clients: Option<&Authority>) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(server_config(identity, clients)));
        let handshakes = Arc::<Handshakes>::default();
        let service = Service::start({
            let handshakes = Arc::clone(&handshakes);
            async move |listener| {
                while let Ok((client, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    let handshakes = Arc::clone(&handshakes);
                    tokio::spawn(async move {
                        client.set_nodelay(true).ok();
                        let Ok(mut client) = acceptor.accept(client).await else {
                            handshakes.failed.fetch_add(1, Ordering::SeqCst);
                            return;
                        };
                        handshakes.completed.fetch_add(1, Ordering::SeqCst);
                        if let Ok(mut server) = TcpStream::connect(upstream).await {
                            server.set_nodelay(true).ok();
                            tokio::io::copy_bidirectional(&mut client, &mut server)
                                .await
                                .ok();
                        }
                    });
                }
            }
        });
        Self {
            service,
            handshakes,
        }
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// `url` of the server with `https` and the address of this one.
    pub fn url(&self, url: &str) -> String {
        replace_authority(url, self.address()).replacen("http://", "https://", 1)
    }

    /// Number of handshakes that were completed.
    pub fn handshakes(&self) -> usize {
        self.handshakes.completed.load(Ordering::SeqCst)
    }

    /// Number of handshakes that failed on this side.
    pub fn failed_handshakes(&self) -> usize {
        self.handshakes.failed.load(Ordering::SeqCst)
    }
}

fn server_config(identity: &Identity, clients: Option<&Authority>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(authority) => {
            let roots = Arc::new(roots(authority));
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    config
        .with_single_cert(identity.chain(), identity.key())
        .unwrap()
}

/// A client that trusts `authority` only, with a certificate if there is an `identity`.
pub(crate) fn client_config(authority: &Authority, identity: Option<&Identity>) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authority));
    match identity {
        None => config.with_no_client_auth(),
        Some(identity) => config
            .with_client_auth_cert(identity.chain(), identity.key())
            .unwrap(),
    }
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    roots
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use super::{Authority, Identity, TlsFront, client_config};
    use crate::service::Service;

    /// A server that returns what it receives.
    fn echo() -> Service {
        Service::start(async |listener| {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await.ok();
            }
        })
    }

    /// The reply of an echo server behind `front`, or the error of the client.
    async fn exchange(
        front: &TlsFront,
        trusted: &Authority,
        identity: Option<&Identity>,
    ) -> Result<String, String> {
        let connector = TlsConnector::from(Arc::new(client_config(trusted, identity)));
        let stream = TcpStream::connect(front.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let result = async {
            let mut stream = connector.connect(name, stream).await?;
            stream.write_all(b"hello").await?;
            stream.flush().await?;
            let mut reply = [0; 5];
            stream.read_exact(&mut reply).await?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&reply).into_owned())
        };
        result.await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_valid_certificate_is_accepted_and_others_are_rejected() {
        let server = echo();
        let authority = Authority::new();
        let other = Authority::new();
        for (identity, trusted, expected) in [
            (authority.server(&["localhost"]), &authority, None),
            (
                authority.server(&["elsewhere"]),
                &authority,
                Some("not valid for name"),
            ),
            (
                authority.expired_server(&["localhost"]),
                &authority,
                Some("expired"),
            ),
            (
                authority.server(&["localhost"]),
                &other,
                Some("UnknownIssuer"),
            ),
        ] {
            let front = TlsFront::start(server.address(), &identity, None);
            let result = exchange(&front, trusted, None).await;
            match expected {
                None => assert_eq!(result.as_deref(), Ok("hello")),
                Some(part) => {
                    let error = result.unwrap_err();
                    assert!(error.contains(part), "{error}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_client_certificate_is_required() {
        let server = echo();
        let authority = Authority::new();
        let identity = authority.server(&["localhost"]);
        let front = TlsFront::start(server.address(), &identity, Some(&authority));
        let client = authority.client("user");
        let result = exchange(&front, &authority, Some(&client)).await;
        assert_eq!(result.as_deref(), Ok("hello"));
        assert_eq!(front.handshakes(), 1);
        let stranger = Authority::new().client("user");
        assert!(exchange(&front, &authority, None).await.is_err());
        assert!(exchange(&front, &authority, Some(&stranger)).await.is_err());
        assert_eq!(front.handshakes(), 1);
        assert_eq!(
            front.url("http://127.0.0.1:1/a"),
            format!("https://{}/a", front.address())
        );
    }
}
