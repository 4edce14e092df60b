//! [`KernelLauncher`]: starts the kernels of a session. [`SpecLauncher`] starts those of one specification.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cellwright_output::{Event, Sink};

use crate::backend::runner::check_directory;
use crate::error::KernelError;
use crate::kernel::{BoxFuture, Ending, HistoryMode, Kernel, Outcome, Request};
use crate::launch_context::LaunchContext;
use crate::spec::KernelSpec;
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

/// Starts kernels of one specification, without prelude, modules and bridge.
///
/// Only the runner has spare kernels: there are too many kernelspecs, and most Jupyter kernels start slowly and use much
/// memory.
#[derive(Clone, Debug)]
pub struct SpecLauncher {
    spec: Arc<KernelSpec>,
    context: Arc<LaunchContext>,
}

impl SpecLauncher {
    /// Starts kernels of `spec` in `context`.
    pub fn new(spec: KernelSpec, context: LaunchContext) -> Self {
        Self {
            spec: Arc::new(spec),
            context: Arc::new(context),
        }
    }

    /// Which kernel it starts.
    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// Where it starts kernels.
    pub fn context(&self) -> &LaunchContext {
        &self.context
    }
}

impl KernelLauncher for SpecLauncher {
    fn start(&self, stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let Self { spec, context } = self.clone();
        Box::pin(async move { spec.start(&context, &stop).await })
    }

    fn spare_key(&self) -> Option<String> {
        let KernelSpec::Runner(spec) = &*self.spec else {
            return None;
        };
        // The same interpreter with the same environment. The working directory makes no difference: `adopt`
        // changes it.
        let mut hasher = std::hash::DefaultHasher::new();
        spec.env.hash(&mut hasher);
        Some(format!("{} {:x}", spec.python.display(), hasher.finish()))
    }

    fn start_spare(
        &self,
        stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let spec = Arc::clone(&self.spec);
        let context = LaunchContext {
            cwd: "/".into(),
            ..LaunchContext::clone(&self.context)
        };
        Box::pin(async move { spec.start(&context, &stop).await })
    }

    fn adopt(
        &self,
        mut kernel: Box<dyn Kernel>,
        stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let context = Arc::clone(&self.context);
        Box::pin(async move {
            check_directory(&context.cwd)?;
            let pwd = context.cwd.path().to_str();
            let pwd = pwd.map(|pwd| ("PWD".to_owned(), Some(pwd.to_owned())));
            let request = Request {
                cwd: Some(context.cwd.clone()),
                env: Vec::from_iter(pwd),
                history: HistoryMode::Silent,
                ..Request::default()
            };
            let changed = kernel.execute(&request, &mut NullSink, &stop).await;
            match changed {
                Ok(Outcome {
                    ending: Ending::Completed,
                    ..
                }) => Ok(kernel),
                Ok(_) => Err(KernelError::Protocol {
                    violation: "the working directory of a spare kernel could not be changed"
                        .to_owned(),
                }),
                Err(error) => Err(error),
            }
        })
    }
}

/// Discards all events.
struct NullSink;

impl Sink for NullSink {
    fn push(&mut self, _event: Event<'_>) {}
}
