//! [`RunnerLauncher`] and [`JupyterLauncher`]: start the kernels of sessions and set them up.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, KernelSource};
use cellwright_kernel::backend::runner::{Runner, RunnerSpec, check_directory};
use cellwright_kernel::environment;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{
    BoxFuture, Ending, HistoryMode, Kernel, KernelError, Outcome, Request, StopSignal,
};
use cellwright_output::{Event, Sink};

use crate::env;
use crate::kernel_setup::KernelSetup;
use crate::runtime::check_descriptors;
use crate::runtime_dir;

/// How many descriptors must be free before a host starts another kernel: those of the kernel, and those that the host
/// needs to accept clients and to write the output of its kernels.
const HOST_DESCRIPTOR_RESERVE: usize = 24;

/// How many more descriptors a Jupyter kernel needs: its sockets, and those that wait on them.
const JUPYTER_DESCRIPTOR_RESERVE: usize = 16;

/// A kernel that is starting.
pub(crate) type StartFuture = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

/// Starts built-in runners.
pub(crate) struct RunnerLauncher {
    spec: Arc<RunnerSpec>,
    setup: KernelSetup,
    /// How many descriptors must be free before a start.
    descriptor_reserve: usize,
}

impl RunnerLauncher {
    pub(crate) fn new(spec: RunnerSpec, setup: KernelSetup) -> Self {
        Self {
            spec: Arc::new(spec),
            setup,
            descriptor_reserve: 0,
        }
    }

    /// Reserves descriptors for the clients and the other kernels of a host.
    pub(crate) fn in_host(self) -> Self {
        Self {
            descriptor_reserve: HOST_DESCRIPTOR_RESERVE,
            ..self
        }
    }
}

/// Discards all events.
struct NullSink;

impl Sink for NullSink {
    fn push(&mut self, _event: Event<'_>) {}
}

impl KernelLauncher for RunnerLauncher {
    fn start(&self, stop: StopSignal) -> StartFuture {
        let (spec, setup) = (Arc::clone(&self.spec), self.setup.clone());
        let descriptor_reserve = self.descriptor_reserve;
        Box::pin(async move {
            check_descriptors(descriptor_reserve)?;
            // The bridge starts while Python starts.
            let (runner, _) = tokio::join!(Runner::start(&spec, &stop), setup.open_bridge());
            setup
                .set_up(Box::new(runner?), &spec.env, &spec.cwd, &stop)
                .await
        })
    }

    fn spare_key(&self) -> Option<String> {
        // The same interpreter with the same environment. The working directory makes no difference: `adopt`
        // changes it.
        let mut hasher = std::hash::DefaultHasher::new();
        self.spec.env.hash(&mut hasher);
        let program = self.spec.interpreter.program.display();
        Some(format!("{program} {:x}", hasher.finish()))
    }

    fn start_spare(&self, stop: StopSignal) -> StartFuture {
        let mut spec = RunnerSpec::clone(&self.spec);
        spec.cwd = "/".into();
        let descriptor_reserve = self.descriptor_reserve;
        Box::pin(async move {
            check_descriptors(descriptor_reserve)?;
            let runner = Runner::start(&spec, &stop).await?;
            Ok(Box::new(runner) as Box<dyn Kernel>)
        })
    }

    fn adopt(&self, mut kernel: Box<dyn Kernel>, stop: StopSignal) -> StartFuture {
        let (spec, setup) = (Arc::clone(&self.spec), self.setup.clone());
        Box::pin(async move {
            check_directory(&spec.cwd)?;
            let request = Request {
                cwd: Some(spec.cwd.clone()),
                history: HistoryMode::Silent,
                ..Request::default()
            };
            let changed = kernel.execute(&request, &mut NullSink, &stop).await;
            match changed {
                Ok(Outcome {
                    ending: Ending::Completed,
                    ..
                }) => setup.set_up(kernel, &spec.env, &spec.cwd, &stop).await,
                Ok(_) => Err(KernelError::Protocol {
                    violation: "the working directory of a spare kernel could not be changed"
                        .to_owned(),
                }),
                Err(error) => Err(error),
            }
        })
    }
}

/// Starts Jupyter kernels, or joins a running one. It keeps no spare kernels: there are too many kernelspecs, and most
/// kernels start slowly and use much memory.
pub(crate) struct JupyterLauncher {
    spec: Arc<JupyterSpec>,
    setup: KernelSetup,
    /// How many descriptors must be free before a start.
    descriptor_reserve: usize,
}

impl JupyterLauncher {
    pub(crate) fn new(mut spec: JupyterSpec, setup: KernelSetup) -> Self {
        if let KernelSource::Start { .. } = spec.source {
            spec.sockets.extend(runtime_dir::create_kernel_socket_dir());
        }
        // The only setup that works in every language.
        let session = setup.session.clone();
        environment::set_variable(&mut spec.env, env::SESSION, session.into());
        Self {
            spec: Arc::new(spec),
            setup,
            descriptor_reserve: JUPYTER_DESCRIPTOR_RESERVE,
        }
    }

    /// Reserves descriptors for the clients and the other kernels of a host.
    pub(crate) fn in_host(self) -> Self {
        Self {
            descriptor_reserve: JUPYTER_DESCRIPTOR_RESERVE + HOST_DESCRIPTOR_RESERVE,
            ..self
        }
    }
}

impl KernelLauncher for JupyterLauncher {
    fn start(&self, stop: StopSignal) -> StartFuture {
        let (spec, setup) = (Arc::clone(&self.spec), self.setup.clone());
        let descriptor_reserve = self.descriptor_reserve;
        Box::pin(async move {
            check_descriptors(descriptor_reserve)?;
            let kernel = Box::new(Jupyter::start(&spec, &stop).await?);
            match spec.source {
                // Cellwright sets up only the kernels that it started.
                KernelSource::Existing { .. } => Ok(kernel as Box<dyn Kernel>),
                KernelSource::Start { .. } => {
                    setup.set_up(kernel, &spec.env, &spec.cwd, &stop).await
                }
            }
        })
    }
}
