//! Ends the gateways of a user and all kernels on them.

use std::time::Duration;

use cellwright_kernel::process::daemon::{EndSignal, ProcessIdentity};
use tokio::time::{Instant, sleep};

use crate::error::LocalGatewayError;
use crate::files::{GatewayDir, Generation, KeeperState};
use crate::keeper_options::KEEPER_ARG;
use crate::status::status;

/// How long a keeper may take to end its gateway.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(12);

/// How long it may take to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay between two checks.
const CHECK_DELAY: Duration = Duration::from_millis(20);

/// A gateway that was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedGateway {
    /// The process id of its keeper.
    pub pid: u32,
    /// How many kernels it had. `None`: it did not answer.
    pub kernels: Option<usize>,
}

/// Ends all gateways of a directory. A process is signalled only if it holds the lock of a keeper and is the one that wrote
/// the record.
pub async fn stop(dir: &GatewayDir) -> Result<Vec<StoppedGateway>, LocalGatewayError> {
    let mut stopped = Vec::new();
    for gateway in status(dir).await? {
        let pid = gateway.record.pid;
        end_keeper(&gateway.generation, gateway.record.keeper()).await?;
        stopped.push(StoppedGateway {
            pid,
            kernels: gateway.kernels.ok().map(|kernels| kernels.len()),
        });
    }
    if let Some(_lock) = dir.try_lock_start()? {
        dir.remove_stale();
    }
    Ok(stopped)
}

async fn end_keeper(
    generation: &Generation,
    keeper: ProcessIdentity,
) -> Result<(), LocalGatewayError> {
    let is_keeper = keeper.command_line().is_none_or(|arguments| {
        let mut arguments = arguments.iter();
        arguments.any(|argument| argument == KEEPER_ARG.as_bytes())
    });
    let not_stopped = LocalGatewayError::NotStopped { pid: keeper.pid };
    if !is_keeper {
        return Err(not_stopped);
    }
    for (signal, timeout) in [
        (EndSignal::Terminate, TERMINATE_TIMEOUT),
        (EndSignal::Kill, KILL_TIMEOUT),
    ] {
        // It may have ended in the meantime.
        keeper.signal(signal);
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if matches!(generation.keeper()?, KeeperState::Gone) {
                return Ok(());
            }
            sleep(CHECK_DELAY).await;
        }
    }
    Err(not_stopped)
}
