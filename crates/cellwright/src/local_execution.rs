//! Runs an execution on a kernel that ends with the command.

use std::sync::Arc;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::program::own_supervisor;
use cellwright_engine::runtime::runtime;
use cellwright_engine::signals::watch_signals;
use cellwright_execution::Stores;
use cellwright_execution::feed::Overflow;
use cellwright_execution::{Execution, ExecutionReport, ExecutionRequest, execute};
use cellwright_kernel::StopSignal;
use cellwright_kernel::session::KernelLauncher;
use tokio::runtime::Runtime;

use crate::console::Console;
use crate::viewer::live::{OutputExtent, StdoutError};
use crate::viewer::{self, OnClosedPipe, ViewOptions};

/// An execution that the command prepares, while the supervisor of its kernel starts.
pub(crate) struct LocalExecution {
    runtime: Runtime,
    supervisor: EarlySupervisor,
}

/// The supervisor that was started early. It ends when the value is dropped and no kernel has taken it.
struct EarlySupervisor;

impl Drop for EarlySupervisor {
    fn drop(&mut self) {
        own_supervisor().end_early();
    }
}

impl LocalExecution {
    /// Starts the supervisor.
    pub(crate) fn begin() -> Result<Self, Failure> {
        let runtime = runtime()?;
        let entered = runtime.enter();
        own_supervisor().start_early();
        drop(entered);
        Ok(Self {
            runtime,
            supervisor: EarlySupervisor,
        })
    }

    /// Runs cells and shows their output. Returns the report, and why the output could not be shown completely.
    pub(crate) fn run(
        self,
        request: &ExecutionRequest,
        launcher: Arc<dyn KernelLauncher>,
        stores: Stores,
        console: &Console,
        view: ViewOptions,
    ) -> Result<(ExecutionReport, Option<StdoutError>), Failure> {
        let executed = execute_on(&self.runtime, request, launcher, stores, console, view);
        drop(self.supervisor);
        // Its threads have nothing to do any more, or wait for a file system that does not answer.
        self.runtime.shutdown_background();
        executed
    }
}

fn execute_on(
    runtime: &Runtime,
    request: &ExecutionRequest,
    launcher: Arc<dyn KernelLauncher>,
    stores: Stores,
    console: &Console,
    view: ViewOptions,
) -> Result<(ExecutionReport, Option<StdoutError>), Failure> {
    let (stop_handle, stop) = StopSignal::new();
    std::thread::scope(|scope| {
        let mut viewer = None;
        let report = runtime.block_on(async {
            let mut signals = tokio::task::JoinSet::new();
            signals.spawn(watch_signals(stop_handle.clone())?);
            let stop = (stop_handle.clone(), stop);
            let start_viewer = |execution: &Execution| {
                if view.extent != OutputExtent::Nothing {
                    let feed = execution.follow(Overflow::Spill);
                    let limits = request.inline_limits.limits();
                    let reaction = OnClosedPipe::Continue;
                    let started =
                        viewer::spawn_viewer(scope, feed, console, view, limits, reaction);
                    viewer = Some(started);
                }
            };
            execute(request, launcher, stores, stop, start_viewer).await
        });
        // A viewer that panicked has shown what it could.
        let stdout_error = viewer.and_then(|viewer| viewer.join().ok().flatten());
        Ok((report?, stdout_error))
    })
}
