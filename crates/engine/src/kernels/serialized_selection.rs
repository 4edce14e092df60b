//! [`SerializedSelection`]: the kernel that a command selected, in the form in which the command sends it to the host.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use cellwright_kernel::backend::runner;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{Kernel, KernelError, KernelId, KernelSpec, StopSignal};
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::launch_context;
use super::selection::{KernelMatch, KernelSelection};
use crate::engine::Engine;
use crate::env;
use crate::kernel_setup::{KernelSetup, ModuleOptions, SharedBridge};
use crate::session_launcher::{SessionLauncher, StartFuture};

/// The kernel that a command selected, as sent to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SerializedSelection {
    /// Identifies the kernel.
    pub id: KernelId,
    /// Which other kernels of a session the command accepts.
    pub accepts: KernelMatch,
    modules: ModuleOptions,
    /// A [`KernelSpec`]. The host parses it only to start a kernel: most calls find a running one.
    spec: Box<RawValue>,
}

impl SerializedSelection {
    /// Serializes a selection.
    pub fn new(
        selection: KernelSelection,
        modules: ModuleOptions,
    ) -> Result<Self, serde_json::Error> {
        let KernelSelection { spec, accepts, .. } = selection;
        Ok(Self {
            id: spec.id(),
            accepts,
            modules,
            spec: serde_json::value::to_raw_value(&spec)?,
        })
    }

    /// The environment variables of this kernel that `other` does not have, or has with another value.
    pub fn other_variables(&self, other: &Self) -> Vec<(OsString, OsString)> {
        if self.spec.get() == other.spec.get() {
            return Vec::new();
        }
        let variables = |selection: &Self| {
            let spec = serde_json::from_str::<KernelSpec>(selection.spec.get());
            spec.map(|spec| spec.env().to_vec()).unwrap_or_default()
        };
        let known = variables(other);
        let mut variables = variables(self);
        variables.retain(|variable| !known.contains(variable));
        if self.id != other.id {
            // They follow from the interpreter.
            let of_interpreter = [env::PATH, env::VIRTUAL_ENV, env::CONDA_PREFIX];
            variables.retain(|(name, _)| !of_interpreter.iter().any(|other| name == other));
        }
        variables
    }

    /// Returns an error if the working directory cannot be used.
    pub fn check_directory(&self, cwd: &Directory) -> Result<(), KernelError> {
        runner::check_directory(cwd)
    }

    /// The launcher with which the host starts the kernel.
    pub fn into_launcher(
        self,
        engine: &Arc<Engine>,
        bridge: &SharedBridge,
        session: &str,
        cwd: &Directory,
    ) -> Arc<dyn KernelLauncher> {
        Arc::new(TargetLauncher {
            spec: self.spec,
            setup: KernelSetup {
                engine: Arc::clone(engine),
                bridge: Arc::clone(bridge),
                session: session.to_owned(),
                modules: self.modules,
            },
            cwd: cwd.clone(),
            launcher: OnceLock::new(),
        })
    }
}

/// Starts the kernel of a target. Parses the [`KernelSpec`] at first use.
struct TargetLauncher {
    spec: Box<RawValue>,
    setup: KernelSetup,
    cwd: Directory,
    /// `None`: the spec is invalid.
    launcher: OnceLock<Option<SessionLauncher>>,
}

impl TargetLauncher {
    fn launcher(&self) -> Option<&SessionLauncher> {
        let build = || {
            let spec: KernelSpec = serde_json::from_str(self.spec.get()).ok()?;
            let context = launch_context(&self.setup.engine, self.cwd.clone());
            Some(SessionLauncher::new(spec, context, self.setup.clone()).with_host_reserve())
        };
        self.launcher.get_or_init(build).as_ref()
    }
}

/// Fails: the spec of the target is invalid.
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
pub struct FailingLauncher;

impl KernelLauncher for FailingLauncher {
    fn start(&self, _stop: StopSignal) -> StartFuture {
        Box::pin(std::future::ready(Err(KernelError::NoSession)))
    }
}
