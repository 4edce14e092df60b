//! [`KernelChoice`]: what a command chose, told to the host that starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::backend::runner::{self, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, Stop};
use serde::{Deserialize, Serialize};

use super::supervisor_of_own;
use crate::engine::Engine;
use crate::inside::{Furnishing, Modules, SharedBridge};
use crate::launch::RunnerLaunch;

/// Which kernel a command chose, as it tells the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KernelChoice {
    /// The interpreter.
    pub(crate) program: PathBuf,
    /// Whether somebody named it.
    pub(crate) explicit: bool,
    /// The environment of the kernel.
    env: Vec<(OsText, OsText)>,
    start_timeout: Duration,
    interrupt_grace: Duration,
    #[serde(default)]
    trace: Option<PathBuf>,
    modules: Modules,
}

/// Text of the system, which is UTF-8 nearly always.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for OsText {
    fn from(text: OsString) -> Self {
        use std::os::unix::ffi::OsStringExt;
        match text.into_string() {
            Ok(text) => Self::Text(text),
            Err(bytes) => Self::Bytes(bytes.into_vec()),
        }
    }
}

impl From<OsText> for OsString {
    fn from(text: OsText) -> Self {
        use std::os::unix::ffi::OsStringExt;
        match text {
            OsText::Text(text) => text.into(),
            OsText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl KernelChoice {
    /// What this command would run its code on.
    pub(crate) fn new(spec: RunnerSpec, explicit: bool, modules: Modules) -> Self {
        let env = spec.env.into_iter();
        Self {
            program: spec.interpreter.program,
            explicit,
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            start_timeout: spec.start_timeout,
            interrupt_grace: spec.interrupt_grace,
            trace: spec.trace,
            modules,
        }
    }

    /// Whether it can be started there, as far as can be seen without trying.
    pub(crate) fn check(&self, cwd: &Path) -> Result<(), KernelError> {
        runner::check_directory(cwd)
    }

    /// How the host starts it.
    pub(crate) fn launch(
        &self,
        engine: &Arc<Engine>,
        bridge: &SharedBridge,
        session: &str,
        cwd: &Path,
    ) -> Arc<dyn Launch> {
        let env = self.env.iter().cloned();
        let spec = RunnerSpec {
            interpreter: Interpreter {
                program: self.program.clone(),
                origin: python::Origin::Explicit,
                environment: None,
                rejected: Vec::new(),
            },
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: cwd.to_owned(),
            supervisor: supervisor_of_own(),
            staging: engine.staging.clone(),
            start_timeout: self.start_timeout,
            interrupt_grace: self.interrupt_grace,
            trace: self.trace.clone(),
        };
        let furnishing = Furnishing {
            engine: Arc::clone(engine),
            bridge: Arc::clone(bridge),
            session: session.to_owned(),
            modules: self.modules,
        };
        Arc::new(RunnerLaunch::in_host(spec, furnishing))
    }
}

/// No kernel: the next call brings its own way to start one.
pub(crate) struct Unlaunchable;

impl Launch for Unlaunchable {
    fn start(&self, _stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        Box::pin(std::future::ready(Err(KernelError::NoSession)))
    }
}
