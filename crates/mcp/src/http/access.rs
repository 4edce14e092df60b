//! [`AccessPolicy`]: which requests are accepted, and which web pages may read the responses.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HOST, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use cellwright_engine::loopback::{LOOPBACK, bearer_token, closing, names_own_host};
use cellwright_engine::secret::constant_time_eq;
use serde_json::json;

use super::ENDPOINT;

/// Methods of the endpoint.
const METHODS: &str = "GET, POST, DELETE";

/// Headers of requests that a page may set. It may also set all headers that begin with [`MCP_HEADER_PREFIX`].
const REQUEST_HEADERS: &str =
    "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version";

/// Prefix of the headers of the protocol.
const MCP_HEADER_PREFIX: &str = "mcp-";

/// Headers of responses that a page may read.
const RESPONSE_HEADERS: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate";

/// How long a browser may remember a preflight response, in seconds.
const PREFLIGHT_MAX_AGE: &str = "600";

/// Largest size of all headers of a request, in bytes. Errors repeat some of them.
const HEADERS_LIMIT: usize = 32 * 1024;

/// Which requests are accepted.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// The bearer token that every request must carry.
    pub token: String,
    /// Accepted names of this machine, in addition to those of the loopback interface.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, as [`parse_origin`] returns them.
    pub allowed_origins: Vec<String>,
}

/// The decision on a request.
pub(super) enum Access {
    /// The request is accepted; the origin of the page that sent it, if a page did.
    Granted(Option<HeaderValue>),
    /// A browser asks on behalf of an allowed page whether it may send a request.
    Preflight(Response),
    /// The request is not accepted.
    Rejected(Response),
}

impl AccessPolicy {
    /// Decides on a request by its head.
    pub(super) fn check(&self, head: &Parts) -> Access {
        let is_own = |name: &str| {
            LOOPBACK.contains(&name) || self.allowed_hosts.iter().any(|host| host == name)
        };
        if !names_own_host(&head.uri, &head.headers, is_own) {
            return reject(
                StatusCode::FORBIDDEN,
                "the Host header names another server",
            );
        }
        let Ok(origin) = self.allowed_origin(&head.headers) else {
            return reject(
                StatusCode::FORBIDDEN,
                "the Origin header names a page that is not allowed",
            );
        };
        if let Some(origin) = &origin
            && head.method == Method::OPTIONS
            && head.uri.path() == ENDPOINT
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            return Access::Preflight(preflight_response(origin, &head.headers));
        }
        let headers_size: usize = head
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        let token_matches = bearer_token(&head.headers)
            .is_some_and(|token| constant_time_eq(self.token.as_bytes(), token));
        let mut response = if !token_matches {
            let mut response =
                error_response(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            response
        } else if headers_size > HEADERS_LIMIT {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            error_response(status, "the headers are larger than 32 KiB")
        } else {
            return Access::Granted(origin);
        };
        self.add_cors_headers(&mut response, origin);
        Access::Rejected(closing(response))
    }

    /// Lets the page that sent the request read the response.
    pub(super) fn add_cors_headers(&self, response: &mut Response, origin: Option<HeaderValue>) {
        if self.allowed_origins.is_empty() {
            return;
        }
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static(RESPONSE_HEADERS);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    /// The allowed origin of a request; `None` if no page sent it, or a page of this server. The error means that a page
    /// sent it that is not allowed.
    fn allowed_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
        let own_host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let mut allowed = None;
        for header in headers.get_all(ORIGIN) {
            let origin = header.to_str().map_err(|_| ())?;
            if self.allowed_origins.iter().any(|known| known == origin) {
                allowed = Some(header.clone());
            } else {
                let same_origin = origin.strip_prefix("http://");
                same_origin
                    .filter(|rest| Some(*rest) == own_host)
                    .ok_or(())?;
            }
        }
        Ok(allowed)
    }
}

