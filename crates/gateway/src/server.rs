//! [`Server`]: how to reach a Jupyter server, and as whom.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::secret::Secret;
use crate::url::ServerUrl;

/// How to reach a Jupyter server, and as whom. A process can send it to another process of the same user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// The name of its settings, if it has one.
    pub name: Option<String>,
    /// Its address.
    pub url: ServerUrl,
    /// The proof of identity.
    pub credentials: Credentials,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// Certificates.
    pub tls: TlsOptions,
    /// The proxy to reach it through.
    pub proxy: ProxyOptions,
    /// The time limit of one request.
    pub request_timeout: Duration,
}

/// The proof of identity that a request carries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// None.
    #[default]
    None,
    /// A token in the header `Authorization`.
    Token {
        /// The token.
        token: Secret,
        /// The word before it: `token` for Jupyter, `Bearer` for other servers.
        scheme: String,
    },
    /// The password of Jupyter's login page.
    Password(Secret),
}

/// The word before a token in the header `Authorization`.
pub const TOKEN_SCHEME: &str = "token";

/// The certificates of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// A PEM file with the certificates of authorities to trust, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// A PEM file with the client's certificate.
    pub client_cert: Option<PathBuf>,
    /// A PEM file with the key of the client's certificate. `None`: it is in the same file.
    pub client_key: Option<PathBuf>,
}

/// The proxy of a connection. A server on this machine is reached without one.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyOptions {
    /// The URL of the proxy for `http` servers.
    pub http: Option<String>,
    /// The URL of the proxy for `https` servers.
    pub https: Option<String>,
    /// Hosts that are reached without a proxy, separated by commas.
    pub no_proxy: Option<String>,
}

impl std::fmt::Debug for ProxyOptions {
    /// The URL of a proxy may contain a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_set = |url: &Option<String>| url.is_some();
        formatter
            .debug_struct("ProxyOptions")
            .field("http", &is_set(&self.http))
            .field("https", &is_set(&self.https))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

impl Server {
    /// The time limit of one request, unless settings name another.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

    /// A server without credentials.
    pub fn new(url: ServerUrl) -> Self {
        Self {
            name: None,
            url,
            credentials: Credentials::None,
            headers: Vec::new(),
            tls: TlsOptions::default(),
            proxy: ProxyOptions::default(),
            request_timeout: Self::REQUEST_TIMEOUT,
        }
    }

    /// Sets a token as Jupyter expects it.
    #[must_use]
    pub fn with_token(mut self, token: Secret) -> Self {
        self.credentials = Credentials::Token {
            token,
            scheme: TOKEN_SCHEME.to_owned(),
        };
        self
    }

    /// The server in tables and reports: the name of its settings, else its address.
    pub fn short_label(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => self.url.to_string(),
        }
    }

    /// The server in messages: its address, and its name if it has one.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("`{name}` ({})", self.url),
            None => self.url.to_string(),
        }
    }
}
