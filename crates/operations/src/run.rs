//! Prepares the cells of a notebook for execution. Nothing runs and nothing is written here.

mod plan;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::engine::Engine;
use cellwright_engine::environment::EnvironmentRequest;
use cellwright_engine::kernels::{
    KernelRequest, KernelSelection, SerializedSelection, select_for_notebook, working_directory,
};
use cellwright_engine::settings::Settings;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::{CellSelection, Edit, OnError, RunSpec, Stores};
use cellwright_execution::{ExecutionReport, ExecutionRequest, finish_without_cells};
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::{ArtifactStoreParams, ExecuteParams, ReplyDetail, WaitMode};
use cellwright_notebook::NotebookError;
use cellwright_stdext::Directory;

use self::plan::RunPlan;
pub(crate) use self::plan::tagged_cells;
use super::eval::{
    absolute_file, canonical, canonical_directory, cell_timeout, check_name, kernel_directory,
    project_dir,
};
use crate::environment;
use crate::file_path::FilePath;
use crate::parameters::ParameterSet;

/// A request of `run`.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "options of a request")]
pub struct RunRequest {
    pub path: FilePath,
    /// Which cells run; with `stale` and `changed` a subset of them.
    pub selection: CellSelection,
    /// Only cells that are not fresh in the session.
    pub stale: bool,
    /// Only cells whose source changed since they ran in the session.
    pub changed: bool,
    /// Edits to make before the cells run.
    pub edits: Vec<Edit>,
    /// Whether the cells after the edited ones run as well.
    pub and_below: bool,
    /// The revision that the edits are based on.
    pub revision: Option<String>,
    /// The file to write instead of the notebook itself.
    pub output: Option<FilePath>,
    pub parameters: ParameterSet,
    /// Time limit of each cell; `None`: the setting `run.timeout`. Zero: no limit.
    pub timeout: Option<Duration>,
    /// Time limit of the whole run.
    pub total_timeout: Option<Duration>,
    /// Whether cells run after one that failed.
    pub keep_going: bool,
    /// Working directory, which may be held; `None`: the directory of the notebook.
    pub cwd: Option<Directory>,
    /// Directory of the caller; full outputs belong to its project. `None`: the current directory.
    pub project_dir: Option<PathBuf>,
    pub kernel: KernelRequest,
    pub environment: EnvironmentRequest,
    /// The session; `None` for a kernel that ends with the run.
    pub session: Option<String>,
    /// The directory to which the name of the session belongs; `None`: the project of `cwd`, else of the current directory.
    pub session_dir: Option<PathBuf>,
    /// Whether the session starts with a fresh kernel.
    pub restart: bool,
    pub owner: Option<String>,
    /// Replies to `input()`, in order over all cells.
    pub answers: Vec<String>,
    /// Whether cells on a session see the same names as in Jupyter, without the prelude.
    pub like_jupyter: bool,
    /// Whether to write although a collaboration room has the notebook.
    pub force: bool,
}

/// A notebook that is ready to run, or of which no cell runs.
pub struct PreparedRun {
    pub execution: ExecutionRequest,
    /// The kernel; `None` if no cell runs.
    pub chosen: Option<KernelSelection>,
    /// The duration of each cell in its last run, if it is known; empty if none is.
    pub durations: Vec<Option<Duration>>,
    cwd: Directory,
    project_dir: PathBuf,
    session: Option<String>,
    session_dir: PathBuf,
    /// Whether the caller leaves the directory of the session to the rules.
    expects_cwd: bool,
    owner: String,
    restart: bool,
    pub settings: Settings,
    pub notices: Vec<UserNotice>,
}

/// Resolves the request against the notebook and the settings. `kernels` knows which cells ran on a session.
pub fn prepare(
    request: RunRequest,
    engine: &Engine,
    kernels: &KernelHost,
    startup: &mut StartupTimer,
) -> Result<PreparedRun, Failure> {
    // Absolute, because the host has another working directory.
    let path = absolute_file(&request.path)?;
    let directory = match &request.cwd {
        Some(cwd) => kernel_directory(Some(cwd))?,
        None => path.directory(),
    };
    if let Some(output) = &request.output {
        check_output_directory(output)?;
    }
    let cwd = directory.path().to_owned();
    let mut settings = engine.settings(&cwd)?;
    request.kernel.apply_to(&mut settings);
    if request.session.is_none() || request.like_jupyter {
        settings.disable_prelude_unless_set();
    }
    startup.step("settings");
    if !settings.eval.enabled {
        return Err(cellwright_engine::settings::eval_disabled(
            settings.origin("eval.enabled"),
        ));
    }
    let mut notices = settings.notices();
    let session_dir = match (&request.session_dir, &request.cwd) {
        // The caller has resolved links, which may have changed since.
        (Some(dir), _) if directory.is_held() => dir.clone(),
        (Some(dir), _) => canonical(dir.clone()),
        (None, Some(_)) => engine.project_dir(&cwd),
        (None, None) => {
            engine.project_dir(&working_directory(None).unwrap_or_else(|_| cwd.clone()))
        }
    };
    if let Some(session) = &request.session {
        check_name("session", session)?;
    }
    let plan = RunPlan::new(&request, &path, &session_dir, kernels)?;
    notices.extend(plan.notices.iter().cloned());
    let usual = settings.run.timeout;
    let limit = cell_timeout(request.timeout, usual, &settings, &mut notices);
    let mut execution = execution_request(&request, &plan, &path, &settings, limit, engine)?;
    environment::prepare(
        &request.environment,
        &mut settings,
        &mut execution,
        &mut notices,
    );
    // Without cells no kernel is needed.
    let chosen = if plan.cells.is_empty() {
        None
    } else {
        let (chosen, notice) =
            select_for_notebook(engine, &settings, &request.kernel, &plan.listing, &cwd)?;
        notices.extend(notice);
        notices.extend(chosen.notices().iter().cloned());
        notices.extend(chosen.record_project_interpreter(engine));
        Some(chosen.in_directory(directory.clone()))
    };
    startup.step("notebook");
    Ok(PreparedRun {
        durations: known_durations(&plan, path.display_path(), engine),
        execution,
        chosen,
        project_dir: project_dir(request.project_dir, &cwd),
        cwd: directory,
        session: request.session,
        session_dir,
        expects_cwd: request.session_dir.is_none(),
        owner: request.owner.unwrap_or_else(|| settings.eval.owner.clone()),
        restart: request.restart,
        settings,
        notices,
    })
}

