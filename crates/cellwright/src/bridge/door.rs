//! The door itself: who may come in, and in which form.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::call::{self, Answer, Call};
use super::entrance::Entrance;
use super::{Guest, Guests};

/// How many are let in at once; others wait outside.
const MOST: usize = 64;

/// Largest body that is read: a notebook's text fits.
const MAX_BODY: usize = 64 << 20;

/// Serves until the other end of `end` is gone.
pub(super) async fn serve(listener: TcpListener, guests: Arc<Guests>, end: oneshot::Receiver<()>) {
    let door = Router::new().fallback(enter).with_state(guests);
    let served = axum::serve(Entrance::new(listener, MOST), door).with_graceful_shutdown(async {
        end.await.ok();
    });
    // It only ends when it is told to.
    served.await.ok();
}

async fn enter(State(guests): State<Arc<Guests>>, request: Request) -> Response {
    match admitted(&guests, request).await {
        Ok((guest, call)) => call::answer(&guest, call).await.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// Why a request is not looked at.
struct Refusal(StatusCode, &'static str);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        let body = json!({"ok": false, "error": error}).to_string();
        (status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let json = [(CONTENT_TYPE, "application/json")];
        (StatusCode::OK, json, Body::from(self.0)).into_response()
    }
}

async fn admitted(guests: &Guests, request: Request) -> Result<(Arc<Guest>, Call), Refusal> {
    let (head, body) = request.into_parts();
    // A page in a browser can be made to send requests here, but not without these.
    if !is_loopback(&head.headers) || head.headers.contains_key(ORIGIN) {
        return Err(Refusal(StatusCode::FORBIDDEN, "not from this machine"));
    }
    if head.method != Method::POST || head.uri.path() != "/v1/tool" {
        return Err(Refusal(
            StatusCode::NOT_FOUND,
            "there is only POST /v1/tool",
        ));
    }
    let guest = token(&head.headers).and_then(|token| guests.with_token(token));
    let Some(guest) = guest else {
        return Err(Refusal(StatusCode::FORBIDDEN, "unknown token"));
    };
    let too_large = Refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request is larger than 64 MiB, or did not arrive",
    );
    // What is announced need not be waited for.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large);
    }
    let Ok(bytes) = to_bytes(body, MAX_BODY).await else {
        return Err(too_large);
    };
    let call: Call = serde_json::from_slice(&bytes).map_err(|_| {
        Refusal(
            StatusCode::BAD_REQUEST,
            "not a JSON object with a name and args",
        )
    })?;
    Ok((guest, call))
}

/// What a request carries to be let in.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    value.strip_prefix(b"Bearer ")
}

/// Whether the request was meant for this machine, whatever name led here.
fn is_loopback(headers: &HeaderMap) -> bool {
    host_name(headers).is_some_and(|name| LOOPBACK.contains(&name))
}

/// What this machine is called from here.
pub(crate) const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The name that led here, without a port; `None` if there is not exactly one.
pub(crate) fn host_name(headers: &HeaderMap) -> Option<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_are_let_in() {
        let fits = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            is_loopback(&headers)
        };
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:4",
            "[::1]:9",
            "[::1]",
        ] {
            assert!(fits(host), "{host}");
        }
        for host in [
            "example.org",
            "127.0.0.1.example.org:80",
            "localhost.x",
            "",
            ":80",
            "::1",
        ] {
            assert!(!fits(host), "{host}");
        }
        assert!(!is_loopback(&HeaderMap::new()));
    }
}
