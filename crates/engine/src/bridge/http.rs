//! The HTTP server of the bridge: accepts and authorizes requests.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::call::{self, BridgeCall, BridgeReply};
use super::{BridgeSession, BridgeSessions};
use crate::loopback::listener::{ConnectionHandle, ConnectionLimits, LimitedListener};
use crate::loopback::{BODY_TIMEOUT, LOOPBACK, bearer_token, closing, names_own_host};

/// How many connections are open at once.
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
    let service = router.into_make_service_with_connect_info::<ConnectionHandle>();
    let limits = ConnectionLimits::new(CONNECTIONS_MAX);
    let served = axum::serve(LimitedListener::new(listener, limits), service)
        .with_graceful_shutdown(async {
            end.await.ok();
        });
    // It only returns after the shutdown signal.
    served.await.ok();
}

async fn handle(
    State(sessions): State<Arc<BridgeSessions>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
) -> Response {
    // The reply is in memory when the guard is dropped.
    let _request = connection.begin_request();
    let (head, body) = request.into_parts();
    let session = match authorize(&sessions, &head) {
        Ok(session) => session,
        Err(rejection) => return closing(rejection.into_response()),
    };
    connection.set_authenticated();
    match read_call(body).await {
        Ok(call) => call::handle(&session, call).await.into_response(),
        Err(rejection) => closing(rejection.into_response()),
    }
}

/// Why a request is rejected.
#[derive(Debug)]
pub(super) struct Rejection(pub(super) StatusCode, &'static str);

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

/// Finds the session of a request by its token.
pub(super) fn authorize(
    sessions: &BridgeSessions,
    head: &Parts,
) -> Result<Arc<BridgeSession>, Rejection> {
    // A web page can make a browser send requests here, but not without these headers. A foreign name that resolves to
    // the loopback address is not accepted.
    let names_us = names_own_host(&head.uri, &head.headers, |name| LOOPBACK.contains(&name));
    if !names_us || head.headers.contains_key(ORIGIN) {
        return Err(Rejection(StatusCode::FORBIDDEN, "not from this machine"));
    }
    if head.method != Method::POST || head.uri.path() != "/v1/tool" {
        return Err(Rejection(
            StatusCode::NOT_FOUND,
            "the only endpoint is POST /v1/tool",
        ));
    }
    let session = bearer_token(&head.headers).and_then(|token| sessions.with_token(token));
    session.ok_or(Rejection(StatusCode::FORBIDDEN, "unknown token"))
}

/// Reads the body of a request.
async fn read_call(body: Body) -> Result<BridgeCall, Rejection> {
    let too_large = Rejection(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request is larger than 64 MiB or incomplete",
    );
    // Reject by the announced length, without reading.
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large);
    }
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, BODY_LIMIT)).await;
    let Ok(read) = read else {
        return Err(Rejection(
            StatusCode::REQUEST_TIMEOUT,
            "the request did not arrive in time",
        ));
    };
    parse_call(&read.map_err(|_| too_large)?)
}

/// Parses the body of a request.
pub(super) fn parse_call(bytes: &[u8]) -> Result<BridgeCall, Rejection> {
    serde_json::from_slice(bytes).map_err(|_| {
        Rejection(
            StatusCode::BAD_REQUEST,
            "not a JSON object with a name and args",
        )
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::HOST;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_time_limit() {
        // One byte in a second, without end.
        let bytes = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let byte: Result<_, std::io::Error> = Ok(axum::body::Bytes::from_static(b" "));
            Some((byte, ()))
        });
        let rejection = read_call(Body::from_stream(bytes)).await.unwrap_err();
        assert_eq!(rejection.0, StatusCode::REQUEST_TIMEOUT);
    }

    #[test]
    fn only_loopback_hosts_are_accepted() {
        let accepts = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            names_own_host(&"/".parse().unwrap(), &headers, |name| {
                LOOPBACK.contains(&name)
            })
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
    }
}
