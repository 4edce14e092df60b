//! [`KernelChoice`]: what a command chose, told to the host that starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cellwright_kernel::backend::runner::{self, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, Stop};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
    /// A [`Making`]. Most calls find a kernel that runs, so it is not looked at before it is needed.
    making: Box<RawValue>,
}

/// How it is started.
#[derive(Serialize, Deserialize)]
struct Making {
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
    pub(crate) fn new(
        spec: RunnerSpec,
        explicit: bool,
        modules: Modules,
    ) -> Result<Self, serde_json::Error> {
        let env = spec.env.into_iter();
        let making = Making {
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            start_timeout: spec.start_timeout,
            interrupt_grace: spec.interrupt_grace,
            trace: spec.trace,
            modules,
        };
        Ok(Self {
            program: spec.interpreter.program,
            explicit,
            making: serde_json::value::to_raw_value(&making)?,
        })
    }

    /// Whether it can be started there, as far as can be seen without trying.
    pub(crate) fn check(&self, cwd: &Path) -> Result<(), KernelError> {
        runner::check_directory(cwd)
    }

    /// How the host starts it.
    pub(crate) fn launch(
        self,
        engine: &Arc<Engine>,
        bridge: &SharedBridge,
        session: &str,
        cwd: &Path,
    ) -> Arc<dyn Launch> {
        Arc::new(ChosenLaunch {
            choice: self,
            engine: Arc::clone(engine),
            bridge: Arc::clone(bridge),
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            made: OnceLock::new(),
        })
    }
}

/// Starts what was chosen.
struct ChosenLaunch {
    choice: KernelChoice,
    engine: Arc<Engine>,
    bridge: SharedBridge,
    session: String,
    cwd: PathBuf,
    /// `None`: what was sent makes no sense.
    made: OnceLock<Option<RunnerLaunch>>,
}

impl ChosenLaunch {
    fn made(&self) -> Option<&RunnerLaunch> {
        self.made.get_or_init(|| self.make().ok()).as_ref()
    }

    fn make(&self) -> Result<RunnerLaunch, serde_json::Error> {
        let making: Making = serde_json::from_str(self.choice.making.get())?;
        let spec = RunnerSpec {
            interpreter: Interpreter {
                program: self.choice.program.clone(),
                origin: python::Origin::Explicit,
                environment: None,
                rejected: Vec::new(),
            },
            env: making
                .env
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: self.cwd.clone(),
            supervisor: supervisor_of_own(),
            staging: self.engine.staging.clone(),
            start_timeout: making.start_timeout,
            interrupt_grace: making.interrupt_grace,
            trace: making.trace,
        };
        let furnishing = Furnishing {
            engine: Arc::clone(&self.engine),
            bridge: Arc::clone(&self.bridge),
            session: self.session.clone(),
            modules: making.modules,
        };
        Ok(RunnerLaunch::in_host(spec, furnishing))
    }
}

type Started = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

/// What comes of a choice that makes no sense.
fn senseless() -> Started {
    let what = "what was said about the kernel makes no sense".to_owned();
    Box::pin(std::future::ready(Err(KernelError::Protocol { what })))
}

impl Launch for ChosenLaunch {
    fn start(&self, stop: Stop) -> Started {
        self.made().map_or_else(senseless, |made| made.start(stop))
    }

    fn spare(&self) -> Option<String> {
        self.made()?.spare()
    }

    fn start_spare(&self, stop: Stop) -> Started {
        self.made()
            .map_or_else(senseless, |made| made.start_spare(stop))
    }

    fn adopt(&self, kernel: Box<dyn Kernel>, stop: Stop) -> Started {
        self.made()
            .map_or_else(senseless, |made| made.adopt(kernel, stop))
    }
}

/// No kernel: the next call brings its own way to start one.
pub(crate) struct Unlaunchable;

impl Launch for Unlaunchable {
    fn start(&self, _stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        Box::pin(std::future::ready(Err(KernelError::NoSession)))
    }
}
