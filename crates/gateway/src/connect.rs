//! [`Connector`]: opens connections to one server, through a proxy if there is one, with TLS for `https`.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tower_service::Service;

use crate::error::ServerError;
use crate::server::Server;
use crate::stream::{HyperStream, QuickAckStream, ServerStream};
use crate::tls;
use crate::url::ServerUrl;

/// Opens connections to one server.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    url: ServerUrl,
    tls: Option<Arc<ClientConfig>>,
    proxy: Option<Arc<Matcher>>,
}

impl Connector {
    pub(crate) fn new(server: &Server) -> Result<Self, ServerError> {
        let tls = server
            .url
            .is_https()
            .then(|| tls::client_config(&server.tls));
        let proxy = &server.proxy;
        let has_proxy = proxy.http.is_some() || proxy.https.is_some();
        let matcher = (has_proxy && !server.url.is_loopback()).then(|| {
            let mut builder = Matcher::builder();
            if let Some(url) = &proxy.http {
                builder = builder.http(url.clone());
            }
            if let Some(url) = &proxy.https {
                builder = builder.https(url.clone());
            }
            if let Some(hosts) = &proxy.no_proxy {
                builder = builder.no(hosts.clone());
            }
            Arc::new(builder.build())
        });
        Ok(Self {
            url: server.url.clone(),
            tls: tls.transpose()?,
            proxy: matcher,
        })
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> io::Result<ServerStream> {
        let stream = match self.proxy_of_server() {
            Some(tunnel) => tunnel.await?,
            None => TcpStream::connect((self.url.host(), self.url.port())).await?,
        };
        let stream = QuickAckStream::new(stream)?;
        let Some(config) = &self.tls else {
            return Ok(ServerStream::Plain(stream));
        };
        let name = ServerName::try_from(self.url.host().to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await?;
        Ok(ServerStream::Tls(Box::new(stream)))
    }

    /// A connection through the proxy, if the server is reached through one.
    fn proxy_of_server(&self) -> Option<BoxFuture<'static, io::Result<TcpStream>>> {
        let uri = self.url.uri("/")?;
        let proxy = self.proxy.as_ref()?.intercept(&uri)?;
        let mut tunnel = Tunnel::new(proxy.uri().clone(), TcpConnector);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        // The tunnel reads host and port from the URI; it must have a port.
        let target = format!("https://{}:{}/", self.url.host_in_uri(), self.url.port());
        let target: Uri = target.parse().ok()?;
        Some(Box::pin(async move {
            let stream = tunnel.call(target).await.map_err(io::Error::other)?;
            Ok(stream.into_inner())
        }))
    }
}

/// Lets hyper open connections, for all URIs of the server.
impl Service<Uri> for Connector {
    type Response = HyperStream;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<HyperStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect().await.map(TokioIo::new) })
    }
}

/// Opens a TCP connection to the host and port of a URI.
#[derive(Clone, Copy, Debug)]
struct TcpConnector;

impl Service<Uri> for TcpConnector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let default_port = if uri.scheme_str() == Some("https") {
                443
            } else {
                80
            };
            let port = uri.port_u16().unwrap_or(default_port);
            TcpStream::connect((host, port)).await.map(TokioIo::new)
        })
    }
}
