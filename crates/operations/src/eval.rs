//! Prepares code for execution. Nothing runs here: the front end decides where and how to show it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::engine::Engine;
use cellwright_engine::environment::EnvironmentRequest;
use cellwright_engine::kernels::{
    KernelRequest, KernelSelection, SerializedSelection, absolute_path, working_directory,
};
use cellwright_engine::settings::Settings;
use cellwright_engine::startup::StartupTimer;
use cellwright_execution::{CellRequest, ExecutionRequest, Stores};
use cellwright_host::protocol::{ArtifactStoreParams, ExecuteParams, ReplyDetail, WaitMode};
use cellwright_stdext::Directory;

use crate::environment;
use crate::file_path::FilePath;

/// Characters that the name of a session or an owner can have.
const NAME_LIMIT: usize = 100;

/// A request of `eval`.
#[derive(Clone, Debug, Default)]
pub struct EvalRequest {
    pub cells: Vec<EvalCell>,
    /// Time limit of each cell that sets none itself; `None`: the setting `eval.timeout`. Zero: no limit.
    pub timeout: Option<Duration>,
    /// Working directory of the kernel, which may be held; `None`: the current directory.
    pub cwd: Option<Directory>,
    /// Directory of the caller; full outputs belong to its project. `None`: the current directory.
    pub project_dir: Option<PathBuf>,
    pub kernel: KernelRequest,
    /// Replies to `input()`, in order over all cells.
    pub answers: Vec<String>,
    pub session: SessionRequest,
    /// The directory to which the name of the session belongs; `None`: the project of the working directory.
    pub session_dir: Option<PathBuf>,
    pub owner: Option<String>,
    pub environment: EnvironmentRequest,
    /// Whether the session starts with a fresh kernel.
    pub reset: bool,
}

/// One cell to run.
#[derive(Clone, Debug, Default)]
pub struct EvalCell {
    pub code: String,
    pub title: Option<String>,
    pub timeout: Option<Duration>,
    /// Whether the kernel is replaced before this cell.
    pub reset: bool,
    /// The script that holds the code, as an absolute path.
    pub file: Option<PathBuf>,
}

/// The session that code runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionRequest {
    /// The setting `eval.session`, or a kernel that ends with the call.
    #[default]
    Settings,
    /// A kernel that ends with the call.
    PerCall,
    Named(String),
}

/// Code that is ready to run.
pub struct PreparedEval {
    pub execution: ExecutionRequest,
    pub chosen: KernelSelection,
    /// The session; `None` for a kernel that ends with the call.
    pub session: Option<String>,
    session_dir: PathBuf,
    /// Whether the caller names the working directory.
    names_cwd: bool,
    owner: String,
    reset: bool,
    cwd: Directory,
    project_dir: PathBuf,
    pub settings: Settings,
    pub notices: Vec<UserNotice>,
}

/// Resolves the request against the settings.
pub fn prepare(
    request: EvalRequest,
    engine: &Engine,
    startup: &mut StartupTimer,
) -> Result<PreparedEval, Failure> {
    let directory = kernel_directory(request.cwd.as_ref())?;
    let cwd = directory.path().to_owned();
    let mut settings = engine.settings(&cwd)?;
    request.kernel.apply_to(&mut settings);
    startup.step("settings");
    if !settings.eval.enabled {
        return Err(cellwright_engine::settings::eval_disabled(
            settings.origin("eval.enabled"),
        ));
    }
    let mut notices = settings.notices();
    let usual = settings.eval.timeout;
    let common = cell_timeout(request.timeout, usual, &settings, &mut notices);
    let mut cell = |cell: EvalCell| CellRequest {
        code: cell.code,
        title: cell.title,
        timeout: match cell.timeout {
            Some(timeout) => cell_timeout(Some(timeout), usual, &settings, &mut notices),
            None => common,
        },
        reset: cell.reset,
        file: cell.file,
        ..CellRequest::default()
    };
    let mut execution = ExecutionRequest {
        cells: request.cells.into_iter().map(&mut cell).collect(),
        answers: request.answers,
        inline_limits: (&settings.output_limits()).into(),
        ..ExecutionRequest::default()
    };
    environment::prepare(
        &request.environment,
        &mut settings,
        &mut execution,
        &mut notices,
    );
    let chosen = KernelSelection::new(engine, &settings, &request.kernel, &cwd)?
        .in_directory(directory.clone());
    startup.step("interpreter");
    let session = match request.session {
        SessionRequest::Settings => settings.eval.session.clone(),
        SessionRequest::PerCall => None,
        SessionRequest::Named(name) => Some(name),
    };
    for (role, name) in [("owner", &request.owner), ("session", &session)] {
        if let Some(name) = name {
            check_name(role, name)?;
        }
    }
    notices.extend(chosen.notices().iter().cloned());
    notices.extend(chosen.record_project_interpreter(engine));
    Ok(PreparedEval {
        execution,
        chosen,
        session,
        names_cwd: request.session_dir.is_none() && request.cwd.is_some(),
        session_dir: match request.session_dir {
            // The caller has resolved links, which may have changed since.
            Some(dir) if directory.is_held() => dir,
            Some(dir) => canonical(dir),
            None => engine.project_dir(&cwd),
        },
        owner: request.owner.unwrap_or_else(|| settings.eval.owner.clone()),
        reset: request.reset,
        project_dir: project_dir(request.project_dir, &cwd),
        cwd: directory,
        settings,
        notices,
    })
}

