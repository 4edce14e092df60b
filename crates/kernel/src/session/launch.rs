//! [`Launch`]: how a session gets its kernels.

use crate::backend::jupyter::{Jupyter, JupyterSpec};
use crate::backend::runner::{Runner, RunnerSpec};
use crate::error::KernelError;
use crate::kernel::{BoxFuture, Kernel};
use crate::stop::Stop;

/// Starts the kernels of a session, one after the other as they are needed.
pub trait Launch: Send + Sync {
    /// Starts a kernel and makes it ready for cells.
    fn start(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

    /// What sort of kernel could have been started before anybody needed it; sessions with the same
    /// answer share a stock. `None`: this one must be started when it is needed.
    fn spare(&self) -> Option<String> {
        None
    }

    /// Starts a kernel that belongs to nobody yet.
    fn start_spare(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.start(stop)
    }

    /// Makes a kernel that belonged to nobody one of this session.
    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: Stop,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        Box::pin(std::future::ready(Ok(kernel)))
    }
}

/// Kernels as they come, without anything of ours inside.
impl Launch for RunnerSpec {
    fn start(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = self.clone();
        Box::pin(async move {
            let kernel = Runner::start(&spec, &stop).await?;
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

/// Kernels as they come, without anything of ours inside.
impl Launch for JupyterSpec {
    fn start(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = self.clone();
        Box::pin(async move {
            let kernel = Jupyter::start(&spec, &stop).await?;
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}
