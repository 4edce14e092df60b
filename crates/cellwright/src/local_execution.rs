//! Runs an execution on a kernel that ends with the command.

use std::sync::Arc;

use cellwright_kernel::session::{KernelLauncher, Policy, run_once};
use cellwright_kernel::{StopHandle, StopReason, StopSignal};
use cellwright_run::Stores;
use tokio::signal::unix::{SignalKind, signal};

use crate::console::Console;
use crate::execution::feed::Overflow;
use crate::execution::{Execution, ExecutionReport, ExecutionRequest};
use crate::failure::Failure;
use crate::runtime::runtime;
use crate::viewer::live::{OutputExtent, StdoutError};
use crate::viewer::{self, ViewOptions};

/// The signal of a file that has become too large.
const SIGXFSZ: i32 = 25;

/// Runs it, and shows what it says meanwhile; also gives why that did not arrive, if so.
pub(crate) fn run_locally(
    wish: &ExecutionRequest,
    launch: Arc<dyn KernelLauncher>,
    places: Stores,
    screen: &Console,
    view: ViewOptions,
) -> Result<(ExecutionReport, Option<StdoutError>), Failure> {
    let runtime = runtime()?;
    let (stopper, stop) = StopSignal::new();
    let (evaluation, stage) = Execution::new(wish, None, places, stopper.clone(), None)?;
    let unseen = std::thread::scope(|scope| {
        let viewer = (view.extent != OutputExtent::Nothing).then(|| {
            let feed = evaluation.follow(Overflow::Spill);
            let limits = wish.inline_limits.limits();
            viewer::spawn_viewer(scope, feed, screen, view, limits, stopper.clone())
        });
        let ran = runtime.block_on(async {
            let mut signals = tokio::task::JoinSet::new();
            signals.spawn(watch_signals(stopper.clone())?);
            let job = wish.job("", (stopper.clone(), stop), stage, None);
            run_once(launch, Policy::default(), job).await;
            Ok::<_, Failure>(())
        });
        ran?;
        // A viewer that came to grief has shown what it could.
        Ok::<_, Failure>(viewer.and_then(|viewer| viewer.join().ok().flatten()))
    })?;
    let mut answer = evaluation.with_report(|answer| {
        std::mem::replace(
            answer,
            ExecutionReport::new(None, &ExecutionRequest::default()),
        )
    });
    match answer.take_start_failure() {
        Some(refusal) => Err(refusal),
        None => Ok((answer, unseen)),
    }
}

/// Turns Ctrl-C and the like into a stop; a second one does not wait for the code. Never ends.
pub(crate) fn watch_signals(stopper: StopHandle) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // A file that may not grow any more is an error for whoever writes it, not the end of us.
    let _too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let reason = StopReason::Cancelled;
            if stopper.is_requested() {
                stopper.force_stop(reason);
            } else {
                stopper.stop(reason);
            }
        }
    })
}