impl PreparedEval {
    /// Where full outputs are stored.
    pub fn stores(&self, engine: &Engine) -> Stores {
        Stores {
            artifacts: engine
                .artifacts_with_retention(&self.project_dir, &self.settings)
                .map(|artifacts| {
                    artifacts.for_code_in(canonical_directory(self.cwd.clone()).path())
                }),
            ..Stores::default()
        }
    }

    /// The request to the host; also returns the settings and the notices.
    pub fn into_host_request(
        self,
        engine: &Engine,
        attach: WaitMode,
    ) -> Result<(ExecuteParams, Settings, Vec<UserNotice>), Failure> {
        let settings = self.settings;
        let artifacts = engine.artifacts_with_retention(&self.project_dir, &settings);
        let params = ExecuteParams {
            request: self.execution,
            session: self.session,
            session_dir: Some(self.session_dir),
            expects_cwd: self.names_cwd,
            any_cwd: false,
            interaction: ReplyDetail::OutputOnly,
            owner: self.owner,
            cwd: canonical_directory(self.cwd),
            kernel: SerializedSelection::new(self.chosen, (&settings).into())
                .map_err(io::Error::from)?,
            reset: self.reset,
            artifacts: artifacts.as_ref().map(ArtifactStoreParams::new),
            wait_mode: attach,
        };
        Ok((params, settings, self.notices))
    }
}

/// The working directory of a kernel: that of the request, else the current directory.
pub(super) fn kernel_directory(given: Option<&Directory>) -> Result<Directory, Failure> {
    match given {
        Some(held) if held.is_held() => Ok(held.clone()),
        plain => Ok(working_directory(plain.map(Directory::path))?.into()),
    }
}

/// The absolute path of a file that an argument names.
pub(super) fn absolute_file(path: &FilePath) -> Result<FilePath, Failure> {
    // Explains what to do if the current directory is gone.
    absolute_path(path.open_path())?;
    Ok(path.absolute()?)
}

/// A directory without links in its path. The path of a held one has none.
pub(super) fn canonical_directory(directory: Directory) -> Directory {
    if directory.is_held() {
        return directory;
    }
    canonical(directory.path().to_owned()).into()
}

/// The directory whose project the full outputs belong to: that of the caller, or the working directory of the kernel
/// if the current directory does not exist any more.
pub(super) fn project_dir(given: Option<PathBuf>, cwd: &Path) -> PathBuf {
    given
        .or_else(|| working_directory(None).ok())
        .unwrap_or_else(|| cwd.to_owned())
}

/// Rejects names that cannot be typed again or that break a table.
pub(super) fn check_name(role: &str, name: &str) -> Result<(), Failure> {
    let message = if name.is_empty() {
        format!("The {role} name is empty")
    } else if name.chars().count() > NAME_LIMIT {
        format!("The {role} name is longer than {NAME_LIMIT} characters")
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        format!("The {role} name contains white space or control characters")
    } else if role == "session" && is_session_number(name) {
        return Ok(());
    } else if name.starts_with(['@', '-']) {
        format!("The {role} name cannot start with `@` or `-`")
    } else {
        return Ok(());
    };
    Err(Failure::new(Kind::BadArguments, message).hint("use letters, digits and dashes"))
}

/// Whether a name is `@` and the number of a session.
pub fn is_session_number(name: &str) -> bool {
    let number = name.strip_prefix('@').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Resolves symbolic links, so that one directory has one name.
pub fn canonical(cwd: PathBuf) -> PathBuf {
    // The launcher reports a directory that does not exist.
    cwd.canonicalize().unwrap_or(cwd)
}

/// The time limit of a cell: the requested one, else the usual one, at most `eval.max_timeout`.
pub(super) fn cell_timeout(
    requested: Option<Duration>,
    usual: Duration,
    settings: &Settings,
    notices: &mut Vec<UserNotice>,
) -> Option<Duration> {
    let timeout = requested.unwrap_or(usual);
    let max = settings.eval.max_timeout;
    if max.is_zero() || (!timeout.is_zero() && timeout <= max) {
        return (!timeout.is_zero()).then_some(timeout);
    }
    if requested.is_some() {
        let origin = settings.origin("eval.max_timeout");
        let notice = cellwright_engine::settings::describe_capped_timeout(max, origin);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }
    Some(max)
}