/// Returns an error if the directory of the output does not exist. Saving reports every other problem, also before the first
/// cell runs.
fn check_output_directory(output: &FilePath) -> Result<(), Failure> {
    let open_path = std::path::absolute(output.open_path())?;
    let is_missing = open_path
        .parent()
        .is_some_and(|dir| matches!(dir.try_exists(), Ok(false)));
    if !is_missing {
        return Ok(());
    }
    let dir = output.display_path().parent().unwrap_or(&open_path);
    Err(NotebookError::NoDirectory {
        path: dir.to_owned(),
    }
    .into())
}

/// The duration of each cell in its last run: from its metadata, else from the store. Empty if none is known.
fn known_durations(plan: &RunPlan, path: &Path, engine: &Engine) -> Vec<Option<Duration>> {
    let mut durations = match &engine.durations {
        Some(store) => store.read(path, plan.cells.sources()),
        None => vec![None; plan.cells.len()],
    };
    for (duration, index) in durations.iter_mut().zip(plan.cells.indexes()) {
        *duration = plan.listing.last_duration(index).or(*duration);
    }
    if durations.iter().all(Option::is_none) {
        return Vec::new();
    }
    durations
}

impl PreparedRun {
    /// The request to the host.
    pub fn host_request(
        &mut self,
        chosen: KernelSelection,
        engine: &Engine,
        attach: WaitMode,
    ) -> Result<ExecuteParams, Failure> {
        let settings = &self.settings;
        let artifacts = engine.artifacts_with_retention(&self.project_dir, settings);
        Ok(ExecuteParams {
            request: std::mem::take(&mut self.execution),
            session: self.session.clone(),
            session_dir: Some(self.session_dir.clone()),
            expects_cwd: self.expects_cwd,
            any_cwd: false,
            interaction: ReplyDetail::OutputOnly,
            owner: self.owner.clone(),
            cwd: canonical_directory(self.cwd.clone()),
            kernel: SerializedSelection::new(chosen, settings.into()).map_err(io::Error::from)?,
            reset: self.restart,
            artifacts: artifacts.as_ref().map(ArtifactStoreParams::new),
            wait_mode: attach,
        })
    }

    /// Makes the edits or the copy of a notebook of which no cell runs.
    pub fn finish_without_cells(&self, engine: &Engine) -> Result<ExecutionReport, Failure> {
        finish_without_cells(&self.execution, self.stores(engine))
    }

    /// Where outputs and revisions are stored.
    pub fn stores(&self, engine: &Engine) -> Stores {
        Stores {
            artifacts: engine
                .artifacts_with_retention(&self.project_dir, &self.settings)
                .map(|artifacts| {
                    artifacts.for_code_in(canonical_directory(self.cwd.clone()).path())
                }),
            baselines: engine.baselines.clone(),
            durations: engine.durations.clone(),
            guard: Some(Arc::new(engine.open_notebooks.clone())),
        }
    }
}

fn execution_request(
    request: &RunRequest,
    plan: &RunPlan,
    path: &FilePath,
    settings: &Settings,
    timeout: Option<Duration>,
    engine: &Engine,
) -> Result<ExecutionRequest, Failure> {
    let max = settings.run.max_outputs;
    let spec = RunSpec {
        path: path.clone(),
        output: request
            .output
            .as_ref()
            .map(FilePath::absolute)
            .transpose()?,
        revision: plan.revision.clone(),
        edits: plan.edits.clone(),
        cells: plan.cells.clone(),
        timeout,
        on_error: OnError::keep_going(request.keep_going),
        missing_cells: plan.missing_cells.clone(),
        cell_ids: match request.session {
            Some(_) => plan.listing.ids().into(),
            None => Arc::default(),
        },
        timing: settings.run.timing,
        kernel_named: request.kernel.kernel.is_some(),
        outputs_limit: (max > 0).then_some(max),
        jupyter_runtime_dir: engine.open_notebooks.runtime_dir().map(Path::to_owned),
        force: request.force,
    };
    Ok(ExecutionRequest {
        answers: request.answers.clone(),
        inline_limits: (&settings.output_limits()).into(),
        total_timeout: request.total_timeout.filter(|total| !total.is_zero()),
        ..ExecutionRequest::for_notebook(spec)
    })
}
