//! [`SpareKernels`]: kernels that are started in advance, so that a new session or a reset does not wait
//! for a start.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_stdext::LockExt;
use tokio::task::JoinSet;

use super::launcher::KernelLauncher;
use crate::kernel::Kernel;
use crate::stop::StopSignal;

/// For how many spare keys a kernel is kept.
const KEYS_MAX: usize = 2;

/// How long the start of a spare waits, so that it does not slow down the caller that took the last one.
const START_DELAY: Duration = Duration::from_millis(100);

/// How long a spare may take to shut down before it is terminated.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// A store of spare kernels. Clones share it.
#[derive(Clone)]
pub struct SpareKernels {
    /// `None`: no spares are kept.
    state: Option<Arc<Mutex<SpareState>>>,
}

#[derive(Default)]
struct SpareState {
    /// Spares by key, the most recently used key last.
    kernels: VecDeque<(String, Spare)>,
    starts: JoinSet<()>,
    closed: bool,
}

enum Spare {
    Starting,
    Ready(Box<dyn Kernel>),
}

impl SpareKernels {
    /// A store that keeps one spare for each of the most recently used keys.
    pub fn new() -> Self {
        Self {
            state: Some(Arc::default()),
        }
    }

    /// A store that keeps no spares.
    pub fn disabled() -> Self {
        Self { state: None }
    }

    /// Starts a spare for the launcher's key if there is none yet.
    pub fn refill(&self, launcher: &Arc<dyn KernelLauncher>) {
        let (Some(state), Some(key)) = (&self.state, launcher.spare_key()) else {
            return;
        };
        let mut guard = lock(state);
        while guard.starts.try_join_next().is_some() {}
        if guard.closed || guard.kernels.iter().any(|(other, _)| *other == key) {
            return;
        }
        let mut evicted = Vec::new();
        while guard.kernels.len() >= KEYS_MAX {
            evicted.extend(guard.kernels.pop_front());
        }
        guard.kernels.push_back((key.clone(), Spare::Starting));
        let (launcher, shared) = (Arc::clone(launcher), Arc::clone(state));
        guard.starts.spawn(async move {
            for (_, spare) in evicted {
                shut_down(spare).await;
            }
            tokio::time::sleep(START_DELAY).await;
            let started = launcher.start_spare(StopSignal::never()).await;
            let unneeded = store_started(&shared, &key, started.ok());
            if let Some(kernel) = unneeded {
                shut_down(Spare::Ready(kernel)).await;
            }
        });
    }

    /// Removes and returns a kernel that is ready, if there is one.
    fn take_ready(&self, launcher: &dyn KernelLauncher) -> Option<Box<dyn Kernel>> {
        let (state, key) = (self.state.as_ref()?, launcher.spare_key()?);
        let mut guard = lock(state);
        let ready =
            |(other, spare): &(String, Spare)| *other == key && matches!(spare, Spare::Ready(_));
        let index = guard.kernels.iter().position(ready)?;
        match guard.kernels.remove(index) {
            Some((_, Spare::Ready(kernel))) => Some(kernel),
            _ => None,
        }
    }

    /// Takes a kernel that is ready and prepares it for the launcher's session. Returns `None` if there
    /// is none or the preparation fails.
    pub(super) async fn adopt_ready(
        &self,
        launcher: &dyn KernelLauncher,
        stop: &StopSignal,
    ) -> Option<Box<dyn Kernel>> {
        let kernel = self.take_ready(launcher)?;
        let mut kernel = launcher.adopt(kernel, stop.clone()).await.ok()?;
        // A spare may have died unnoticed, which must not count as a death in this session.
        kernel.is_alive().then_some(kernel)
    }

    /// The number of kernels that are ready.
    pub fn count(&self) -> usize {
        let Some(state) = &self.state else { return 0 };
        let ready = |entry: &&(String, Spare)| matches!(entry.1, Spare::Ready(_));
        lock(state).kernels.iter().filter(ready).count()
    }

    /// Shuts all spares down.
    pub async fn clear(&self) {
        let Some(state) = &self.state else { return };
        let kernels = std::mem::take(&mut lock(state).kernels);
        for (_, spare) in kernels {
            shut_down(spare).await;
        }
    }

    /// Shuts all spares down and keeps no more.
    pub async fn close(&self) {
        let Some(state) = &self.state else { return };
        let mut starts = {
            let mut guard = lock(state);
            guard.closed = true;
            std::mem::take(&mut guard.starts)
        };
        self.clear().await;
        starts.shutdown().await;
    }
}

impl Default for SpareKernels {
    fn default() -> Self {
        Self::new()
    }
}

/// Stores a started kernel in the entry reserved for it. Returns the kernel if the entry is gone.
fn store_started(
    state: &Mutex<SpareState>,
    key: &str,
    kernel: Option<Box<dyn Kernel>>,
) -> Option<Box<dyn Kernel>> {
    let mut guard = lock(state);
    let reserved = guard
        .kernels
        .iter()
        .position(|(other, spare)| other == key && matches!(spare, Spare::Starting));
    match (reserved, kernel) {
        (Some(index), Some(kernel)) => {
            guard.kernels[index].1 = Spare::Ready(kernel);
            None
        }
        (Some(index), None) => {
            // The start failed. The next session that needs a kernel reports the error.
            guard.kernels.remove(index);
            None
        }
        (None, kernel) => kernel,
    }
}

async fn shut_down(spare: Spare) {
    if let Spare::Ready(kernel) = spare {
        let deadline = StopSignal::never().with_timeout(SHUTDOWN_GRACE);
        kernel.shutdown(deadline).await;
    }
}

fn lock(state: &Mutex<SpareState>) -> std::sync::MutexGuard<'_, SpareState> {
    state.lock_ignoring_poison()
}
