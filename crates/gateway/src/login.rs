//! The login page of a Jupyter server, for a password.

use hyper::{Method, StatusCode};

use crate::error::ServerError;
use crate::http::{Body, HttpClient, describe};
use crate::percent::percent_encode;
use crate::secret::Secret;
use crate::server::Credentials;

/// The path of the login page.
const LOGIN_PATH: &str = "login";

/// Sends the password to the login page. The cookies of the answer prove the login from then on.
pub(crate) async fn log_in(http: &HttpClient, password: &Secret) -> Result<(), ServerError> {
    // The page sets the cookie that every form must repeat.
    http.send(Method::GET, LOGIN_PATH, Body::Empty).await?;
    let xsrf = http.cookies().get("_xsrf").unwrap_or_default().to_owned();
    let form = format!(
        "_xsrf={}&password={}",
        percent_encode(&xsrf),
        percent_encode(password.text())
    );
    let response = http
        .send(Method::POST, LOGIN_PATH, Body::Form(form))
        .await?;
    match response.status {
        // The page redirects after a successful login, and appears again after a failed one.
        StatusCode::FOUND | StatusCode::SEE_OTHER => Ok(()),
        StatusCode::OK | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let server = http.server();
            Err(ServerError::Unauthorized {
                server: server.label(),
                name: server.name.clone(),
                status: response.status.as_u16(),
                has_credentials: !matches!(server.credentials, Credentials::None),
                message: "the login page rejects the password".to_owned(),
            })
        }
        _ => Err(http.unexpected(describe(&Method::POST, LOGIN_PATH), &response)),
    }
}
