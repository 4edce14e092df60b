//! Ending the host: by asking, and if it does not answer by signals, but only if the process is
//! certainly the host.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::process::background::{Identity, Signal};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::connection::Client;
use super::error::HostError;
use super::find::{reach, wait_until_gone};
use super::folder::Folder;
use super::place;
use super::record::{Holder, Record};
use super::start::HOST;

/// How long a host may take to end everything. It takes ten seconds itself at the most.
const ANSWER: Duration = Duration::from_secs(15);

/// How long its process may take to go after that.
const LEAVE: Duration = Duration::from_secs(5);

/// How long a process that has nothing left to do may take to end. Where nobody buries the dead it never
/// does, as far as can be seen.
const END: Duration = Duration::from_millis(500);

/// How long one that was killed may take.
const DIE: Duration = Duration::from_secs(3);

/// What came of it.
pub(crate) enum Stopped {
    /// There was none.
    Nobody,
    /// It ended what it had, and then itself.
    Asked { pid: u32, ended: Map<String, Value> },
    /// It did not answer and was ended by a signal.
    Forced { pid: u32 },
}

/// Ends the host of a folder and waits until it is gone.
pub(crate) async fn stop(path: PathBuf) -> Result<Stopped, HostError> {
    let Some(folder) = Folder::existing(path)? else {
        return Ok(Stopped::Nobody);
    };
    let stopped = match reach(&folder).await {
        Ok(Some(client)) => ask(&folder, client).await,
        Ok(None) => end_unreachable(&folder).await,
        Err(HostError::Hung { pid }) => force(&folder, pid).await,
        Err(HostError::Garbled(error)) => match Record::of_holder(&folder)? {
            Holder::Somebody(Some(record)) => force(&folder, record.pid).await,
            _ => Err(HostError::Garbled(error)),
        },
        Err(error) => Err(error),
    }?;
    place::clear(&folder)?;
    Ok(stopped)
}

async fn ask(folder: &Folder, mut client: Client) -> Result<Stopped, HostError> {
    let (pid, instance) = (client.host.pid, client.host.instance.clone());
    let process = match Record::of_holder(folder)? {
        Holder::Somebody(Some(record)) if record.pid == pid => Some(record.identity()),
        _ => None,
    };
    let answer = client.ask(&json!({"do": "stop"}), ANSWER).await;
    if matches!(answer, Ok(_) | Err(HostError::Gone))
        && wait_until_gone(folder, Some(&instance), LEAVE).await?
    {
        // It lets go of the lock as the last thing it does, and then it still has to end.
        if let Some(process) = process {
            timeout(END, ended(process)).await.ok();
        }
        let ended = answer.ok().and_then(|mut end| match end["ended"].take() {
            Value::Object(ended) => Some(ended),
            _ => None,
        });
        let ended = ended.unwrap_or_default();
        return Ok(Stopped::Asked { pid, ended });
    }
    force(folder, pid).await
}

/// Waits until a process has ended.
async fn ended(process: Identity) {
    while process.runs() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Nobody answers, but there may be one that is just ending, or that others took the socket from.
async fn end_unreachable(folder: &Folder) -> Result<Stopped, HostError> {
    let Holder::Somebody(record) = Record::of_holder(folder)? else {
        return Ok(Stopped::Nobody);
    };
    let pid = record.map_or(0, |record| record.pid);
    if wait_until_gone(folder, None, LEAVE).await? {
        let ended = Map::new();
        return Ok(Stopped::Asked { pid, ended });
    }
    force(folder, pid).await
}

/// Signals the holder of the lock, which nobody but a host of ours can be. `said` is who it is said
/// to be.
async fn force(folder: &Folder, said: u32) -> Result<Stopped, HostError> {
    let Holder::Somebody(Some(record)) = Record::of_holder(folder)? else {
        return Err(HostError::NotProven { pid: said });
    };
    let (pid, process) = (record.pid, record.identity());
    if pid != said || !process.runs() || !was_started_as_host(process) {
        return Err(HostError::NotProven { pid: said });
    }
    for (signal, patience) in [(Signal::Terminate, LEAVE), (Signal::Kill, DIE)] {
        // It may have gone by itself meanwhile.
        process.signal(signal);
        if wait_until_gone(folder, Some(&record.instance), patience).await? {
            return Ok(Stopped::Forced { pid });
        }
    }
    Err(HostError::Immortal { pid })
}

/// Whether the process was started to be a host, as far as the system tells.
fn was_started_as_host(process: Identity) -> bool {
    process
        .arguments()
        .is_none_or(|arguments| arguments.iter().any(|one| one == HOST.as_bytes()))
}
