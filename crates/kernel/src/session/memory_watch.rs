//! Enforces the memory limit while a cell runs.

use std::convert::Infallible;
use std::time::Duration;

use crate::process::ProcessTable;
use crate::stop::{StopHandle, StopReason};

/// How often the memory is measured.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Stops the cell when the kernel and its descendants exceed `limit` bytes. Never returns.
pub(super) async fn watch(
    pid: Option<u32>,
    limit: Option<u64>,
    stop_handle: &StopHandle,
) -> Infallible {
    let (Some(pid), Some(limit)) = (pid, limit) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        match ProcessTable::capture().tree_memory(pid) {
            Some(used) if used > limit => stop_handle.stop(StopReason::MemoryLimit { used, limit }),
            _ => {}
        }
    }
}
