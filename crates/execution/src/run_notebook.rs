//! [`run_notebook`]: runs the cells of a notebook in one call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{StopHandle, StopSignal};

use crate::cell_request::OnError;
use crate::edits::Edit;
use crate::execute::execute;
use crate::failure::{preview_failure, selection_failure};
use crate::notebook_report::finish_without_cells;
use crate::planned_cells::PlannedCells;
use crate::preview::preview;
use crate::recorder_command::Stores;
use crate::report::ExecutionReport;
use crate::request::{ExecutionRequest, InlineLimits};
use crate::run_spec::RunSpec;
use crate::selection::CellSelection;

/// Options of [`run_notebook`].
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Cells to run; by default all.
    pub selection: CellSelection,
    /// Edits, applied before the first cell runs.
    pub edits: Vec<Edit>,
    /// Path of the notebook with outputs; `None` to write in place.
    pub output: Option<PathBuf>,
    /// Time limit of each cell.
    pub timeout: Option<Duration>,
    /// Time limit of all cells together.
    pub total_timeout: Option<Duration>,
    /// Whether to continue after a cell that failed.
    pub keep_going: bool,
    /// Whether to store start and end times in the metadata of each cell.
    pub timing: bool,
    /// Whether to write although a collaboration room has the notebook; see [`Stores::guard`].
    pub force: bool,
    /// Limits of the text of each cell in the report.
    pub inline_limits: InlineLimits,
}

/// Runs cells of a notebook on a new kernel and saves the outputs in the file. `stop` ends the run early; the outputs up
/// to then are in the file. Returns a failure if no cell was started.
pub async fn run_notebook(
    path: &Path,
    options: RunOptions,
    stores: Stores,
    launcher: Arc<dyn KernelLauncher>,
    stop: (StopHandle, StopSignal),
) -> Result<ExecutionReport, Failure> {
    let preview = preview(path, &options.edits).map_err(preview_failure)?;
    let listing = &preview.listing;
    let selected = options.selection.resolve(listing);
    let selected = selected.map_err(|error| selection_failure(error, path))?;
    let spec = RunSpec {
        path: std::path::absolute(path)?.into(),
        output: match options.output {
            Some(output) => Some(std::path::absolute(output)?.into()),
            None => None,
        },
        revision: preview.revision.clone(),
        edits: options.edits,
        cells: PlannedCells::runnable(listing, selected),
        timeout: options.timeout,
        on_error: OnError::keep_going(options.keep_going),
        missing_cells: Vec::new(),
        cell_ids: Arc::default(),
        timing: options.timing,
        kernel_named: false,
        outputs_limit: None,
        jupyter_runtime_dir: None,
        force: options.force,
    };
    let request = ExecutionRequest {
        inline_limits: options.inline_limits,
        total_timeout: options.total_timeout,
        ..ExecutionRequest::for_notebook(spec)
    };
    if request.cell_count() == 0 {
        return finish_without_cells(&request, stores);
    }
    execute(&request, launcher, stores, stop, |_| {}).await
}
