//! What a keeper does while its gateway runs: ends kernels whose owners are gone, and decides when the gateway ends.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use cellwright_gateway::{KernelOwner, RemoteKernel, ServerClient};
use cellwright_kernel::process::daemon::ProcessIdentity;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::gateway_process::GatewayProcess;
use super::leftover_processes::{self, detached_kernels};
use crate::files::{Generation, KeeperState};
use crate::health;
use crate::keeper_options::KeeperOptions;
use crate::record::GatewayRecord;

/// How often the gateway is asked for its kernels, and its files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a gateway that another one has replaced may give no answer.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(2);

/// Watches until the gateway has ended, or must end.
pub(super) async fn watch(
    generation: &Generation,
    options: &KeeperOptions,
    record: &GatewayRecord,
    gateway: &mut GatewayProcess,
) {
    let mut terminate = Signals::new();
    let Ok(client) = health::client(record, REQUEST_TIMEOUT) else {
        return;
    };
    let mut watch = Watch {
        generation,
        options,
        record,
        client,
        known: HashSet::new(),
        last_kernel: SystemTime::now(),
        last_answer: Instant::now(),
    };
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let check = async {
        loop {
            checks.tick().await;
            if watch.check().await == Verdict::End {
                return;
            }
        }
    };
    tokio::select! {
        reason = gateway.exited() => debug!(reason, "the gateway ended"),
        () = terminate.received() => debug!("a signal ends the gateway"),
        () = check => debug!("the gateway is not used any more"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Continue,
    End,
}

struct Watch<'a> {
    generation: &'a Generation,
    options: &'a KeeperOptions,
    record: &'a GatewayRecord,
    client: ServerClient,
    /// The ids of the kernels at the last check.
    known: HashSet<String>,
    /// When the gateway last had a kernel, or was started.
    last_kernel: SystemTime,
    last_answer: Instant,
}

impl Watch<'_> {
    async fn check(&mut self) -> Verdict {
        // Other programs clean temporary directories.
        self.record.refresh(&self.generation.info()).ok();
        let is_replaced = self.is_replaced();
        let kernels = match self.client.kernels().await {
            Ok(kernels) => kernels,
            Err(_) if is_replaced && self.last_answer.elapsed() > SILENCE_TIMEOUT => {
                return Verdict::End;
            }
            Err(error) => {
                debug!(%error, "the gateway gives no answer");
                return Verdict::Continue;
            }
        };
        self.last_answer = Instant::now();
        self.end_leftover_processes(&kernels).await;
        if !kernels.is_empty() {
            self.last_kernel = SystemTime::now();
            self.end_orphans(&kernels).await;
            return Verdict::Continue;
        }
        if is_replaced {
            return Verdict::End;
        }
        self.check_idle()
    }

    /// Ends the processes that kernels which do not exist any more have detached.
    async fn end_leftover_processes(&mut self, kernels: &[RemoteKernel]) {
        let current: HashSet<String> = kernels.iter().map(|kernel| kernel.id.clone()).collect();
        let mut known = std::mem::take(&mut self.known);
        // A kernel may have started and ended since the last check.
        let gateway = self.record.gateway_pid;
        let detached = tokio::task::spawn_blocking(move || detached_kernels(gateway));
        known.extend(detached.await.unwrap_or_default());
        let gone: Vec<String> = known.difference(&current).cloned().collect();
        self.known = current;
        if !gone.is_empty() {
            let end = move || leftover_processes::end(&gone);
            tokio::task::spawn_blocking(end).await.ok();
        }
    }

    /// Ends the kernels whose owner was killed: no other process does.
    async fn end_orphans(&self, kernels: &[RemoteKernel]) {
        for kernel in kernels {
            let is_orphan = |owner: &KernelOwner| {
                let process = ProcessIdentity {
                    pid: owner.pid,
                    start_ticks: owner.start_ticks,
                };
                !process.is_running()
            };
            if kernel.owner.as_ref().is_some_and(is_orphan) {
                let ended = self.client.delete(&kernel.id).await;
                debug!(
                    kernel = kernel.id,
                    ?ended,
                    "the owner of the kernel is gone"
                );
            }
        }
    }

    /// Whether a gateway with a higher number runs, which gets all new kernels.
    fn is_replaced(&self) -> bool {
        let mut newer = self.generation.parent().generations().into_iter();
        newer.any(|other| {
            other.number > self.generation.number
                && matches!(other.keeper(), Ok(KeeperState::Running(_)))
        })
    }

    fn check_idle(&self) -> Verdict {
        let timeout = self.options.idle_timeout;
        let last = self.generation.last_use().unwrap_or(self.last_kernel);
        // A clock that was set back is no reason to end.
        let idle = last.max(self.last_kernel).elapsed().unwrap_or_default();
        if timeout.is_zero() || idle < timeout {
            return Verdict::Continue;
        }
        // A process that holds the lock is about to use the gateway or to start another one.
        match self.generation.parent().try_lock_start() {
            Ok(Some(_lock)) => Verdict::End,
            _ => Verdict::Continue,
        }
    }
}

/// The signals that end a gateway.
struct Signals(Vec<Signal>);

impl Signals {
    fn new() -> Self {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        Self(
            kinds
                .into_iter()
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        )
    }

    async fn received(&mut self) {
        std::future::poll_fn(|context| {
            let mut signals = self.0.iter_mut();
            if signals.any(|signal| signal.poll_recv(context).is_ready()) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}
