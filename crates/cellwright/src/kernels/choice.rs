//! [`KernelChoice`]: what a command chose, told to the host that starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{JupyterSpec, Source, Transport};
use cellwright_kernel::backend::runner::{self, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, Stop};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::chosen::{Chosen, Spec, Within};
use super::supervisor_of_own;
use crate::engine::Engine;
use crate::inside::{Furnishing, Modules, SharedBridge};
use crate::launch::{JupyterLaunch, RunnerLaunch};

/// Which kernel a command chose, as it tells the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KernelChoice {
    /// What tells it from others.
    pub(crate) label: String,
    /// Which other kernels do as well.
    pub(crate) within: Within,
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
    modules: Modules,
    sort: Sort,
}

/// What sort of kernel it is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    Runner {
        program: PathBuf,
        trace: Option<PathBuf>,
    },
    Jupyter {
        #[serde(with = "SourceForm")]
        source: Source,
        runtime: PathBuf,
        #[serde(with = "TransportForm")]
        transport: Transport,
    },
}

/// The form of a [`Source`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Source", rename_all = "snake_case")]
enum SourceForm {
    Start {
        kernelspec: Box<Kernelspec>,
        python: Option<PathBuf>,
    },
    Existing {
        connection_file: PathBuf,
    },
}

/// The form of a [`Transport`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Transport", rename_all = "snake_case")]
enum TransportForm {
    Auto,
    Ipc,
    Tcp,
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
    pub(crate) fn new(chosen: Chosen, modules: Modules) -> Result<Self, serde_json::Error> {
        let (env, start_timeout, interrupt_grace, sort) = match chosen.spec {
            Spec::Runner(spec) => {
                let sort = Sort::Runner {
                    program: spec.interpreter.program,
                    trace: spec.trace,
                };
                (spec.env, spec.start_timeout, spec.interrupt_grace, sort)
            }
            Spec::Jupyter(spec) => {
                let sort = Sort::Jupyter {
                    source: spec.source,
                    runtime: spec.runtime,
                    transport: spec.transport,
                };
                (spec.env, spec.start_timeout, spec.interrupt_grace, sort)
            }
        };
        let env = env.into_iter();
        let making = Making {
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            start_timeout,
            interrupt_grace,
            modules,
            sort,
        };
        Ok(Self {
            label: chosen.label,
            within: chosen.within,
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
    made: OnceLock<Option<Box<dyn Launch>>>,
}

impl ChosenLaunch {
    fn made(&self) -> Option<&dyn Launch> {
        self.made.get_or_init(|| self.make().ok()).as_deref()
    }

    fn make(&self) -> Result<Box<dyn Launch>, serde_json::Error> {
        let making: Making = serde_json::from_str(self.choice.making.get())?;
        let furnishing = Furnishing {
            engine: Arc::clone(&self.engine),
            bridge: Arc::clone(&self.bridge),
            session: self.session.clone(),
            modules: making.modules,
        };
        let env = making.env.into_iter();
        let env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let cwd = self.cwd.clone();
        let supervisor = supervisor_of_own();
        let staging = self.engine.staging.clone();
        let (start_timeout, interrupt_grace) = (making.start_timeout, making.interrupt_grace);
        Ok(match making.sort {
            Sort::Runner { program, trace } => {
                let spec = RunnerSpec {
                    interpreter: Interpreter {
                        program,
                        origin: python::Origin::Explicit,
                        environment: None,
                        rejected: Vec::new(),
                    },
                    env,
                    cwd,
                    supervisor,
                    staging,
                    start_timeout,
                    interrupt_grace,
                    trace,
                };
                Box::new(RunnerLaunch::new(spec, furnishing).in_host())
            }
            Sort::Jupyter {
                source,
                runtime,
                transport,
            } => {
                let spec = JupyterSpec {
                    source,
                    cwd,
                    env,
                    supervisor,
                    runtime,
                    sockets: Vec::new(),
                    staging,
                    transport,
                    start_timeout,
                    interrupt_grace,
                };
                Box::new(JupyterLaunch::new(spec, furnishing).in_host())
            }
        })
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
