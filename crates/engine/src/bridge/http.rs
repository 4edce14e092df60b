//! The HTTP server of the bridge: accepts and authorizes requests.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::call::{self, BridgeCall, BridgeReply};
use super::{BridgeSession, BridgeSessions};
use crate::loopback::listener::LimitedListener;
use crate::loopback::{LOOPBACK, bearer_token, host_name};

/// How many connections are open at once; others wait.
const CONNECTIONS_MAX: usize = 64;

/// Largest request body, in bytes: the text of a notebook fits.
const BODY_LIMIT: usize = 64 << 20;

/// Serves until the sender of `end` is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    sessions: Arc<BridgeSessions>,
    end: oneshot::Receiver<()>,
) {
    let router = Router::new().fallback(handle).with_state(sessions);
    let served = axum::serve(LimitedListener::new(listener, CONNECTIONS_MAX), router)
        .with_graceful_shutdown(async {
            end.await.ok();
        });
    // It only returns after the shutdown signal.
    served.await.ok();
}

async fn handle(State(sessions): State<Arc<BridgeSessions>>, request: Request) -> Response {
    match authorize(&sessions, request).await {
        Ok((session, call)) => call::handle(&session, call).await.into_response(),
        Err(rejection) => rejection.into_response(),
    }
}

/// Why a request is rejected.
struct Rejection(StatusCode, &'static str);

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        let body = json!({"ok": false, "error": error}).to_string();
        (status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

impl IntoResponse for BridgeReply {
    fn into_response(self) -> Response {
        let json = [(CONTENT_TYPE, "application/json")];
        (StatusCode::OK, json, Body::from(self.0)).into_response()
    }
}

async fn authorize(
    sessions: &BridgeSessions,
    request: Request,
) -> Result<(Arc<BridgeSession>, BridgeCall), Rejection> {
    let (head, body) = request.into_parts();
    // A web page can make a browser send requests here, but not without these headers.
    if !is_loopback(&head.headers) || head.headers.contains_key(ORIGIN) {
        return Err(Rejection(StatusCode::FORBIDDEN, "not from this machine"));
    }
    if head.method != Method::POST || head.uri.path() != "/v1/tool" {
        return Err(Rejection(
            StatusCode::NOT_FOUND,
            "the only endpoint is POST /v1/tool",
        ));
    }
    let session = bearer_token(&head.headers).and_then(|token| sessions.with_token(token));
    let Some(session) = session else {
        return Err(Rejection(StatusCode::FORBIDDEN, "unknown token"));
    };
    let too_large = Rejection(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request is larger than 64 MiB or incomplete",
    );
    // Reject by the announced length, without reading.
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large);
    }
    let Ok(bytes) = to_bytes(body, BODY_LIMIT).await else {
        return Err(too_large);
    };
    let call: BridgeCall = serde_json::from_slice(&bytes).map_err(|_| {
        Rejection(
            StatusCode::BAD_REQUEST,
            "not a JSON object with a name and args",
        )
    })?;
    Ok((session, call))
}

/// Whether the `Host` header names the loopback address. A foreign name that resolves to it does not.
fn is_loopback(headers: &HeaderMap) -> bool {
    host_name(headers).is_some_and(|name| LOOPBACK.contains(&name))
}

#[cfg(test)]
mod tests {
    use axum::http::header::HOST;

    use super::*;

    #[test]
    fn only_loopback_hosts_are_accepted() {
        let accepts = |host: &str| {
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
            assert!(accepts(host), "{host}");
        }
        for host in [
            "example.org",
            "127.0.0.1.example.org:80",
            "localhost.x",
            "",
            ":80",
            "::1",
        ] {
            assert!(!accepts(host), "{host}");
        }
        assert!(!is_loopback(&HeaderMap::new()));
    }
}
