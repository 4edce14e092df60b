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
use super::record::{HostRecord, LockHolder};
use super::start::HOST;

/// How long a host may take to end everything. It takes ten seconds itself at the most.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// How long its process may take to go after that.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a process that has nothing left to do may take to end. Where nobody buries the dead it never
/// does, as far as can be seen.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long one that was killed may take.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// What came of it.
pub enum StopOutcome {
    /// There was none.
    Nobody,
    /// It ended what it had, and then itself.
    Asked {
        pid: u32,
        wait_for_exit: Map<String, Value>,
    },
    /// It did not answer and was ended by a signal.
    Forced { pid: u32 },
}

/// Ends the host of a folder and waits until it is gone.
pub async fn stop(path: PathBuf) -> Result<StopOutcome, HostError> {
    let Some(folder) = RuntimeDir::open(path)? else {
        return Ok(StopOutcome::Nobody);
    };
    let stopped = match connect_existing(&folder).await {
        Ok(Some(client)) => request_stop(&folder, client).await,
        Ok(None) => kill_unreachable(&folder).await,
        Err(HostError::Unresponsive { pid }) => kill(&folder, pid).await,
        Err(HostError::InvalidReply(error)) => match HostRecord::read_lock_holder(&folder)? {
            LockHolder::Held(Some(record)) => kill(&folder, record.pid).await,
            _ => Err(HostError::InvalidReply(error)),
        },
        Err(error) => Err(error),
    }?;
    host_files::clear(&folder)?;
    Ok(stopped)
}

async fn request_stop(folder: &RuntimeDir, mut client: Client) -> Result<StopOutcome, HostError> {
    let (pid, instance) = (client.host.pid, client.host.instance.clone());
    let process = match HostRecord::read_lock_holder(folder)? {
        LockHolder::Held(Some(record)) if record.pid == pid => Some(record.identity()),
        _ => None,
    };
    let answer = client.request(&json!({"do": "stop"}), REPLY_TIMEOUT).await;
    if matches!(answer, Ok(_) | Err(HostError::Disconnected))
        && wait_until_gone(folder, Some(&instance), EXIT_TIMEOUT).await?
    {
        // It lets go of the lock as the last thing it does, and then it still has to end.
        if let Some(process) = process {
            timeout(POLL_INTERVAL, ended(process)).await.ok();
        }
        let ended = answer.ok().and_then(|mut end| match end["ended"].take() {
            Value::Object(ended) => Some(ended),
            _ => None,
        });
        let ended = ended.unwrap_or_default();
        return Ok(StopOutcome::Asked {
            pid,
            wait_for_exit: ended,
        });
    }
    kill(folder, pid).await
}

/// Waits until a process has ended.
async fn ended(process: ProcessIdentity) {
    while process.is_running() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Nobody answers, but there may be one that is just ending, or that others took the socket from.
async fn kill_unreachable(folder: &RuntimeDir) -> Result<StopOutcome, HostError> {
    let LockHolder::Held(record) = HostRecord::read_lock_holder(folder)? else {
        return Ok(StopOutcome::Nobody);
    };
    let pid = record.map_or(0, |record| record.pid);
    if wait_until_gone(folder, None, EXIT_TIMEOUT).await? {
        let ended = Map::new();
        return Ok(StopOutcome::Asked {
            pid,
            wait_for_exit: ended,
        });
    }
    kill(folder, pid).await
}

/// Signals the holder of the lock, which nobody but a host of ours can be. `said` is who it is said
/// to be.
async fn kill(folder: &RuntimeDir, said: u32) -> Result<StopOutcome, HostError> {
    let LockHolder::Held(Some(record)) = HostRecord::read_lock_holder(folder)? else {
        return Err(HostError::NotTheHost { pid: said });
    };
    let (pid, process) = (record.pid, record.identity());
    if pid != said || !process.is_running() || !was_started_as_host(process) {
        return Err(HostError::NotTheHost { pid: said });
    }
    for (signal, patience) in [
        (EndSignal::Terminate, EXIT_TIMEOUT),
        (EndSignal::Kill, KILL_TIMEOUT),
    ] {
        // It may have gone by itself meanwhile.
        process.signal(signal);
        if wait_until_gone(folder, Some(&record.instance), patience).await? {
            return Ok(StopOutcome::Forced { pid });
        }
    }
    Err(HostError::NotKilled { pid })
}

/// Whether the process was started to be a host, as far as the system tells.
fn was_started_as_host(process: ProcessIdentity) -> bool {
    process
        .command_line()
        .is_none_or(|arguments| arguments.iter().any(|one| one == HOST.as_bytes()))
}
