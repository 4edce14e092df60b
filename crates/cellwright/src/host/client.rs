//! Requests from a command to the host.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::connection::Client;
use super::find::{connect_existing, find_or_start};
use super::frame::Frame;
use super::protocol::HostRequest;
use crate::failure::Failure;
use crate::host::error::HostError;
use crate::runtime::runtime;
use crate::runtime_dir::{self, RuntimeDir};

/// How long an answer may take that needs no kernel.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// The host, started if there is none.
pub(crate) async fn connect_or_start(idle_exit: Option<Duration>) -> Result<Client, Failure> {
    let met = find_or_start(runtime_dir::default_path(), idle_exit).await?;
    Ok(met.client)
}

/// The host, if there is one.
pub(crate) async fn connect_running() -> Result<Option<Client>, Failure> {
    let Some(folder) = RuntimeDir::open(runtime_dir::default_path())? else {
        return Ok(None);
    };
    let Some(client) = connect_existing(&folder).await? else {
        return Ok(None);
    };
    Ok(Some(client.check_protocol()?))
}

/// Asks the host something; `None` if there is no host. `more` is how long the answer may take beyond
/// the usual.
pub(crate) fn request_blocking(
    wanted: &HostRequest,
    more: Duration,
) -> Result<Option<Value>, Failure> {
    runtime()?.block_on(async {
        let Some(mut client) = connect_running().await? else {
            return Ok(None);
        };
        let answer = client.request(wanted, REPLY_TIMEOUT + more).await?;
        Ok(Some(check_failure(answer)?))
    })
}

/// The end of an answer, unless it is a failure.
pub(crate) fn check_failure(mut end: Value) -> Result<Value, Failure> {
    match end.get_mut("failure").map(Value::take) {
        Some(failure) => Err(Failure::deserialize(failure).map_err(std::io::Error::from)?),
        None => Ok(end),
    }
}

/// The end of an answer that came with frames before it.
pub(crate) fn final_reply(frame: &Frame) -> Result<Option<Value>, Failure> {
    let value = frame.value().map_err(HostError::from)?;
    if value.get("end").is_none() {
        return Ok(None);
    }
    let value = super::connection::check_refusal(value)?;
    check_failure(value).map(Some)
}
