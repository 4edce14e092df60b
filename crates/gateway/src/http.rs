//! [`HttpClient`]: requests to one server, with credentials, cookies and a time limit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cellwright_stdext::LockExt;
use cellwright_stdext::secret::redact;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE,
};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use tokio::time::timeout;

use crate::connect::Connector;
use crate::cookies::Cookies;
use crate::error::ServerError;
use crate::server::{Credentials, Server};

/// The largest answer that is read.
const BODY_LIMIT: usize = 32 << 20;

/// How much of a server's message an error shows.
const MESSAGE_LIMIT: usize = 500;

/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Sends requests to one server. Clones share connections and cookies.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    server: Arc<Server>,
    connector: Connector,
    client: Client<Connector, Full<Bytes>>,
    cookies: Arc<Mutex<Cookies>>,
    headers: HeaderMap,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Empty,
    Json(Value),
    Form(String),
}

impl HttpClient {
    pub(crate) fn new(server: Arc<Server>) -> Result<Self, ServerError> {
        let connector = Connector::new(&server)?;
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(2);
        Ok(Self {
            headers: headers(&server)?,
            client: builder.build(connector.clone()),
            connector,
            server,
            cookies: Arc::default(),
        })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn shared_server(&self) -> Arc<Server> {
        Arc::clone(&self.server)
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn cookies(&self) -> std::sync::MutexGuard<'_, Cookies> {
        self.cookies.lock_ignoring_poison()
    }

    /// The headers that every request carries: credentials, custom headers and cookies.
    pub(crate) fn request_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        let cookies = self.cookies();
        if let Some(cookie) = cookies.header() {
            headers.insert(COOKIE, cookie);
        }
        if let Some(xsrf) = cookies.get("_xsrf")
            && let Ok(value) = HeaderValue::from_str(xsrf)
        {
            headers.insert(HeaderName::from_static("x-xsrftoken"), value);
        }
        headers
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Response, ServerError> {
        let after = self.server.request_timeout;
        let request = describe(&method, path);
        match timeout(after, self.exchange(method, path, body)).await {
            Ok(response) => response,
            Err(_) => Err(ServerError::Timeout {
                server: self.server.label(),
                request,
                after,
            }),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Response, ServerError> {
        let (content_type, body) = match body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(value) => (Some("application/json"), value.to_string().into()),
            Body::Form(text) => (Some("application/x-www-form-urlencoded"), text.into()),
        };
        let uri = self.server.url.uri(path);
        let uri = uri.ok_or_else(|| self.not_jupyter(format!("`{path}` is not a valid path")))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.request_headers();
        if let Some(content_type) = content_type {
            let value = HeaderValue::from_static(content_type);
            request.headers_mut().insert(CONTENT_TYPE, value);
        }
        let response = self.client.request(request).await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        let (parts, body) = response.into_parts();
        self.cookies().update(parts.headers.get_all(SET_COOKIE));
        let body = Limited::new(body, BODY_LIMIT).collect().await;
        let body = body.map_err(|error| self.unreachable(&*error))?.to_bytes();
        Ok(Response {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }

    /// The error of an answer that is not the expected one.
    pub(crate) fn unexpected(&self, request: String, response: &Response) -> ServerError {
        let server = self.server.label();
        let status = response.status.as_u16();
        let message = response.message();
        match status {
            401 | 403 => ServerError::Unauthorized {
                server,
                name: self.server.name.clone(),
                status,
                has_credentials: !matches!(self.server.credentials, Credentials::None),
                message,
            },
            _ => ServerError::Status {
                server,
                request,
                status,
                message,
            },
        }
    }

    pub(crate) fn not_jupyter(&self, problem: String) -> ServerError {
        ServerError::NotJupyter {
            server: self.server.label(),
            problem,
        }
    }

    pub(crate) fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ServerError {
        unreachable(&self.server, error)
    }
}

/// The error of a connection that could not be opened, or broke.
pub(crate) fn unreachable(
    server: &Server,
    error: &(dyn std::error::Error + 'static),
) -> ServerError {
    // The outer errors of hyper say only that a request failed.
    let mut inner = error;
    let mut certificate = false;
    loop {
        certificate |= inner.is::<tokio_rustls::rustls::Error>();
        let wrapped = inner.downcast_ref::<std::io::Error>();
        let wrapped = wrapped.and_then(|error| error.get_ref());
        let next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn std::error::Error + 'static)),
            None => inner.source(),
        };
        match next {
            Some(next) => inner = next,
            None => break,
        }
    }
    ServerError::Unreachable {
        server: server.label(),
        problem: redact(&inner.to_string()).into_owned(),
        certificate,
    }
}

/// A request in messages.
pub(crate) fn describe(method: &Method, path: &str) -> String {
    format!("{method} {path}")
}

impl Response {
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The server's message, or where it redirects to.
    fn message(&self) -> String {
        let json = self.json();
        let text = json.as_ref().and_then(|value| {
            let text = value["message"].as_str().filter(|text| !text.is_empty());
            text.or_else(|| value["reason"].as_str())
        });
        let location = self.headers.get(LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        let message = match (text, location) {
            (Some(text), _) => text.to_owned(),
            (None, Some(location)) => format!("it redirects to {location}"),
            (None, None) => String::new(),
        };
        let message: String = message.chars().take(MESSAGE_LIMIT).collect();
        redact(message.trim()).into_owned()
    }
}

/// The headers of every request.
fn headers(server: &Server) -> Result<HeaderMap, ServerError> {
    let mut headers = HeaderMap::new();
    let value = |what: &str, text: &str| {
        let value = HeaderValue::from_str(text).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        value.map_err(|_| ServerError::BadHeader {
            what: what.to_owned(),
        })
    };
    if let Credentials::Token { token, scheme } = &server.credentials {
        let text = format!("{scheme} {}", token.text());
        headers.insert(AUTHORIZATION, value("the token", &text)?);
    }
    for (name, text) in &server.headers {
        let what = format!("the header `{name}`");
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|_| ServerError::BadHeader { what: what.clone() })?;
        headers.insert(key, value(&what, text.text())?);
    }
    Ok(headers)
}
