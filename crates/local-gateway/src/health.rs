//! Whether a gateway answers, and is the one of its record.

use std::sync::Arc;
use std::time::Duration;

use cellwright_gateway::{RemoteKernel, ServerClient, ServerError};

use crate::record::GatewayRecord;

/// Time limit of a check. A gateway that passes on much output answers slowly.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a check.
#[derive(Debug)]
pub(crate) enum Health {
    /// The gateway accepts the token of the record. It has these kernels.
    Healthy(Vec<RemoteKernel>),
    /// Another process listens on its port, or none. The token was not sent.
    NotListening,
    /// It does not answer as it should.
    Failing(ServerError),
}

/// Checks the gateway of a record. The token is sent only to the process of the record.
pub(crate) async fn check(record: &GatewayRecord) -> Health {
    let (pid, port) = (record.gateway_pid, record.url.port());
    let owns = move || cellwright_jupyter_server::owns_listener(pid, port);
    let owns = tokio::task::spawn_blocking(owns).await;
    // Systems that do not report owners have the lock of the keeper as proof.
    if owns.ok().flatten() == Some(false) {
        return Health::NotListening;
    }
    match list_kernels(record, CHECK_TIMEOUT).await {
        Ok(kernels) => Health::Healthy(kernels),
        Err(error) => Health::Failing(error),
    }
}

/// The kernels on a gateway.
pub(crate) async fn list_kernels(
    record: &GatewayRecord,
    timeout: Duration,
) -> Result<Vec<RemoteKernel>, ServerError> {
    client(record, timeout)?.kernels().await
}

/// A client of a gateway.
pub(crate) fn client(
    record: &GatewayRecord,
    timeout: Duration,
) -> Result<ServerClient, ServerError> {
    let mut server = record.server();
    server.request_timeout = timeout;
    ServerClient::new(Arc::new(server))
}
