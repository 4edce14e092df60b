//! The server over streamable HTTP: listens, authorizes and serves.
//!
//! A layer around every route checks in this order: the request names this server (Host), no foreign page sends it
//! (Origin), it carries the token. Only then the request is parsed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use cellwright_diagnostics::failure::{Failure, Kind, flag, flag_value, hint};
use cellwright_engine::loopback::listener::LimitedListener;
use cellwright_engine::loopback::{LOOPBACK, bearer_token, host_name};
use cellwright_engine::secret::constant_time_eq;
use cellwright_engine::signals::watch_signals;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::server::Server;

/// Path of the MCP endpoint.
pub const ENDPOINT: &str = "/mcp";

/// How many connections are open at once; others wait.
const CONNECTIONS_MAX: usize = 256;

/// Largest request body, in bytes: the text of a notebook fits.
const BODY_LIMIT: usize = 64 << 20;

/// Time without requests after which an MCP session ends.
const SESSION_IDLE_TIMEOUT: Duration = Duration::from_hours(12);

/// How long open connections have to end at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Which requests are accepted.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// The bearer token that every request must carry.
    pub token: String,
    /// Accepted names of this machine, in addition to those of the loopback interface.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, such as `https://example.org`.
    pub allowed_origins: Vec<String>,
}

/// Opens the port. An address that other machines can reach is an error unless `remote` is true.
pub async fn listen(address: SocketAddr, remote: bool) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() && !remote {
        let message = format!("Other machines can reach {address}");
        let failure = Failure::new(Kind::Refused, message);
        return Err(failure.hint(hint![
            "use 127.0.0.1, or add ",
            flag("allow-remote"),
            " and ",
            flag_value("allow-host", "NAME"),
            "; the connection is not encrypted",
        ]));
    }
    TcpListener::bind(address).await.map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not listen on {address}"));
        failure.causes.push(error.to_string());
        failure.hint("port 0 selects a free port")
    })
}

/// Serves until a signal arrives, then shuts down the kernels.
pub async fn serve(
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
    let template = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(Handler::per_client(template.clone())),
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
        Some(response) => response,
        None => next.run(request).await,
    }
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "not found; the endpoint is /mcp")
}

impl AccessPolicy {
    /// Returns the error response if the request is not accepted.
    fn rejection(&self, headers: &HeaderMap) -> Option<Response> {
        let host_accepted = host_name(headers).is_some_and(|name| {
            LOOPBACK.contains(&name) || self.allowed_hosts.iter().any(|host| host == name)
        });
        if !host_accepted {
            return Some(error_response(
                StatusCode::FORBIDDEN,
                "the Host header names another server",
            ));
        }
        let own_host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let foreign = |origin: &axum::http::HeaderValue| {
            let accepted = |origin: &str| {
                let same_origin = origin
                    .strip_prefix("http://")
                    .is_some_and(|rest| Some(rest) == own_host);
                same_origin || self.allowed_origins.iter().any(|allowed| allowed == origin)
            };
            !origin.to_str().is_ok_and(accepted)
        };
        if headers.get_all(ORIGIN).iter().any(foreign) {
            return Some(error_response(
                StatusCode::FORBIDDEN,
                "the Origin header names a page that is not allowed",
            ));
        }
        let token_matches = bearer_token(headers)
            .is_some_and(|token| constant_time_eq(self.token.as_bytes(), token));
        if !token_matches {
            let mut response =
                error_response(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            let scheme = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return Some(response);
        }
        None
    }
}

fn error_response(status: StatusCode, error: &str) -> Response {
    let body = json!({"error": error}).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}
