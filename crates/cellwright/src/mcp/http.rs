//! The server over streamable HTTP: who may come in, and where.
//!
//! One layer around every route asks, in this order: was it meant for us (Host), does no foreign page send it
//! (Origin), does it carry the token. Only then is looked at what it wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::server::Server;
use crate::failure::{Failure, Kind};
use crate::local_execution::watch_signals;
use crate::loopback::listener::LimitedListener;
use crate::loopback::{LOOPBACK, bearer_token, host_name};
use crate::secret::constant_time_eq;

/// Where the protocol is spoken.
pub(crate) const ENDPOINT: &str = "/mcp";

/// Connections at once; others wait outside.
const CONNECTIONS_MAX: usize = 256;

/// Largest request that is read: a notebook's text fits.
const BODY_LIMIT: usize = 64 << 20;

/// How long a client that began a session may be silent before it counts as gone.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_hours(12);

/// How long connections have to end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Who may come in.
#[derive(Clone, Debug)]
pub(crate) struct AccessPolicy {
    /// What must be carried.
    pub(crate) token: String,
    /// Names of this machine, besides those of the loopback.
    pub(crate) allowed_hosts: Vec<String>,
    /// Pages that may send requests, such as `https://example.org`.
    pub(crate) allowed_origins: Vec<String>,
}

/// Opens the port. Not on an address that others can reach, unless that was said.
pub(crate) async fn listen(address: SocketAddr, remote: bool) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() && !remote {
        let message = format!("Others could reach {address}");
        let failure = Failure::new(Kind::Refused, message);
        return Err(failure.hint(
            "use 127.0.0.1, or add --allow-remote and --allow-host NAME if that is meant; the connection is \
             not encrypted",
        ));
    }
    TcpListener::bind(address).await.map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not listen on {address}"));
        failure.causes.push(error.to_string());
        failure.hint("port 0 takes one that is free")
    })
}

/// Serves until a signal comes; then the kernels go.
pub(crate) async fn serve(
    listener: TcpListener,
    server: Server,
    policy: AccessPolicy,
) -> Result<(), Failure> {
    let (stopper, stop) = cellwright_kernel::StopSignal::new();
    let mut signals = tokio::task::JoinSet::new();
    signals.spawn(watch_signals(stopper)?);
    let ending = CancellationToken::new();
    let hosts: Vec<String> = LOOPBACK.iter().map(|name| (*name).to_owned()).collect();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(
            hosts
                .into_iter()
                .chain(policy.allowed_hosts.iter().cloned()),
        )
        .with_cancellation_token(ending.clone())
        .with_max_request_body_bytes(BODY_LIMIT);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE_TIMEOUT);
    let common = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(Handler::per_client(common.clone())),
        Arc::new(sessions),
        config,
    );
    let router = Router::new()
        .route_service(ENDPOINT, service)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(Arc::new(policy), authorize));
    let shutdown = ending.clone();
    let served = axum::serve(LimitedListener::new(listener, CONNECTIONS_MAX), router)
        .with_graceful_shutdown(async move { shutdown.cancelled().await });
    let mut served = tokio::spawn(served.into_future());
    tokio::select! {
        _ = stop.requested() => {}
        _ = &mut served => {}
    }
    ending.cancel();
    tokio::time::timeout(SHUTDOWN_GRACE, served).await.ok();
    server.shut_down().await;
    Ok(())
}

async fn authorize(
    State(policy): State<Arc<AccessPolicy>>,
    request: Request,
    next: Next,
) -> Response {
    match policy.rejection(request.headers()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "there is only /mcp")
}

impl AccessPolicy {
    /// Why a request is not looked at.
    fn rejection(&self, headers: &HeaderMap) -> Option<Response> {
        let ours = host_name(headers).is_some_and(|name| {
            LOOPBACK.contains(&name) || self.allowed_hosts.iter().any(|host| host == name)
        });
        if !ours {
            return Some(error_response(
                StatusCode::FORBIDDEN,
                "not meant for this server",
            ));
        }
        let own = headers.get(HOST).and_then(|host| host.to_str().ok());
        let foreign = |origin: &axum::http::HeaderValue| {
            let named = |origin: &str| {
                let same = origin
                    .strip_prefix("http://")
                    .is_some_and(|rest| Some(rest) == own);
                same || self.allowed_origins.iter().any(|ours| ours == origin)
            };
            !origin.to_str().is_ok_and(named)
        };
        if headers.get_all(ORIGIN).iter().any(foreign) {
            return Some(error_response(StatusCode::FORBIDDEN, "not from this page"));
        }
        let known = bearer_token(headers)
            .is_some_and(|given| constant_time_eq(self.token.as_bytes(), given));
        if !known {
            let mut response =
                error_response(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            let how = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, how);
            return Some(response);
        }
        None
    }
}

fn error_response(status: StatusCode, words: &str) -> Response {
    let body = json!({"error": words}).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
