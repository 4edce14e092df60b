//! The server over streamable HTTP: listens, authorizes and serves.
//!
//! A layer around every route checks in this order: the request names this server (Host), no foreign page sends it
//! (Origin), it carries the token. Only then the body is read and parsed. The connection of a request that fails one of these
//! checks is closed.

mod access;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use cellwright_diagnostics::failure::{Failure, Kind, flag, flag_value, hint};
use cellwright_engine::loopback::listener::{
    ConnectionHandle, ConnectionLimits, LimitedListener, RequestGuard,
};
use cellwright_engine::loopback::{BODY_TIMEOUT, LOOPBACK, closing};
use cellwright_engine::signals::watch_signals;
use futures_util::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::access::{Access, error_response};
pub use self::access::{AccessPolicy, parse_origin};
use super::handler::Handler;
use super::http_sessions::HttpSessions;
pub use super::http_sessions::SessionLimits;
use super::message_check;
use super::server::Server;

/// Path of the MCP endpoint.
pub const ENDPOINT: &str = "/mcp";

/// How many connections are open at once.
const CONNECTIONS_MAX: usize = 256;

/// Largest request body, in bytes: the text of a notebook fits.
const BODY_LIMIT: usize = 64 << 20;

/// JSON-RPC: the server has too many sessions.
const TOO_MANY_SESSIONS: i64 = -32000;

/// How long a client should wait before it asks for a session again, in seconds.
const SESSION_RETRY_AFTER: &str = "30";

/// How long open connections have to end at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

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
    session_limits: SessionLimits,
) -> Result<(), Failure> {
    let (stopper, stop) = cellwright_kernel::StopSignal::new();
    let mut background = tokio::task::JoinSet::new();
    background.spawn(watch_signals(stopper)?);
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
    let sessions = Arc::new(HttpSessions::new(session_limits));
    let (template, uses) = (server.clone(), sessions.uses().clone());
    let service = StreamableHttpService::new(
        move || Ok(Handler::per_client(template.clone(), uses.clone())),
        Arc::clone(&sessions),
        config,
    );
    let swept = Arc::clone(&sessions);
    background.spawn(async move { swept.end_idle().await });
    let gate = Arc::new(Gate { policy, sessions });
    let router = Router::new()
        .route_service(ENDPOINT, service)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(gate, admit))
        .into_make_service_with_connect_info::<ConnectionHandle>();
    let shutdown = ending.clone();
    let limits = ConnectionLimits::new(CONNECTIONS_MAX);
    let served = axum::serve(LimitedListener::new(listener, limits), router)
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

/// Decides on requests before the SDK receives them.
struct Gate {
    policy: AccessPolicy,
    sessions: Arc<HttpSessions>,
}

/// Passes accepted requests on.
async fn admit(
    State(gate): State<Arc<Gate>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
    next: Next,
) -> Response {
    let answering = connection.begin_request();
    let (head, body) = request.into_parts();
    let origin = match gate.policy.check(&head) {
        Access::Granted(origin) => origin,
        Access::Preflight(response) | Access::Rejected(response) => return response,
    };
    connection.set_authenticated();
    let mut response = match gate.check_body(&head, body).await {
        Ok(body) => next.run(Request::from_parts(head, body)).await,
        Err(response) => response,
    };
    gate.policy.add_cors_headers(&mut response, origin);
    hold_until_end(response, answering)
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "not found; the endpoint is /mcp")
}

impl Gate {
    /// Reads and checks the body of a request. The error is the response.
    async fn check_body(&self, head: &Parts, body: Body) -> Result<Body, Response> {
        if head.method != Method::POST || head.uri.path() != ENDPOINT {
            return Ok(Body::empty());
        }
        let bytes = read_body(body).await?;
        let is_json = head
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        // The SDK rejects other types.
        if is_json {
            let message = message_check::check(&bytes).map_err(|response| {
                let no_id = || {
                    message_check::error_object(
                        &Value::Null,
                        message_check::INVALID_REQUEST,
                        "not a message",
                    )
                };
                json_response(StatusCode::BAD_REQUEST, &response.unwrap_or_else(no_id))
            })?;
            self.check_room(head, &message).await?;
        }
        Ok(Body::from(bytes))
    }

    /// Makes room for the session that a message creates. The error is the response.
    async fn check_room(
        &self,
        head: &Parts,
        message: &ClientJsonRpcMessage,
    ) -> Result<(), Response> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return Ok(());
        };
        let creates_session = matches!(request.request, ClientRequest::InitializeRequest(_))
            && !head.headers.contains_key("mcp-session-id");
        if !creates_session || self.sessions.make_room().await {
            return Ok(());
        }
        let id = match &request.id {
            RequestId::Number(number) => json!(number),
            RequestId::String(text) => json!(text),
        };
        let max = self.sessions.limits().sessions_max;
        let message = format!(
            "the server has {max} MCP sessions, as many as `mcp.http_sessions` allows, and all are in use; \
             end one with DELETE, or try again later"
        );
        let error = message_check::error_object(&id, TOO_MANY_SESSIONS, &message);
        let mut response = json_response(StatusCode::SERVICE_UNAVAILABLE, &error);
        let seconds = HeaderValue::from_static(SESSION_RETRY_AFTER);
        response.headers_mut().insert(RETRY_AFTER, seconds);
        Err(response)
    }
}

/// Reads the body of a request. The error is the response.
async fn read_body(body: Body) -> Result<Bytes, Response> {
    let too_large = || {
        let error = "the body is larger than 64 MiB or incomplete";
        closing(error_response(StatusCode::PAYLOAD_TOO_LARGE, error))
    };
    // Reject by the announced length, without reading.
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, BODY_LIMIT)).await;
    let Ok(read) = read else {
        let error = "the body did not arrive in time";
        return Err(closing(error_response(StatusCode::REQUEST_TIMEOUT, error)));
    };
    read.map_err(|_| too_large())
}

/// Keeps a connection without a time limit until its response has been sent.
fn hold_until_end(response: Response, answering: RequestGuard) -> Response {
    // The body is in memory: sending it takes no time that a client controls for long.
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let stream = body.into_data_stream().map(move |data| {
            let _held = &answering;
            data
        });
        Body::from_stream(stream)
    })
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let content_type = [(CONTENT_TYPE, "application/json")];
    (status, content_type, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_time_limit() {
        // One byte in a second, without end.
        let bytes = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let byte: Result<_, std::io::Error> = Ok(Bytes::from_static(b" "));
            Some((byte, ()))
        });
        let response = read_body(Body::from_stream(bytes)).await.unwrap_err();
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(response.headers()["connection"], "close");
    }
}
