//! A client of Jupyter servers: Jupyter Server, Kernel Gateway, Enterprise Gateway, `JupyterHub`.
//!
//! Kernels on a server are started, interrupted and ended over REST ([`ServerClient`]). Their messages are carried by one
//! WebSocket ([`KernelSocket`]).
//!
//! # Modules, in reading order
//!
//! | module | purpose |
//! | --- | --- |
//! | `url` | the address of a server |
//! | `server` | how to reach a server: address, credentials, certificates, proxy |
//! | `connect`, `stream`, `tls` | connections: TCP, proxy, TLS |
//! | `http`, `cookies`, `login` | requests with credentials |
//! | `rest` | the REST interface |
//! | `socket` | the channels of a kernel |
//!
//! The crate starts no processes, prints nothing and reads no environment variables: the caller passes all settings.

mod connect;
mod cookies;
mod error;
mod http;
mod login;
mod percent;
mod rest;
mod secret;
mod server;
mod socket;
mod stream;
mod tls;
mod url;

pub use error::ServerError;
pub use rest::{
    KernelOwner, RemoteKernel, RemoteKernelspec, RemoteKernelspecs, RemoteSession, ServerClient,
    ServerStatus, StartRequest,
};
pub use secret::Secret;
pub use server::{Credentials, ProxyOptions, Server, TOKEN_SCHEME, TlsOptions};
pub use socket::{KernelSocket, Reconnection, SocketEvent};
pub use url::{BadUrl, PastedUrl, ServerUrl};
