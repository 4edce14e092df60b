//! Kernels that use more memory than they may, while they run a cell.

use std::convert::Infallible;
use std::time::Duration;

use crate::process::Processes;
use crate::stop::{StopReason, Stopper};

/// How often is looked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Stops what runs when the kernel uses too much memory. Never ends.
pub(super) async fn watch(pid: Option<u32>, limit: Option<u64>, stopper: &Stopper) -> Infallible {
    let (Some(pid), Some(limit)) = (pid, limit) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(INTERVAL).await;
        match Processes::now().memory_of(pid) {
            Some(used) if used > limit => stopper.stop(StopReason::MemoryLimit { used, limit }),
            _ => {}
        }
    }
}
