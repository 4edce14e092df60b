//! Stops the host: by a request, or by signals if it does not answer, but only if the process is certainly the host.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_kernel::process::daemon::{EndSignal, ProcessIdentity};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::connection::Client;
use super::error::HostError;
use super::find::{connect_existing, wait_until_gone};
use super::host_files;
use super::host_main::HOST_ARG;
use super::host_record::{HostRecord, LockState};

/// Time limit for the reply of a host. Its own shutdown takes at most ten seconds.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit for the exit of the process, after the reply or a signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for the exit of a process that has released its lock. In a container without an init process that reaps
/// zombies, the process seems to run indefinitely.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit for the exit after `SIGKILL`.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// The result of a stop.
pub enum StopOutcome {
    /// No host was running.
    NotRunning,
    /// The host shut down by itself. `ended` counts what it ended.
    Stopped { pid: u32, ended: Map<String, Value> },
    /// The host did not answer and was stopped with a signal.
    Forced { pid: u32 },
}

/// Stops the host of a directory and waits until it has exited.
pub async fn stop(path: PathBuf) -> Result<StopOutcome, HostError> {
    let Some(dir) = RuntimeDir::open(&path)? else {
        return Ok(StopOutcome::NotRunning);
    };
    let stopped = match connect_existing(&dir).await {
        Ok(Some(client)) => request_stop(&dir, client).await,
        Ok(None) => kill_unreachable(&dir).await,
        Err(HostError::Unresponsive { pid }) => kill(&dir, pid).await,
        Err(HostError::InvalidReply(error)) => match HostRecord::read_lock_holder(&dir)? {
            LockState::Held(Some(record)) => kill(&dir, record.pid).await,
            _ => Err(HostError::InvalidReply(error)),
        },
        Err(error) => Err(error),
    }?;
    host_files::clear(&dir)?;
    Ok(stopped)
}

async fn request_stop(dir: &RuntimeDir, mut client: Client) -> Result<StopOutcome, HostError> {
    let (pid, instance) = (client.host.pid, client.host.instance.clone());
    let process = match HostRecord::read_lock_holder(dir)? {
        LockState::Held(Some(record)) if record.pid == pid => Some(record.identity()),
        _ => None,
    };
    let reply = client.request(&json!({"do": "stop"}), REPLY_TIMEOUT).await;
    if matches!(reply, Ok(_) | Err(HostError::Disconnected))
        && wait_until_gone(dir, Some(&instance), EXIT_TIMEOUT).await?
    {
        // The host releases the lock just before it exits.
        if let Some(process) = process {
            timeout(REAP_TIMEOUT, wait_for_exit(process)).await.ok();
        }
        let ended = reply.ok().and_then(|mut end| match end["ended"].take() {
            Value::Object(ended) => Some(ended),
            _ => None,
        });
        let ended = ended.unwrap_or_default();
        return Ok(StopOutcome::Stopped { pid, ended });
    }
    kill(dir, pid).await
}

/// Waits until a process has ended.
async fn wait_for_exit(process: ProcessIdentity) {
    while process.is_running() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Stops a host that cannot be reached: it may be ending, or another program may have removed its socket.
async fn kill_unreachable(dir: &RuntimeDir) -> Result<StopOutcome, HostError> {
    let LockState::Held(record) = HostRecord::read_lock_holder(dir)? else {
        return Ok(StopOutcome::NotRunning);
    };
    let pid = record.map_or(0, |record| record.pid);
    if wait_until_gone(dir, None, EXIT_TIMEOUT).await? {
        let ended = Map::new();
        return Ok(StopOutcome::Stopped { pid, ended });
    }
    kill(dir, pid).await
}

/// Sends signals to the holder of the lock, which only a host of this user can hold. Returns an error unless it is a
/// running host process with the id `expected_pid`.
async fn kill(dir: &RuntimeDir, expected_pid: u32) -> Result<StopOutcome, HostError> {
    let LockState::Held(Some(record)) = HostRecord::read_lock_holder(dir)? else {
        return Err(HostError::NotTheHost { pid: expected_pid });
    };
    let (pid, process) = (record.pid, record.identity());
    if pid != expected_pid || !process.is_running() || !was_started_as_host(process) {
        return Err(HostError::NotTheHost { pid: expected_pid });
    }
    for (signal, timeout) in [
        (EndSignal::Terminate, EXIT_TIMEOUT),
        (EndSignal::Kill, KILL_TIMEOUT),
    ] {
        // The process may have ended in the meantime.
        process.signal(signal);
        if wait_until_gone(dir, Some(&record.instance), timeout).await? {
            return Ok(StopOutcome::Forced { pid });
        }
    }
    Err(HostError::NotKilled { pid })
}

/// Whether the process was started as a host. True if its command line is unavailable.
fn was_started_as_host(process: ProcessIdentity) -> bool {
    process.command_line().is_none_or(|arguments| {
        arguments
            .iter()
            .any(|argument| argument == HOST_ARG.as_bytes())
    })
}
