//! [`ServerClient`]: the REST interface of a Jupyter server.

mod types;

use std::sync::Arc;

use cellwright_stdext::error_chain;
use hyper::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use tracing::debug;

use crate::error::ServerError;
use crate::http::{Body, HttpClient, Response, describe};
use crate::login;
use crate::percent::percent_encode;
use crate::server::{Credentials, Server};
pub use types::{
    KernelOwner, RemoteKernel, RemoteKernelspec, RemoteKernelspecs, RemoteSession, ServerStatus,
    StartRequest,
};

/// Sends requests to one Jupyter server. Clones share their connections.
#[derive(Clone, Debug)]
pub struct ServerClient {
    http: HttpClient,
    /// Set once the login page has accepted the password.
    login: Arc<OnceCell<()>>,
}

impl ServerClient {
    /// A client of a server. Reads the files with certificates, and connects with the first request.
    pub fn new(server: Arc<Server>) -> Result<Self, ServerError> {
        Ok(Self {
            http: HttpClient::new(server)?,
            login: Arc::default(),
        })
    }

    /// The server.
    pub fn server(&self) -> &Server {
        self.http.server()
    }

    pub(crate) fn shared_server(&self) -> Arc<Server> {
        self.http.shared_server()
    }

    pub(crate) fn http(&self) -> &HttpClient {
        &self.http
    }

    /// The version of the server, from `GET /api`, which servers answer without credentials.
    pub async fn version(&self) -> Result<Option<String>, ServerError> {
        let response = self.send(Method::GET, "api", Body::Empty).await?;
        let version = self.parse::<Value>(&response, "GET /api")?["version"].take();
        Ok(version.as_str().map(str::to_owned))
    }

    /// When the server was started and how many kernels it has. `None`: the server does not tell.
    pub async fn status(&self) -> Result<Option<ServerStatus>, ServerError> {
        match self.get("api/status").await {
            Err(ServerError::Status {
                status: 404 | 405, ..
            }) => Ok(None),
            Err(error) => Err(error),
            Ok(status) => Ok(Some(status)),
        }
    }

    /// The installed kernels.
    pub async fn kernelspecs(&self) -> Result<RemoteKernelspecs, ServerError> {
        let value: Value = self.get("api/kernelspecs").await?;
        RemoteKernelspecs::parse(&value).ok_or_else(|| {
            self.http
                .not_jupyter("`/api/kernelspecs` is no list".to_owned())
        })
    }

    /// The running kernels.
    pub async fn kernels(&self) -> Result<Vec<RemoteKernel>, ServerError> {
        self.get("api/kernels").await
    }

    /// A running kernel.
    pub async fn kernel(&self, id: &str) -> Result<RemoteKernel, ServerError> {
        let path = kernel_path(id, "");
        let result = self.get(&path).await;
        result.map_err(|error| self.kernel_error(id, error))
    }

    /// The notebooks and consoles that have a kernel.
    pub async fn sessions(&self) -> Result<Vec<RemoteSession>, ServerError> {
        self.get("api/sessions").await
    }

    /// Starts a kernel.
    pub async fn start_kernel(&self, request: &StartRequest) -> Result<RemoteKernel, ServerError> {
        let mut body = Map::new();
        if let Some(name) = &request.name {
            body.insert("name".to_owned(), json!(name));
        }
        if !request.env.is_empty() {
            let env = request.env.iter().cloned();
            let env: Map<_, _> = env.map(|(name, value)| (name, value.into())).collect();
            body.insert("env".to_owned(), env.into());
        }
        if let Some(path) = &request.path {
            body.insert("path".to_owned(), json!(path));
        }
        let body = Body::Json(body.into());
        let response = self.send(Method::POST, "api/kernels", body).await?;
        self.parse(&response, "POST /api/kernels")
    }

    /// Interrupts a kernel.
    pub async fn interrupt(&self, id: &str) -> Result<(), ServerError> {
        self.command(Method::POST, id, "/interrupt").await
    }

    /// Restarts a kernel.
    pub async fn restart(&self, id: &str) -> Result<(), ServerError> {
        self.command(Method::POST, id, "/restart").await
    }

    /// Ends a kernel. One that does not exist any more counts as ended.
    pub async fn delete(&self, id: &str) -> Result<(), ServerError> {
        match self.command(Method::DELETE, id, "").await {
            Err(ServerError::KernelGone { .. } | ServerError::Status { status: 410, .. }) => Ok(()),
            result => result,
        }
    }

    /// Logs in if the server has a password and this client has not done it yet.
    pub(crate) async fn log_in(&self) -> Result<(), ServerError> {
        let Credentials::Password(password) = &self.server().credentials else {
            return Ok(());
        };
        let login = || login::log_in(&self.http, password);
        self.login.get_or_try_init(login).await.copied()
    }

    async fn command(&self, method: Method, id: &str, action: &str) -> Result<(), ServerError> {
        let path = kernel_path(id, action);
        let body = match method {
            Method::POST => Body::Json(json!({})),
            _ => Body::Empty,
        };
        let result = self.send(method, &path, body).await;
        result
            .map(drop)
            .map_err(|error| self.kernel_error(id, error))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ServerError> {
        let response = self.send(Method::GET, path, Body::Empty).await?;
        self.parse(&response, &describe(&Method::GET, path))
    }

    /// Sends a request. The answer has a status of success.
    async fn send(&self, method: Method, path: &str, body: Body) -> Result<Response, ServerError> {
        self.log_in().await?;
        let is_post = method != Method::GET;
        let mut response = self.http.send(method.clone(), path, body.clone()).await?;
        if response.status == StatusCode::FORBIDDEN
            && is_post
            && self.http.cookies().get("_xsrf").is_some()
        {
            // The answer has set the cookie that the server misses.
            debug!(
                path,
                "the request is sent again with the server's XSRF cookie"
            );
            response = self.http.send(method.clone(), path, body).await?;
        }
        debug!(%method, path, status = response.status.as_u16(), "answer of the server");
        if response.status.is_success() {
            return Ok(response);
        }
        Err(self.http.unexpected(describe(&method, path), &response))
    }

    fn parse<T: DeserializeOwned>(
        &self,
        response: &Response,
        request: &str,
    ) -> Result<T, ServerError> {
        serde_json::from_slice(&response.body).map_err(|error| {
            let problem = error_chain::format(&error);
            self.http.not_jupyter(format!(
                "the answer to {request} is not as expected: {problem}"
            ))
        })
    }

    /// A request about a kernel that the server does not have.
    fn kernel_error(&self, id: &str, error: ServerError) -> ServerError {
        match error {
            ServerError::Status { status: 404, .. } => ServerError::KernelGone {
                server: self.server().label(),
                kernel: id.to_owned(),
            },
            error => error,
        }
    }
}

/// The path of a kernel. Characters that would end it are escaped.
pub(crate) fn kernel_path(id: &str, action: &str) -> String {
    format!("api/kernels/{}{action}", percent_encode(id))
}
