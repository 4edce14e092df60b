//! [`ServerError`]: why a server did not do what it was asked.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a server did not do what it was asked. No variant contains a credential.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerError {
    /// A file with a certificate or a key cannot be used.
    #[error("{} cannot be used: {problem}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A header or a token has characters that a request cannot have.
    #[error("{what} has characters that are not allowed in a request")]
    BadHeader {
        /// The header.
        what: String,
    },
    /// No connection, or it broke.
    #[error("the server {server} is not reachable: {problem}")]
    Unreachable {
        /// The server.
        server: String,
        /// The problem.
        problem: String,
        /// Whether the server's certificate was rejected.
        certificate: bool,
    },
    /// The server did not answer in time.
    #[error("the server {server} did not answer {request} within {} s", after.as_secs_f64())]
    Timeout {
        /// The server.
        server: String,
        /// Method and path.
        request: String,
        /// The limit.
        after: Duration,
    },
    /// The server wants other credentials.
    #[error("the server {server} rejects the request: {}", if *has_credentials { "the token or password is wrong, or lacks permission" } else { "it requires a token or a password" })]
    Unauthorized {
        /// The server.
        server: String,
        /// The name of its settings.
        name: Option<String>,
        /// The HTTP status: 401 or 403.
        status: u16,
        /// Whether the request had credentials.
        has_credentials: bool,
        /// The server's message.
        message: String,
    },
    /// The kernel does not exist on the server.
    #[error("the kernel {kernel} does not exist on the server {server}")]
    KernelGone {
        /// The server.
        server: String,
        /// The id of the kernel.
        kernel: String,
    },
    /// The server was restarted, and its kernels ended with it.
    #[error("the server {server} was restarted: the kernel {kernel} ended with it")]
    ServerRestarted {
        /// The server.
        server: String,
        /// The id of the kernel.
        kernel: String,
    },
    /// The server answered with another status than expected.
    #[error("the server {server} answered {request} with status {status}{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Status {
        /// The server.
        server: String,
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The answer is not one of a Jupyter server.
    #[error("the server {server} does not answer as a Jupyter server: {problem}")]
    NotJupyter {
        /// The server.
        server: String,
        /// The problem.
        problem: String,
    },
}

impl ServerError {
    /// The HTTP status, if the server answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unauthorized { status, .. } | Self::Status { status, .. } => Some(*status),
            Self::KernelGone { .. } => Some(404),
            _ => None,
        }
    }

    /// Whether a later attempt may succeed without a change of settings.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { certificate, .. } => !certificate,
            Self::Timeout { .. } => true,
            Self::Status { status, .. } => matches!(status, 429 | 500..),
            _ => false,
        }
    }
}
