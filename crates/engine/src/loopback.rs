//! Code shared by the HTTP servers on the loopback address.

pub mod listener;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST};

/// Names of this machine in a `Host` header.
pub const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The name in the `Host` header without its port; `None` unless there is exactly one header.
pub fn host_name(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return None;
    };
    let host = host.to_str().ok()?;
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(name),
        _ => Some(host),
    }
}

/// The bearer token of a request.
pub fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    value.strip_prefix(b"Bearer ")
}
