//! [`ServerUrl`]: the address of a Jupyter server.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;
use serde::{Deserialize, Serialize};

/// The address of a Jupyter server: scheme, host, port and base path. It has no credentials.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerUrl {
    is_https: bool,
    /// With the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Empty, or starts with a slash and does not end with one.
    base_path: String,
}

/// Why a text is not the URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// It is not a URL.
    #[error("it is not a URL such as `http://127.0.0.1:8888/`")]
    NotAUrl,
    /// It is a URL for another protocol.
    #[error("its scheme is not `http` or `https`")]
    Scheme,
}

/// A server URL as users paste it, and the token in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedUrl {
    /// The address.
    pub url: ServerUrl,
    /// The value of its parameter `token`.
    pub token: Option<crate::Secret>,
}

impl PastedUrl {
    /// Parses a URL. Accepts the URLs that Jupyter prints, such as `http://127.0.0.1:8888/lab?token=…`.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").ok_or(BadUrl::NotAUrl)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(BadUrl::Scheme),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match address.find('/') {
            Some(at) => address.split_at(at),
            None => (address, ""),
        };
        // A user name in the URL is not used: Jupyter has no such login.
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let uri: Uri = format!("http://{authority}/")
            .parse()
            .map_err(|_| BadUrl::NotAUrl)?;
        let host = uri.host().filter(|host| !host.is_empty());
        let port = match uri.port_u16() {
            Some(port) => port,
            // A port that is too large is left out without an error.
            None if !authority.ends_with(host.unwrap_or_default()) => return Err(BadUrl::NotAUrl),
            None if is_https => 443,
            None => 80,
        };
        let url = ServerUrl {
            is_https,
            host: host.ok_or(BadUrl::NotAUrl)?.to_ascii_lowercase(),
            port,
            base_path: base_path(path),
        };
        // The path must be one that a request can have.
        let is_valid = url.uri("/api").is_some();
        let token = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("token="))
            .filter(|token| !token.is_empty());
        is_valid.then_some(()).ok_or(BadUrl::NotAUrl)?;
        Ok(Self {
            url,
            token: token.map(crate::Secret::new),
        })
    }
}

/// The path without what Jupyter's pages add to it.
fn base_path(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let page = ["/lab", "/tree", "/notebooks", "/api"]
        .into_iter()
        .find_map(|page| {
            let at = path.find(page)?;
            let end = at + page.len();
            matches!(path.as_bytes().get(end), None | Some(b'/')).then_some(at)
        });
    path[..page.unwrap_or(path.len())]
        .trim_end_matches('/')
        .to_owned()
}

impl ServerUrl {
    /// Whether connections are encrypted.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host name or address, without brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The host, with the brackets of an IPv6 address.
    pub(crate) fn host_in_uri(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the server is on this machine, as far as its name shows.
    pub fn is_loopback(&self) -> bool {
        let address = self.host().parse::<IpAddr>();
        address.map_or(self.host() == "localhost", |address| address.is_loopback())
    }

    /// The URI of a path on the server. `None` if the path is not valid.
    pub(crate) fn uri(&self, path: &str) -> Option<Uri> {
        format!("{self}{}", path.trim_start_matches('/'))
            .parse()
            .ok()
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default_port) = if self.is_https {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(formatter, "{scheme}://{}", self.host)?;
        if self.port != default_port {
            write!(formatter, ":{}", self.port)?;
        }
        write!(formatter, "{}/", self.base_path)
    }
}

impl From<ServerUrl> for String {
    fn from(url: ServerUrl) -> Self {
        url.to_string()
    }
}

impl TryFrom<String> for ServerUrl {
    type Error = BadUrl;

    fn try_from(text: String) -> Result<Self, BadUrl> {
        PastedUrl::parse(&text).map(|pasted| pasted.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>) {
        let pasted = PastedUrl::parse(text).unwrap();
        let token = pasted.token.map(|token| token.text().to_owned());
        (pasted.url.to_string(), token)
    }

    #[test]
    fn urls_that_jupyter_prints_are_addresses_and_tokens() {
        let token = Some("abc".to_owned());
        for (text, url, expected) in [
            ("http://127.0.0.1:8888", "http://127.0.0.1:8888/", None),
            (
                "http://127.0.0.1:8888/lab?token=abc",
                "http://127.0.0.1:8888/",
                token.clone(),
            ),
            (
                "https://Host.Example/base/x/tree/a.ipynb",
                "https://host.example/base/x/",
                None,
            ),
            (
                "https://hub.example/user/bob/lab",
                "https://hub.example/user/bob/",
                None,
            ),
            ("http://[::1]:80/labs?token=#x", "http://[::1]/labs/", None),
            (
                "wss://me:pw@h:443/api/kernels?a=b&token=abc",
                "https://h/",
                token.clone(),
            ),
        ] {
            assert_eq!(parsed(text), (url.to_owned(), expected), "{text}");
            // The displayed form names the same server.
            assert_eq!(parsed(url).0, url);
        }
        for (text, error) in [
            ("", BadUrl::NotAUrl),
            ("localhost:8888", BadUrl::NotAUrl),
            ("http://", BadUrl::NotAUrl),
            ("http://a b/", BadUrl::NotAUrl),
            ("http://host/a b", BadUrl::NotAUrl),
            ("http://host:99999/", BadUrl::NotAUrl),
            ("file:///etc/passwd", BadUrl::Scheme),
        ] {
            assert_eq!(PastedUrl::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_and_address() {
        for (text, expected) in [
            ("http://localhost/", true),
            ("http://127.8.0.1/", true),
            ("http://[::1]:1/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(
                PastedUrl::parse(text).unwrap().url.is_loopback(),
                expected,
                "{text}"
            );
        }
    }
}
