//! [`RunnerLaunch`]: how sessions get runners.

use std::sync::Arc;

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, Stop};

/// Starts runners.
pub(crate) struct RunnerLaunch {
    spec: Arc<RunnerSpec>,
}

impl RunnerLaunch {
    pub(crate) fn new(spec: RunnerSpec) -> Self {
        Self {
            spec: Arc::new(spec),
        }
    }
}

impl Launch for RunnerLaunch {
    fn start(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = Arc::clone(&self.spec);
        Box::pin(async move {
            let runner = Runner::start(&spec, &stop).await?;
            Ok(Box::new(runner) as Box<dyn Kernel>)
        })
    }
}
