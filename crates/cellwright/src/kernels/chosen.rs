//! [`Chosen`]: the kernel that a command runs its code on, by what was said on the command line and in
//! the settings.

use std::path::Path;
use std::sync::Arc;

use cellwright_kernel::backend::jupyter::JupyterSpec;
use cellwright_kernel::backend::runner::RunnerSpec;
use cellwright_kernel::session::Launch;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{jupyter, named, runner};
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::inside::Furnishing;
use crate::launch::{JupyterLaunch, RunnerLaunch};
use crate::settings::Settings;

/// What runs code: our own Python program, which needs nothing but Python, or a kernel of Jupyter's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    // No documentation: `--help` would become twice as long by it.
    #[default]
    Runner,
    Jupyter,
}

impl Backend {
    pub(crate) const NAMES: &[&str] = &["runner", "jupyter"];

    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "runner" => Some(Self::Runner),
            "jupyter" => Some(Self::Jupyter),
            _ => None,
        }
    }
}

/// What was said about the kernel on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags<'a> {
    pub(crate) python: Option<&'a Path>,
    pub(crate) backend: Option<Backend>,
    /// A kernelspec.
    pub(crate) kernel: Option<&'a str>,
    /// The connection file of a kernel that runs.
    pub(crate) existing: Option<&'a Path>,
}

/// The kernel that a command runs its code on.
pub(crate) struct Chosen {
    pub(super) spec: Spec,
    /// What tells it from other kernels, for people to read, too.
    pub(super) label: String,
    /// Which other kernels do as well, if a session has one.
    pub(super) within: Within,
}

/// Which kernel of a session that lives is the one that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Within {
    /// This one and no other: somebody said so.
    This,
    /// Any of Jupyter's.
    Jupyter,
    /// Whichever there is.
    All,
}

impl Within {
    /// Whether a kernel does, by its label.
    pub(crate) fn holds(self, label: &str, other: &str) -> bool {
        match self {
            Self::This => label == other,
            Self::Jupyter => other.starts_with(jupyter::PREFIX),
            Self::All => true,
        }
    }
}

/// How it is had.
pub(super) enum Spec {
    Runner(RunnerSpec),
    Jupyter(JupyterSpec),
}

impl Chosen {
    /// By the flags, else by the settings.
    pub(crate) fn new(
        engine: &Engine,
        settings: &Settings,
        flags: Flags<'_>,
        cwd: &Path,
    ) -> Result<Self, Failure> {
        refuse_contradictions(flags)?;
        if let Some(file) = flags.existing {
            return jupyter::existing(engine, settings, file, cwd);
        }
        let implied = flags.kernel.map(|_| Backend::Jupyter);
        let backend = flags.backend.or(implied);
        match backend.unwrap_or(settings.kernel.backend) {
            Backend::Runner => {
                let python = named(flags.python, settings).python;
                let spec = runner(engine, settings, flags.python, cwd.to_owned())?;
                Ok(Self {
                    label: spec.interpreter.program.display().to_string(),
                    within: if python.is_some() || backend.is_some() {
                        Within::This
                    } else {
                        Within::All
                    },
                    spec: Spec::Runner(spec),
                })
            }
            Backend::Jupyter => {
                let name = flags.kernel.or(settings.kernel.name.as_deref());
                jupyter::started(engine, settings, name, flags.python, cwd)
            }
        }
    }

    /// How it is started by a command that needs it for itself.
    pub(crate) fn launch(self, furnishing: Furnishing) -> Arc<dyn Launch> {
        match self.spec {
            Spec::Runner(spec) => Arc::new(RunnerLaunch::new(spec, furnishing)),
            Spec::Jupyter(spec) => Arc::new(JupyterLaunch::new(spec, furnishing)),
        }
    }
}

fn refuse_contradictions(flags: Flags<'_>) -> Result<(), Failure> {
    if flags.backend != Some(Backend::Runner) {
        return Ok(());
    }
    let refuse = |message: String| Failure::new(Kind::BadArguments, message);
    if flags.existing.is_some() {
        let message = "--backend runner and --existing do not go together";
        return Err(refuse(message.to_owned())
            .hint("a kernel that runs already is one of Jupyter's; leave out --backend"));
    }
    match flags.kernel {
        Some(name) if !jupyter::is_python(name) => Err(refuse(format!(
            "--backend runner cannot run the kernel `{name}`: the runner is Python, and nothing else"
        ))
        .hint("leave out --backend, or say --backend jupyter")),
        _ => Ok(()),
    }
}
