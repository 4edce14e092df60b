//! How sessions get their kernels: [`RunnerLaunch`] and [`JupyterLaunch`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source};
use cellwright_kernel::backend::runner::{Runner, RunnerSpec, check_directory};
use cellwright_kernel::environment;
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Ending, History, Kernel, KernelError, Outcome, Request, Stop};
use cellwright_output::{Event, Sink};

use crate::env;
use crate::evaluation::alone::check_descriptors;
use crate::inside::Furnishing;
use crate::kernels::jupyter;

/// How many descriptors must be left before a host starts one more kernel: what that needs, and what is
/// needed to let clients in and to write down what the kernels say that there are.
const DESCRIPTORS: usize = 24;

/// How many more a kernel of Jupyter's needs: its sockets, and what waits for them.
const SOCKETS: usize = 16;

type Started = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

/// Starts runners.
pub(crate) struct RunnerLaunch {
    spec: Arc<RunnerSpec>,
    furnishing: Furnishing,
    /// How many descriptors must be left.
    descriptors: usize,
}

impl RunnerLaunch {
    pub(crate) fn new(spec: RunnerSpec, furnishing: Furnishing) -> Self {
        Self {
            spec: Arc::new(spec),
            furnishing,
            descriptors: 0,
        }
    }

    /// For a host, which has others to serve.
    pub(crate) fn in_host(self) -> Self {
        Self {
            descriptors: DESCRIPTORS,
            ..self
        }
    }
}

/// Takes what nobody is to see.
struct Nobody;

impl Sink for Nobody {
    fn push(&mut self, _event: Event<'_>) {}
}

impl Launch for RunnerLaunch {
    fn start(&self, stop: Stop) -> Started {
        let (spec, furnishing) = (Arc::clone(&self.spec), self.furnishing.clone());
        let descriptors = self.descriptors;
        Box::pin(async move {
            check_descriptors(descriptors)?;
            // The way back opens while Python starts.
            let (runner, _) = tokio::join!(Runner::start(&spec, &stop), furnishing.open());
            furnishing
                .furnish(Box::new(runner?), &spec.env, &spec.cwd, &stop)
                .await
        })
    }

    fn spare(&self) -> Option<String> {
        // The same interpreter with the same environment. Where it starts makes no difference: that is
        // changed when somebody takes it.
        let mut hasher = std::hash::DefaultHasher::new();
        self.spec.env.hash(&mut hasher);
        let program = self.spec.interpreter.program.display();
        Some(format!("{program} {:x}", hasher.finish()))
    }

    fn start_spare(&self, stop: Stop) -> Started {
        let mut spec = RunnerSpec::clone(&self.spec);
        spec.cwd = "/".into();
        let descriptors = self.descriptors;
        Box::pin(async move {
            check_descriptors(descriptors)?;
            let runner = Runner::start(&spec, &stop).await?;
            Ok(Box::new(runner) as Box<dyn Kernel>)
        })
    }

    fn adopt(&self, mut kernel: Box<dyn Kernel>, stop: Stop) -> Started {
        let (spec, furnishing) = (Arc::clone(&self.spec), self.furnishing.clone());
        Box::pin(async move {
            check_directory(&spec.cwd)?;
            let request = Request {
                cwd: Some(spec.cwd.clone()),
                history: History::Silent,
                ..Request::default()
            };
            let moved = kernel.execute(&request, &mut Nobody, &stop).await;
            match moved {
                Ok(Outcome {
                    ending: Ending::Completed,
                    ..
                }) => {
                    furnishing
                        .furnish(kernel, &spec.env, &spec.cwd, &stop)
                        .await
                }
                Ok(_) => Err(KernelError::Protocol {
                    what: "a spare kernel could not be moved".to_owned(),
                }),
                Err(error) => Err(error),
            }
        })
    }
}

/// Starts kernels of Jupyter's, or joins one. None stands ready before it is needed: there are too many
/// sorts, and most take long to start and much memory.
pub(crate) struct JupyterLaunch {
    spec: Arc<JupyterSpec>,
    furnishing: Furnishing,
    /// How many descriptors must be left.
    descriptors: usize,
}

impl JupyterLaunch {
    pub(crate) fn new(mut spec: JupyterSpec, furnishing: Furnishing) -> Self {
        if let Source::Start { .. } = spec.source {
            spec.sockets.extend(jupyter::sockets());
        }
        // In any language this is all that can be told.
        let session = furnishing.session.clone();
        environment::set(&mut spec.env, env::SESSION, session.into());
        Self {
            spec: Arc::new(spec),
            furnishing,
            descriptors: SOCKETS,
        }
    }

    /// For a host, which has others to serve.
    pub(crate) fn in_host(self) -> Self {
        Self {
            descriptors: SOCKETS + DESCRIPTORS,
            ..self
        }
    }
}

impl Launch for JupyterLaunch {
    fn start(&self, stop: Stop) -> Started {
        let (spec, furnishing) = (Arc::clone(&self.spec), self.furnishing.clone());
        let descriptors = self.descriptors;
        Box::pin(async move {
            check_descriptors(descriptors)?;
            let kernel = Box::new(Jupyter::start(&spec, &stop).await?);
            match spec.source {
                // What is in a kernel of others is their affair.
                Source::Existing { .. } => Ok(kernel as Box<dyn Kernel>),
                Source::Start { .. } => {
                    furnishing
                        .furnish(kernel, &spec.env, &spec.cwd, &stop)
                        .await
                }
            }
        })
    }
}
