//! A command's questions to the host.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::connection::Client;
use super::find::{find_or_start, reach};
use super::folder::{self, Folder};
use super::frame::Frame;
use super::wanted::Wanted;
use crate::evaluation::alone::runtime;
use crate::failure::Failure;
use crate::host::error::HostError;

/// How long an answer may take that needs no kernel.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The host, started if there is none.
pub(crate) async fn host(idle_exit: Option<Duration>) -> Result<Client, Failure> {
    let met = find_or_start(folder::choose(), idle_exit).await?;
    Ok(met.client)
}

/// The host, if there is one.
pub(crate) async fn living_host() -> Result<Option<Client>, Failure> {
    let Some(folder) = Folder::existing(folder::choose())? else {
        return Ok(None);
    };
    let Some(client) = reach(&folder).await? else {
        return Ok(None);
    };
    Ok(Some(client.same_protocol()?))
}

/// Asks the host something; `None` if there is no host. `more` is how long the answer may take beyond
/// the usual.
pub(crate) fn ask(wanted: &Wanted, more: Duration) -> Result<Option<Value>, Failure> {
    runtime()?.block_on(async {
        let Some(mut client) = living_host().await? else {
            return Ok(None);
        };
        let answer = client.ask(wanted, PATIENCE + more).await?;
        Ok(Some(checked(answer)?))
    })
}

/// The end of an answer, unless it is a failure.
pub(crate) fn checked(mut end: Value) -> Result<Value, Failure> {
    match end.get_mut("failure").map(Value::take) {
        Some(failure) => Err(Failure::deserialize(failure).map_err(std::io::Error::from)?),
        None => Ok(end),
    }
}

/// The end of an answer that came with frames before it.
pub(crate) fn end_of(frame: &Frame) -> Result<Option<Value>, Failure> {
    let value = frame.value().map_err(HostError::from)?;
    if value.get("end").is_none() {
        return Ok(None);
    }
    let value = super::connection::checked(value)?;
    checked(value).map(Some)
}
