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

/// The signal for a file that exceeds its size limit.
const SIGXFSZ: i32 = 25;

/// Runs cells and shows their output. Returns the report, and why the output could not be shown completely.
pub(crate) fn run_locally(
    request: &ExecutionRequest,
    launcher: Arc<dyn KernelLauncher>,
    stores: Stores,
    console: &Console,
    view: ViewOptions,
) -> Result<(ExecutionReport, Option<StdoutError>), Failure> {
    let runtime = runtime()?;
    let (stop_handle, stop) = StopSignal::new();
    let (execution, observer) = Execution::new(request, None, stores, stop_handle.clone(), None)?;
    let stdout_error = std::thread::scope(|scope| {
        let viewer = (view.extent != OutputExtent::Nothing).then(|| {
            let feed = execution.follow(Overflow::Spill);
            let limits = request.inline_limits.limits();
            viewer::spawn_viewer(scope, feed, console, view, limits, stop_handle.clone())
        });
        runtime.block_on(async {
            let mut signals = tokio::task::JoinSet::new();
            signals.spawn(watch_signals(stop_handle.clone())?);
            let job = request.job("", (stop_handle.clone(), stop), observer, None);
            run_once(launcher, Policy::default(), job).await;
            Ok::<_, Failure>(())
        })?;
        // A viewer that panicked has shown what it could.
        Ok::<_, Failure>(viewer.and_then(|viewer| viewer.join().ok().flatten()))
    })?;
    let report = execution.with_report(ExecutionReport::clone);
    match report.start_failure() {
        Some(failure) => Err(failure.clone()),
        None => Ok((report, stdout_error)),
    }
}

/// Turns SIGINT, SIGTERM and SIGHUP into a stop; a second signal does not wait for the code. Never returns.
pub(crate) fn watch_signals(stop_handle: StopHandle) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // With a handler, a file that exceeds its size limit is a write error instead of the end of this process.
    let _too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let reason = StopReason::Cancelled;
            if stop_handle.is_requested() {
                stop_handle.force_stop(reason);
            } else {
                stop_handle.stop(reason);
            }
        }
    })
}