/// Allows a page to send the requests of the protocol.
fn preflight_response(origin: &HeaderValue, request: &HeaderMap) -> Response {
    let requested = request
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .map(str::trim)
        .filter(|name| {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            name.to_ascii_lowercase().starts_with(MCP_HEADER_PREFIX) && name.bytes().all(is_name)
        });
    let names: Vec<&str> = std::iter::once(REQUEST_HEADERS).chain(requested).collect();
    let allowed_headers = HeaderValue::from_str(&names.join(", "));
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        allowed_headers.unwrap_or(HeaderValue::from_static(REQUEST_HEADERS)),
    );
    headers.insert(
        ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(PREFLIGHT_MAX_AGE),
    );
    // Some browsers ask separately before a page of another network reaches this machine.
    if request.contains_key("access-control-request-private-network") {
        let allowed = HeaderValue::from_static("true");
        headers.insert("access-control-allow-private-network", allowed);
    }
    let vary = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network";
    headers.insert(VARY, HeaderValue::from_static(vary));
    response
}

fn reject(status: StatusCode, error: &str) -> Access {
    Access::Rejected(closing(error_response(status, error)))
}

/// A response with an error as JSON.
pub(super) fn error_response(status: StatusCode, error: &str) -> Response {
    let body = json!({"error": error}).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Parses the origin of web pages, such as `https://example.org`, into the form that browsers send.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let invalid =
        || "expected an origin such as `https://example.org` or `http://localhost:8080`".to_owned();
    let text = text.to_ascii_lowercase();
    let text = text.strip_suffix('/').unwrap_or(&text);
    let (scheme, authority) = text.split_once("://").ok_or_else(invalid)?;
    let scheme_is_valid = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if !scheme_is_valid || authority.is_empty() || !authority.bytes().all(is_host) {
        return Err(invalid());
    }
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let authority = Some(authority)
        .filter(|_| !default_port.is_empty())
        .and_then(|authority| authority.strip_suffix(default_port))
        .unwrap_or(authority);
    Ok(format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> AccessPolicy {
        AccessPolicy {
            token: "0123456789abcdef".to_owned(),
            allowed_hosts: Vec::new(),
            allowed_origins: vec!["https://pages.example".to_owned()],
        }
    }

    fn preflight(path: &str, origin: &str, headers: &str) -> Access {
        let request = axum::http::Request::builder()
            .method("OPTIONS")
            .uri(path)
            .header("host", "localhost:1")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", headers);
        policy().check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_preflight_of_an_allowed_page_needs_no_token() {
        let names = "authorization,mcp-name,mcp-param-x,x-other,mcp-a b";
        let Access::Preflight(response) = preflight(ENDPOINT, "https://pages.example", names)
        else {
            panic!("no preflight response");
        };
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(
            header("access-control-allow-origin"),
            "https://pages.example"
        );
        assert_eq!(header("access-control-allow-methods"), METHODS);
        assert!(header("vary").starts_with("Origin"));
        let allowed = header("access-control-allow-headers");
        assert!(allowed.contains("Authorization"), "{allowed}");
        assert!(allowed.ends_with("mcp-name, mcp-param-x"), "{allowed}");
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-credentials")
        );
    }

    #[test]
    fn other_preflights_are_rejected() {
        for (path, origin, status) in [
            (ENDPOINT, "https://evil.example", 403),
            (ENDPOINT, "null", 403),
            (ENDPOINT, "http://localhost:1", 401),
            ("/other", "https://pages.example", 401),
        ] {
            let Access::Rejected(response) = preflight(path, origin, "authorization") else {
                panic!("{path} {origin}");
            };
            assert_eq!(response.status(), status, "{path} {origin}");
            assert_eq!(response.headers()["connection"], "close");
            let allowed = response.headers().get("access-control-allow-origin");
            assert_eq!(allowed.is_some(), origin == "https://pages.example");
        }
    }

    #[test]
    fn origins_have_the_form_that_browsers_send() {
        for (text, origin) in [
            ("https://example.org", "https://example.org"),
            ("https://Example.org:443/", "https://example.org"),
            ("http://localhost:80", "http://localhost"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert_eq!(parse_origin(text).as_deref(), Ok(origin));
        }
        for text in [
            "*",
            "null",
            "example.org",
            "https://",
            "https://*.example.org",
            "https://example.org/path",
            "https://user@example.org",
            "https://a b",
            "",
        ] {
            assert!(parse_origin(text).is_err(), "{text}");
        }
    }
}
