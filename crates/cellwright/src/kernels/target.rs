//! [`KernelTarget`]: the kernel that a command selected, in the form in which the command sends it to the host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::backend::jupyter::{JupyterSpec, KernelSource, Transport};
use cellwright_kernel::backend::runner::{self, RunnerSpec};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{Kernel, KernelError, StopSignal};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::own_supervisor;
use super::selection::{BackendSpec, KernelMatch, KernelSelection};
use crate::engine::Engine;
use crate::kernel_setup::{KernelSetup, ModuleOptions, SharedBridge};
use crate::launch::{JupyterLauncher, RunnerLauncher, StartFuture};

/// The kernel that a command selected, as sent to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KernelTarget {
    /// Identifies the kernel.
    pub(crate) label: String,
    /// Which other kernels of a session the command accepts.
    pub(crate) accepts: KernelMatch,
    /// A [`LaunchSpec`]. The host parses it only to start a kernel: most calls find a running one.
    launch_spec: Box<RawValue>,
}

/// How the kernel is started.
#[derive(Serialize, Deserialize)]
struct LaunchSpec {
    /// The kernel's environment variables.
    env: Vec<(SerializedOsString, SerializedOsString)>,
    start_timeout: Duration,
    interrupt_grace: Duration,
    modules: ModuleOptions,
    backend: BackendParams,
}

/// The parameters of the backend.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BackendParams {
    Runner {
        program: PathBuf,
        trace: Option<PathBuf>,
    },
    Jupyter {
        #[serde(with = "SourceSerde")]
        source: KernelSource,
        runtime: PathBuf,
        #[serde(with = "TransportSerde")]
        transport: Transport,
    },
}

/// The serialized form of a [`KernelSource`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "KernelSource", rename_all = "snake_case")]
enum SourceSerde {
    Start {
        kernelspec: Box<Kernelspec>,
        python: Option<PathBuf>,
    },
    Existing {
        connection_file: PathBuf,
    },
}

/// The serialized form of a [`Transport`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Transport", rename_all = "snake_case")]
enum TransportSerde {
    Auto,
    Ipc,
    Tcp,
}

/// An [`OsString`]: as text if it is UTF-8, which it nearly always is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum SerializedOsString {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for SerializedOsString {
    fn from(text: OsString) -> Self {
        use std::os::unix::ffi::OsStringExt;
        match text.into_string() {
            Ok(text) => Self::Text(text),
            Err(bytes) => Self::Bytes(bytes.into_vec()),
        }
    }
}

impl From<SerializedOsString> for OsString {
    fn from(text: SerializedOsString) -> Self {
        use std::os::unix::ffi::OsStringExt;
        match text {
            SerializedOsString::Text(text) => text.into(),
            SerializedOsString::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl KernelTarget {
    /// Serializes a selection.
    pub(crate) fn new(
        selection: KernelSelection,
        modules: ModuleOptions,
    ) -> Result<Self, serde_json::Error> {
        let (env, start_timeout, interrupt_grace, backend) = match selection.spec {
            BackendSpec::Runner(spec) => {
                let backend = BackendParams::Runner {
                    program: spec.interpreter.program,
                    trace: spec.trace,
                };
                (spec.env, spec.start_timeout, spec.interrupt_grace, backend)
            }
            BackendSpec::Jupyter(spec) => {
                let backend = BackendParams::Jupyter {
                    source: spec.source,
                    runtime: spec.runtime,
                    transport: spec.transport,
                };
                (spec.env, spec.start_timeout, spec.interrupt_grace, backend)
            }
        };
        let env = env.into_iter();
        let launch_spec = LaunchSpec {
            env: env
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            start_timeout,
            interrupt_grace,
            modules,
            backend,
        };
        Ok(Self {
            label: selection.label,
            accepts: selection.accepts,
            launch_spec: serde_json::value::to_raw_value(&launch_spec)?,
        })
    }

    /// Returns an error if the working directory cannot be used.
    pub(crate) fn check_directory(&self, cwd: &Path) -> Result<(), KernelError> {
        runner::check_directory(cwd)
    }

    /// The launcher with which the host starts the kernel.
    pub(crate) fn into_launcher(
        self,
        engine: &Arc<Engine>,
        bridge: &SharedBridge,
        session: &str,
        cwd: &Path,
    ) -> Arc<dyn KernelLauncher> {
        Arc::new(TargetLauncher {
            target: self,
            engine: Arc::clone(engine),
            bridge: Arc::clone(bridge),
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            launcher: OnceLock::new(),
        })
    }
}

/// Starts the kernel of a target. Parses the target at first use.
struct TargetLauncher {
    target: KernelTarget,
    engine: Arc<Engine>,
    bridge: SharedBridge,
    session: String,
    cwd: PathBuf,
    /// `None`: the launch spec is invalid.
    launcher: OnceLock<Option<Box<dyn KernelLauncher>>>,
}

impl TargetLauncher {
    fn launcher(&self) -> Option<&dyn KernelLauncher> {
        self.launcher.get_or_init(|| self.build().ok()).as_deref()
    }

    fn build(&self) -> Result<Box<dyn KernelLauncher>, serde_json::Error> {
        let spec: LaunchSpec = serde_json::from_str(self.target.launch_spec.get())?;
        let setup = KernelSetup {
            engine: Arc::clone(&self.engine),
            bridge: Arc::clone(&self.bridge),
            session: self.session.clone(),
            modules: spec.modules,
        };
        let env = spec.env.into_iter();
        let env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let cwd = self.cwd.clone();
        let supervisor = own_supervisor();
        let staging = self.engine.staging_dirs.clone();
        let (start_timeout, interrupt_grace) = (spec.start_timeout, spec.interrupt_grace);
        Ok(match spec.backend {
            BackendParams::Runner { program, trace } => {
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
                Box::new(RunnerLauncher::new(spec, setup).in_host())
            }
            BackendParams::Jupyter {
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
                Box::new(JupyterLauncher::new(spec, setup).in_host())
            }
        })
    }
}

/// Fails: the launch spec of the target is invalid.
fn invalid_target() -> StartFuture {
    let violation = "the host received an invalid kernel description".to_owned();
    Box::pin(std::future::ready(Err(KernelError::Protocol { violation })))
}

impl KernelLauncher for TargetLauncher {
    fn start(&self, stop: StopSignal) -> StartFuture {
        self.launcher()
            .map_or_else(invalid_target, |launcher| launcher.start(stop))
    }

    fn spare_key(&self) -> Option<String> {
        self.launcher()?.spare_key()
    }

    fn start_spare(&self, stop: StopSignal) -> StartFuture {
        self.launcher()
            .map_or_else(invalid_target, |launcher| launcher.start_spare(stop))
    }

    fn adopt(&self, kernel: Box<dyn Kernel>, stop: StopSignal) -> StartFuture {
        self.launcher()
            .map_or_else(invalid_target, |launcher| launcher.adopt(kernel, stop))
    }
}

/// Starts no kernel: the next call brings its launcher.
pub(crate) struct NoLauncher;

impl KernelLauncher for NoLauncher {
    fn start(&self, _stop: StopSignal) -> StartFuture {
        Box::pin(std::future::ready(Err(KernelError::NoSession)))
    }
}
