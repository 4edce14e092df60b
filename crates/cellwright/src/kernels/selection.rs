//! [`KernelSelection`]: the kernel that a command runs its code on, from its flags and the settings.

use std::path::Path;
use std::sync::Arc;

use cellwright_kernel::backend::jupyter::JupyterSpec;
use cellwright_kernel::backend::runner::RunnerSpec;
use cellwright_kernel::session::KernelLauncher;
use serde::{Deserialize, Serialize};

use super::{jupyter, named_interpreter, runner_spec};
use crate::engine::Engine;
use crate::failure::{Failure, Kind, flag, flag_value, hint};
use crate::kernel_setup::KernelSetup;
use crate::launch::{JupyterLauncher, RunnerLauncher};
use crate::settings::{Backend, Settings};

/// The flags that select a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelFlags<'a> {
    pub(crate) python: Option<&'a Path>,
    pub(crate) backend: Option<Backend>,
    /// Name of a kernelspec.
    pub(crate) kernel: Option<&'a str>,
    /// Connection file of a running kernel.
    pub(crate) existing: Option<&'a Path>,
}

/// The kernel that a command runs its code on.
pub(crate) struct KernelSelection {
    pub(super) spec: BackendSpec,
    /// Identifies the kernel; users see it, too.
    pub(super) label: String,
    /// Which other kernels of a session the command accepts.
    pub(super) accepts: KernelMatch,
}

/// Which kernels of existing sessions a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KernelMatch {
    /// Only the selected one: a flag or a setting names it.
    Exact,
    /// Any Jupyter kernel that Cellwright started.
    AnyJupyter,
    /// Any kernel.
    Any,
}

impl KernelMatch {
    /// Whether a command that selected the kernel `selected` accepts the kernel `label`.
    pub(crate) fn matches(self, selected: &str, label: &str) -> bool {
        match self {
            Self::Exact => selected == label,
            Self::AnyJupyter => label.starts_with(jupyter::JUPYTER_PREFIX),
            Self::Any => true,
        }
    }
}

/// How the kernel is started, or joined.
pub(super) enum BackendSpec {
    Runner(RunnerSpec),
    Jupyter(JupyterSpec),
}

impl KernelSelection {
    /// Selects by the flags, else by the settings.
    pub(crate) fn new(
        engine: &Engine,
        settings: &Settings,
        flags: KernelFlags<'_>,
        cwd: &Path,
    ) -> Result<Self, Failure> {
        check_contradictions(flags)?;
        if let Some(file) = flags.existing {
            return jupyter::select_existing(engine, settings, file, cwd);
        }
        let implied = flags.kernel.map(|_| Backend::Jupyter);
        let backend = flags.backend.or(implied);
        match backend.unwrap_or(settings.kernel.backend) {
            Backend::Runner => {
                let python = named_interpreter(flags.python, settings).python;
                let spec = runner_spec(engine, settings, flags.python, cwd.to_owned())?;
                Ok(Self {
                    label: spec.interpreter.program.display().to_string(),
                    accepts: if python.is_some() || backend.is_some() {
                        KernelMatch::Exact
                    } else {
                        KernelMatch::Any
                    },
                    spec: BackendSpec::Runner(spec),
                })
            }
            Backend::Jupyter => {
                let name = flags.kernel.or(settings.kernel.name.as_deref());
                jupyter::select_kernelspec(engine, settings, name, flags.python, cwd)
            }
        }
    }

    /// The launcher of a command that owns its kernel.
    pub(crate) fn into_launcher(self, setup: KernelSetup) -> Arc<dyn KernelLauncher> {
        match self.spec {
            BackendSpec::Runner(spec) => Arc::new(RunnerLauncher::new(spec, setup)),
            BackendSpec::Jupyter(spec) => Arc::new(JupyterLauncher::new(spec, setup)),
        }
    }
}

fn check_contradictions(flags: KernelFlags<'_>) -> Result<(), Failure> {
    if flags.backend != Some(Backend::Runner) {
        return Ok(());
    }
    let failure = |message: String| Failure::new(Kind::BadArguments, message);
    if flags.existing.is_some() {
        let message = "The runner cannot use a running kernel";
        return Err(failure(message.to_owned()).hint(hint![
            "a running kernel is a Jupyter kernel; leave out ",
            flag_value("backend", "runner"),
            " or ",
            flag("existing"),
        ]));
    }
    match flags.kernel {
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
