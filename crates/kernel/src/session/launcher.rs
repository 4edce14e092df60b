//! [`KernelLauncher`]: starts the kernels of a session.

use crate::backend::jupyter::{Jupyter, JupyterSpec};
use crate::backend::runner::{Runner, RunnerSpec};
use crate::error::KernelError;
use crate::kernel::{BoxFuture, Kernel};
use crate::stop::StopSignal;

/// Starts the kernels of a session, one after the other as they are needed.
pub trait KernelLauncher: Send + Sync {
    /// Starts a kernel and prepares it for cells.
    fn start(&self, stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

    /// The key under which spare kernels of this launcher are kept. Launchers with the same key share
    /// spares. `None`: no spare can be started in advance.
    fn spare_key(&self) -> Option<String> {
        None
    }

    /// Starts a spare kernel, which belongs to no session yet.
    fn start_spare(
        &self,
        stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.start(stop)
    }

    /// Prepares a spare kernel for this launcher's session.
    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        Box::pin(std::future::ready(Ok(kernel)))
    }
}

/// Starts bare kernels, without prelude and bridge.
impl KernelLauncher for RunnerSpec {
    fn start(&self, stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = self.clone();
        Box::pin(async move {
            let kernel = Runner::start(&spec, &stop).await?;
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

/// Starts bare kernels, without prelude and bridge.
impl KernelLauncher for JupyterSpec {
    fn start(&self, stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = self.clone();
        Box::pin(async move {
            let kernel = Jupyter::start(&spec, &stop).await?;
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}
