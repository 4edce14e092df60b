//! [`KernelSelection`]: the kernel that a command runs its code on, from its flags and the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, flag, flag_value, hint};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{KernelId, KernelSpec};
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};

use super::{
    gateway, jupyter, launch_context, named_interpreter, resolve_interpreter, runner_spec,
};
use crate::engine::Engine;
use crate::kernel_setup::KernelSetup;
use crate::project_interpreter::ProjectInterpreter;
use crate::servers::ServerChoice;
use crate::session_launcher::SessionLauncher;
use crate::settings::{Backend, Settings};

/// The kernel that a caller asks for. Fields that are `None` follow the settings, or the notebook.
#[derive(Clone, Debug, Default)]
pub struct KernelRequest {
    /// Interpreter: a path, the directory of an environment, or a command.
    pub python: Option<PathBuf>,
    pub backend: Option<Backend>,
    /// Name of a kernelspec.
    pub kernel: Option<String>,
    /// A running kernel: its connection file, or, on a server, its id or the path of its notebook.
    pub existing: Option<PathBuf>,
    /// The server that the kernel is on.
    pub gateway: Option<ServerChoice>,
    /// Time limit of the start of the kernel. Zero: no limit.
    pub start_timeout: Option<Duration>,
}

impl KernelRequest {
    /// Applies the options that replace a setting for this call.
    pub fn apply_to(&self, settings: &mut Settings) {
        if let Some(timeout) = self.start_timeout {
            settings.set_start_timeout(timeout);
        }
    }

    /// The backend that the caller names, by its name or by what only one backend has. A kernelspec and a running kernel are
    /// those of the server if the settings select one.
    pub(super) fn named_backend(&self, settings: &Settings) -> Option<Backend> {
        let on_server = self.gateway.is_some() || settings.kernel.backend == Backend::Gateway;
        let implied = match (&self.kernel, &self.existing) {
            _ if self.gateway.is_some() => Some(Backend::Gateway),
            (None, None) => None,
            _ if on_server => Some(Backend::Gateway),
            _ => Some(Backend::Jupyter),
        };
        self.backend.or(implied)
    }
}

/// The kernel that a command runs its code on.
pub struct KernelSelection {
    pub(super) spec: KernelSpec,
    /// Which other kernels of a session the command accepts.
    pub(super) accepts: KernelMatch,
    /// The working directory of the kernel.
    pub(super) cwd: Directory,
    /// The interpreter that was found in the project, if the kernel uses it.
    pub(super) project_interpreter: Option<ProjectInterpreter>,
    /// What the caller should know about the selection.
    pub(super) notices: Vec<UserNotice>,
}

/// Which kernels of existing sessions a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelMatch {
    /// Only the selected one: a flag names it, or a setting names a kernelspec.
    Exact,
    /// Any kernel with the same interpreter, which a setting names.
    SamePython,
    /// Any Jupyter kernel that Cellwright started.
    AnyJupyter,
    /// Any kernel on the same server that Cellwright started.
    SameServer,
    /// Any kernel.
    Any,
}

impl KernelMatch {
    /// Whether a command that selected the kernel `selected` accepts the kernel `other`.
    pub fn matches(self, selected: &KernelId, other: &KernelId) -> bool {
        match self {
            Self::Exact => selected == other,
            Self::SamePython => selected == other || selected.python() == other.python(),
            Self::AnyJupyter => other.is_jupyter(),
            Self::SameServer => {
                !other.is_attached()
                    && selected.server().is_some()
                    && selected.server() == other.server()
            }
            Self::Any => true,
        }
    }
}

impl KernelSelection {
    /// Selects by the request, else by the settings.
    pub fn new(
        engine: &Engine,
        settings: &Settings,
        request: &KernelRequest,
        cwd: &Path,
    ) -> Result<Self, Failure> {
        check_contradictions(request)?;
        let backend = request.named_backend(settings);
        if let Some(file) = &request.existing
            && backend != Some(Backend::Gateway)
        {
            return jupyter::select_existing(settings, file, cwd);
        }
        let python = request.python.as_deref();
        match backend.unwrap_or(settings.kernel.backend) {
            Backend::Runner => {
                let named = named_interpreter(None, settings).python;
                let interpreter = resolve_interpreter(engine, settings, python, cwd)?;
                Ok(Self {
                    project_interpreter: ProjectInterpreter::new(&interpreter),
                    spec: KernelSpec::Runner(runner_spec(engine, settings, interpreter)),
                    accepts: if python.is_some() || backend.is_some() {
                        KernelMatch::Exact
                    } else if named.is_some() {
                        KernelMatch::SamePython
                    } else {
                        KernelMatch::Any
                    },
                    cwd: cwd.into(),
                    notices: Vec::new(),
                })
            }
            Backend::Jupyter => {
                let name = request.kernel.as_ref().or(settings.kernel.name.as_ref());
                let name = name.map(String::as_str);
                jupyter::select_kernelspec(engine, settings, name, python, cwd)
            }
            Backend::Gateway => gateway::select(engine, settings, request, None, cwd),
        }
    }

    /// What the caller should know about the selection.
    pub fn notices(&self) -> &[UserNotice] {
        &self.notices
    }

    /// Records that code runs with the interpreter of a project. Returns a notice the first time. Call it when nothing
    /// else can fail before the code runs: the notice appears once.
    pub fn record_project_interpreter(&self, engine: &Engine) -> Option<UserNotice> {
        self.project_interpreter.as_ref()?.record_use(engine)
    }

    /// The same kernel in this working directory, which may be held.
    #[must_use]
    pub fn in_directory(self, cwd: Directory) -> Self {
        Self { cwd, ..self }
    }

    /// The launcher of a command that owns its kernel.
    pub fn into_launcher(self, setup: KernelSetup) -> Arc<dyn KernelLauncher> {
        let context = launch_context(&setup.engine, self.cwd);
        Arc::new(SessionLauncher::new(self.spec, context, setup))
    }
}

/// Rejects options that exclude each other.
pub(super) fn check_contradictions(request: &KernelRequest) -> Result<(), Failure> {
    if let (Some(backend @ (Backend::Runner | Backend::Jupyter)), Some(_)) =
        (request.backend, &request.gateway)
    {
        let name = backend.name();
        let message =
            format!("The backend `{name}` starts kernels on this machine, not on a server");
        return Err(Failure::new(Kind::BadArguments, message).hint(hint![
            "leave out ",
            flag_value("backend", name),
            " or ",
            flag("gateway"),
        ]));
    }
    if request.backend != Some(Backend::Runner) {
        return Ok(());
    }
    let failure = |message: String| Failure::new(Kind::BadArguments, message);
    if request.existing.is_some() {
        let message = "The runner cannot use a running kernel";
        return Err(failure(message.to_owned()).hint(hint![
            "a running kernel is a Jupyter kernel; leave out ",
            flag_value("backend", "runner"),
            " or ",
            flag("existing"),
        ]));
    }
    match &request.kernel {
        Some(name) if !jupyter::is_default_python_name(name) => Err(failure(format!(
            "The runner cannot run the kernel `{name}`: it only runs Python"
        ))
        .hint(hint![
            "leave out ",
            flag("backend"),
            ", or use ",
            flag_value("backend", "jupyter"),
        ])),
        _ => Ok(()),
    }
}
