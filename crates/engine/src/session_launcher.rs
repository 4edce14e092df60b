//! [`SessionLauncher`]: starts the kernels of a session and sets them up.

use std::time::Duration;

use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_kernel::backend::jupyter::gateway::{FileAccess, GatewaySpec};
use cellwright_kernel::session::{KernelLauncher, SpecLauncher};
use cellwright_kernel::{
    BoxFuture, Kernel, KernelError, KernelSpec, LaunchContext, StopSignal, variables,
};
use tokio::time::{Instant, timeout_at};

use crate::env;
use crate::ipykernel;
use crate::kernel_setup::{self, KernelSetup};
use crate::local_gateway;
use crate::runtime::check_descriptors;
use crate::runtime_dir;

/// How many descriptors must be free before a host starts another kernel: those of the kernel, and those that the host
/// needs to accept clients and to write the output of its kernels.
const HOST_DESCRIPTOR_RESERVE: usize = 24;

/// How many more descriptors a Jupyter kernel needs: its sockets, and those that wait on them.
const JUPYTER_DESCRIPTOR_RESERVE: usize = 16;

/// A kernel that is starting.
pub type StartFuture = BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>>;

/// Starts the kernels of a session and sets them up.
pub struct SessionLauncher {
    kernels: SpecLauncher,
    setup: KernelSetup,
    /// How many descriptors must be free before a start.
    descriptor_reserve: usize,
}

impl SessionLauncher {
    /// Starts kernels of `spec` in `context`.
    pub fn new(mut spec: KernelSpec, mut context: LaunchContext, setup: KernelSetup) -> Self {
        if let KernelSpec::Jupyter(spec) = &mut spec {
            context.sockets.extend(runtime_dir::kernel_socket_dirs());
            // The only setup that works in every language. The runner gets this variable with each request, because
            // sessions share spare runners.
            let session = setup.session.clone();
            variables::set_variable(&mut spec.env, env::SESSION, session.into());
        }
        if let KernelSpec::Gateway(GatewaySpec {
            local: Some(local), ..
        }) = &mut spec
        {
            let session = setup.session.clone();
            variables::set_variable(&mut local.env, env::SESSION, session.into());
        }
        let descriptor_reserve = match spec {
            KernelSpec::Runner(_) => 0,
            KernelSpec::Jupyter(_) | KernelSpec::Attached(_) | KernelSpec::Gateway(_) => {
                JUPYTER_DESCRIPTOR_RESERVE
            }
        };
        Self {
            kernels: SpecLauncher::new(spec, context),
            setup,
            descriptor_reserve,
        }
    }

    /// Reserves descriptors for the clients and the other kernels of a host.
    #[must_use]
    pub fn with_host_reserve(self) -> Self {
        Self {
            descriptor_reserve: self.descriptor_reserve + HOST_DESCRIPTOR_RESERVE,
            ..self
        }
    }
}

impl KernelLauncher for SessionLauncher {
    fn start(&self, stop: StopSignal) -> StartFuture {
        let (kernels, setup) = (self.kernels.clone(), self.setup.clone());
        let descriptor_reserve = self.descriptor_reserve;
        let deadline = StartDeadline::new(&kernels);
        Box::pin(async move {
            check_descriptors(descriptor_reserve)?;
            let kernel = kernels.start(stop.clone());
            let kernel = match kernels.spec() {
                // The bridge starts while Python starts.
                KernelSpec::Runner(_) => tokio::join!(kernel, setup.open_bridge()).0?,
                KernelSpec::Jupyter(_) => kernel.await.map_err(add_install_command)?,
                // Cellwright sets up only the kernels that it started.
                KernelSpec::Attached(_) => return kernel.await,
                KernelSpec::Gateway(spec) if let Some(local) = &spec.local => {
                    local_gateway::start_kernel(
                        spec,
                        local,
                        kernels.context(),
                        &setup.session,
                        &stop,
                    )
                    .await?
                }
                KernelSpec::Gateway(spec) => {
                    let kernel = kernel.await?;
                    if spec.files == FileAccess::OtherMachine {
                        let notice = describe_remote_files(spec);
                        return Ok(kernel_setup::with_notice(kernel, notice));
                    }
                    if spec.is_attached() {
                        return Ok(kernel);
                    }
                    kernel
                }
            };
            deadline
                .limit(set_up(&setup, kernel, &kernels, &stop))
                .await
        })
    }

    fn spare_key(&self) -> Option<String> {
        self.kernels.spare_key()
    }

    fn start_spare(&self, stop: StopSignal) -> StartFuture {
        let kernels = self.kernels.clone();
        let descriptor_reserve = self.descriptor_reserve;
        Box::pin(async move {
            check_descriptors(descriptor_reserve)?;
            kernels.start_spare(stop).await
        })
    }

    fn adopt(&self, kernel: Box<dyn Kernel>, stop: StopSignal) -> StartFuture {
        let (kernels, setup) = (self.kernels.clone(), self.setup.clone());
        let deadline = StartDeadline::new(&kernels);
        Box::pin(async move {
            let kernel = kernels.adopt(kernel, stop.clone()).await?;
            deadline
                .limit(set_up(&setup, kernel, &kernels, &stop))
                .await
        })
    }
}

/// The end of the time in which a kernel starts and is set up.
struct StartDeadline {
    at: Instant,
    timeout: Duration,
}

impl StartDeadline {
    fn new(kernels: &SpecLauncher) -> Self {
        let timeout = kernels.spec().start_timeout();
        Self {
            at: Instant::now() + timeout,
            timeout,
        }
    }

    /// Ends the setup at the deadline: modules of the user could run without end.
    async fn limit<T>(
        self,
        setup: impl Future<Output = Result<T, KernelError>>,
    ) -> Result<T, KernelError> {
        let not_ready = |_| KernelError::NotReady {
            after: self.timeout,
            stderr: String::new(),
        };
        timeout_at(self.at, setup).await.map_err(not_ready)?
    }
}

/// Describes that the files of a kernel are not those of this machine.
fn describe_remote_files(spec: &GatewaySpec) -> UserNotice {
    let server = spec.server.label();
    UserNotice::new(
        NoticeKind::RemoteFiles,
        format!(
            "the code runs on the server {server}, in its working directory: paths in the code are paths there, not on this machine"
        ),
    )
}

/// Adds the command that installs ipykernel to the error that it is missing.
fn add_install_command(error: KernelError) -> KernelError {
    match error {
        KernelError::NoIpykernel { python, .. } => KernelError::NoIpykernel {
            install_command: Some(ipykernel::install_command(&python)),
            python,
        },
        error => error,
    }
}

async fn set_up(
    setup: &KernelSetup,
    kernel: Box<dyn Kernel>,
    kernels: &SpecLauncher,
    stop: &StopSignal,
) -> Result<Box<dyn Kernel>, KernelError> {
    let (env, cwd) = (kernels.spec().env(), kernels.context().cwd.path());
    setup.set_up(kernel, env, cwd, stop).await
}
