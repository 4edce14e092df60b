//! [`execute`]: runs a request on a kernel that ends with it.

use std::sync::Arc;

use cellwright_diagnostics::failure::Failure;
use cellwright_kernel::session::{KernelLauncher, Policy, run_once};
use cellwright_kernel::{StopHandle, StopSignal};

use crate::observer::Execution;
use crate::recorder_command::Stores;
use crate::report::ExecutionReport;
use crate::request::ExecutionRequest;

/// Runs a request on a new kernel that ends with it. `on_start` receives the execution before the kernel starts, to
/// follow its output. `stop` ends the execution early; the outputs up to then are in the report.
///
/// Returns a failure if no cell was started. A report can contain a failure, too: of a cell, or of saving the outputs.
pub async fn execute(
    request: &ExecutionRequest,
    launcher: Arc<dyn KernelLauncher>,
    stores: Stores,
    (stop_handle, stop): (StopHandle, StopSignal),
    on_start: impl FnOnce(&Execution),
) -> Result<ExecutionReport, Failure> {
    let (execution, observer) = Execution::new(request, None, stores, stop_handle.clone(), None)?;
    on_start(&execution);
    let job = request.job("", (stop_handle, stop), observer, None);
    run_once(launcher, Policy::default(), job).await;
    let report = execution.take_report();
    match report.start_failure() {
        Some(failure) => Err(failure.clone()),
        None => Ok(report),
    }
}
