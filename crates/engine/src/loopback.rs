//! Code shared by the HTTP servers on the loopback address.

mod connections;
pub mod listener;

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONNECTION, HOST};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;

/// Names of this machine in a `Host` header.
pub const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// How long a client may take to send the body of a request.
pub const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// Whether a request names a server that `is_own` accepts: in the `Host` header, and in the request target if that is a
/// whole URL.
pub fn names_own_host(uri: &Uri, headers: &HeaderMap, is_own: impl Fn(&str) -> bool) -> bool {
    let target_is_own = uri
        .authority()
        .is_none_or(|authority| is_own(without_port(authority.as_str())));
    target_is_own && host_name(headers).is_some_and(is_own)
}

/// The name in the `Host` header without its port; `None` unless there is exactly one header.
fn host_name(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return None;
    };
    host.to_str().ok().map(without_port)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The bearer token of a request; `None` unless there is exactly one `Authorization` header.
pub fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let value = value.as_bytes();
    let space = value.iter().position(|&byte| byte == b' ')?;
    let (scheme, token) = value.split_at(space);
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer");
    is_bearer.then_some(token.trim_ascii_start())
}

/// Makes the server close the connection after this response. A rejected request must not keep a connection.
#[must_use]
pub fn closing(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_token_is_case_insensitive() {
        let token = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer_token(&headers).map(<[u8]>::to_vec)
        };
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(token(&[value]).unwrap(), b"abc", "{value}");
        }
        for values in [
            &["Basic abc"][..],
            &["Bearer"],
            &["abc"],
            &[],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(token(values), None, "{values:?}");
        }
        assert_eq!(token(&["Bearer "]).unwrap_or_default(), b"");
    }

    #[test]
    fn a_whole_url_as_the_target_names_its_host() {
        let accepts = |target: &str, host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            let uri = target.parse().unwrap();
            names_own_host(&uri, &headers, |name| LOOPBACK.contains(&name))
        };
        assert!(accepts("/mcp", "localhost:1"));
        assert!(accepts("http://localhost:1/mcp", "localhost:1"));
        assert!(accepts("http://[::1]/mcp", "127.0.0.1"));
        for target in [
            "http://example.org/mcp",
            "http://localhost@example.org/mcp",
            "http://user@localhost/mcp",
            "example.org:80",
        ] {
            assert!(!accepts(target, "localhost"), "{target}");
        }
        assert!(!accepts("http://localhost/mcp", "example.org"));
    }
}
