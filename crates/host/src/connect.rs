//! Connects commands to the host.

use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::runtime_dir::{self, RuntimeDir};

use super::connection::Client;
use super::find::{connect_existing, find_or_start};

/// Connects to the host and starts it if there is none.
pub async fn connect_or_start(idle_exit: Option<Duration>) -> Result<Client, Failure> {
    let found = find_or_start(runtime_dir::default_path(), idle_exit).await?;
    Ok(found.client)
}

/// Connects to the host, if there is one.
pub async fn connect_running() -> Result<Option<Client>, Failure> {
    let Some(dir) = RuntimeDir::open(&runtime_dir::default_path())? else {
        return Ok(None);
    };
    let Some(client) = connect_existing(&dir).await? else {
        return Ok(None);
    };
    Ok(Some(client.check_protocol()?))
}
