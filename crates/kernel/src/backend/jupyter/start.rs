//! Starting a kernel or attaching to one, and waiting until it is ready.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::client::{ClientOptions, ConnectMode, KernelClient};
use cellwright_jupyter::connection::{self, Connection, ConnectionFile, SocketDir};
use cellwright_jupyter::ports::ReservedPorts;
use serde_json::Value;
use tokio::time::Instant;

use super::output_tail::ProcessOutputTail;
use super::process::{KernelProcess, OwnedProcess, RuntimeFiles};
use super::ready::{StartDeadline, StartFailure, wait_until_ready};
use super::{AttachedSpec, JupyterSpec, Lifecycle, Transport};
use crate::backend::launch_error::launch_error;
use crate::backend::runner::check_directory;
use crate::error::KernelError;
use crate::launch_context::LaunchContext;
use crate::process::{ChildCommand, Exit, Supervised};
use crate::stop::StopSignal;
use crate::variables::set_variable;

/// How often the heartbeat of an attached kernel is checked.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A kernel that is ready.
pub(super) struct ReadyKernel<C = KernelClient, L = KernelProcess> {
    pub(super) channels: C,
    pub(super) lifecycle: L,
    /// The content of its `kernel_info_reply`.
    pub(super) info: Value,
}

/// Starts a kernel.
pub(super) async fn start(
    spec: &JupyterSpec,
    context: &LaunchContext,
    stop: &StopSignal,
) -> Result<ReadyKernel, KernelError> {
    check_directory(&context.cwd)?;
    check_program(spec)?;
    let (runtime, dirs) = (spec.runtime.clone(), context.sockets.clone());
    let transport = spec.transport;
    let prepared = tokio::task::spawn_blocking(move || prepare_sockets(transport, &runtime, &dirs));
    let sockets = prepared
        .await
        .map_err(|source| KernelError::from_exhaustion(source.into()))??;
    let deadline = StartDeadline {
        stop,
        at: Instant::now() + spec.start_timeout,
        timeout: spec.start_timeout,
    };
    let attempt = LaunchAttempt { spec, context };
    let Some(sockets) = sockets else {
        return attempt.start_tcp(&deadline).await;
    };
    let ready = attempt.start_ipc(sockets, &deadline).await;
    match ready {
        // Perhaps the kernel supports only TCP. Other users could read its messages then: the user decides.
        Err(error @ (KernelError::FailedToStart { .. } | KernelError::NotReady { .. }))
            if !spec.kernelspec.is_ipykernel() =>
        {
            let source = Box::new(error);
            Err(KernelError::OverIpc { source })
        }
        ready => ready,
    }
}

/// Removes the files of processes that were killed and creates the directory of the kernel's sockets. Without a directory the
/// kernel does not start. `None`: the user has chosen TCP.
fn prepare_sockets(
    transport: Transport,
    runtime: &Path,
    dirs: &[PathBuf],
) -> Result<Option<SocketDir>, KernelError> {
    connection::sweep(runtime);
    SocketDir::sweep(dirs);
    match transport {
        Transport::Tcp => Ok(None),
        Transport::Ipc => match SocketDir::new(dirs) {
            Ok(dir) => Ok(Some(dir)),
            Err(source) => Err(KernelError::NoSockets { source }),
        },
    }
}

fn check_program(spec: &JupyterSpec) -> Result<(), KernelError> {
    let path = spec.env.iter().find(|(name, _)| name == "PATH");
    let path: Vec<PathBuf> = path
        .map(|(_, value)| value.as_bytes().split(|byte| *byte == b':'))
        .map(|dirs| {
            let dir = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
            dirs.map(dir).collect()
        })
        .unwrap_or_default();
    match spec.kernelspec.find_program(&path, spec.python.as_deref()) {
        Ok(_) => Ok(()),
        Err(source) => Err(KernelError::BrokenKernelspec {
            name: spec.kernelspec.name.clone(),
            source,
        }),
    }
}

/// Starts one kernel over one transport.
struct LaunchAttempt<'a> {
    spec: &'a JupyterSpec,
    context: &'a LaunchContext,
}

impl LaunchAttempt<'_> {
    async fn start_ipc(
        &self,
        sockets: SocketDir,
        deadline: &StartDeadline<'_>,
    ) -> Result<ReadyKernel, KernelError> {
        let connection =
            Connection::new_ipc(sockets.stem()).map_err(KernelError::from_exhaustion)?;
        self.launch(connection, Some(sockets), deadline).await
    }

    async fn start_tcp(&self, deadline: &StartDeadline<'_>) -> Result<ReadyKernel, KernelError> {
        let held = ReservedPorts::reserve().map_err(KernelError::from_exhaustion)?;
        let connection = Connection::new_tcp(held.ports()).map_err(KernelError::from_exhaustion)?;
        let ready = self.launch(connection, None, deadline).await;
        // The kernel has bound the ports.
        drop(held);
        ready
    }

    async fn launch(
        &self,
        mut connection: Connection,
        sockets: Option<SocketDir>,
        deadline: &StartDeadline<'_>,
    ) -> Result<ReadyKernel, KernelError> {
        connection.kernel_name = Some(self.spec.kernelspec.name.clone());
        let connection_file = ConnectionFile::write(&self.spec.runtime, &connection)
            .map_err(|source| KernelError::Connection { source })?;
        let mut files = RuntimeFiles {
            pid: None,
            connection_file,
            sockets,
        };
        let (process, ends) = self.spawn(files.connection_file.path()).await?;
        files.pid = Some(process.pid());
        let program = || self.program();
        let output = ProcessOutputTail::read_from(ends)
            .map_err(|source| KernelError::from_launch(program(), source))?;
        let mut lifecycle = KernelProcess::Owned(Box::new(OwnedProcess {
            process,
            interrupt_mode: self.spec.kernelspec.interrupt,
            output,
            _files: files,
        }));
        let mut channels = KernelClient::open(&connection, &ClientOptions::default())
            .map_err(|source| KernelError::from_launch(program(), source))?;
        match wait_until_ready(&mut channels, &mut lifecycle, deadline).await {
            Ok(info) => Ok(ReadyKernel {
                channels,
                lifecycle,
                info,
            }),
            Err(StartFailure::Kernel(error)) => {
                lifecycle.kill().await;
                Err(error)
            }
            Err(StartFailure::Exited(exit)) => {
                Err(self.start_error(exit, lifecycle.final_output().await))
            }
            Err(StartFailure::TimedOut) => {
                let after = deadline.timeout;
                lifecycle.kill().await;
                let stderr = lifecycle.final_output().await;
                Err(KernelError::NotReady { after, stderr })
            }
        }
    }

    async fn spawn(
        &self,
        connection_file: &Path,
    ) -> Result<(Supervised, crate::process::ChildPipes), KernelError> {
        let mut env = self.spec.env.clone();
        for (name, value) in self.spec.kernelspec.environment(&self.spec.env) {
            if let Some(name) = name.to_str() {
                set_variable(&mut env, name, value);
            }
        }
        let kernelspec = &self.spec.kernelspec;
        let mut arguments = kernelspec.command(connection_file, self.spec.python.as_deref());
        if kernelspec.is_ipykernel() {
            // Code of agents and scripts does not belong into the user's history, and kernels that write into one
            // file wait for each other.
            arguments.push("--HistoryManager.hist_file=:memory:".into());
        }
        let command = ChildCommand {
            arguments,
            env,
            cwd: self.context.cwd.clone(),
        };
        let started = Supervised::start(&self.context.supervisor, &command).await;
        started.map_err(|error| launch_error(error, self.program(), self.context))
    }

    fn program(&self) -> PathBuf {
        let kernelspec = &self.spec.kernelspec;
        let command = kernelspec.command(Path::new(""), self.spec.python.as_deref());
        command
            .into_iter()
            .next()
            .map(OsString::into)
            .unwrap_or_default()
    }

    fn start_error(&self, exit: Exit, stderr: String) -> KernelError {
        let missing = ["ipykernel", "ipykernel_launcher"]
            .iter()
            .any(|module| stderr.contains(&format!("No module named '{module}'")))
            || stderr.contains("No module named ipykernel");
        if missing {
            let python = self.program();
            return KernelError::NoIpykernel {
                python,
                install_command: None,
            };
        }
        KernelError::FailedToStart { exit, stderr }
    }
}

/// Attaches to a running kernel.
pub(super) async fn attach(
    spec: &AttachedSpec,
    stop: &StopSignal,
) -> Result<ReadyKernel, KernelError> {
    let connection_file = &spec.connection_file;
    let connection =
        Connection::read(connection_file).map_err(|source| KernelError::Connection { source })?;
    let deadline = StartDeadline {
        stop,
        at: Instant::now() + spec.start_timeout.min(ATTACH_TIMEOUT),
        timeout: spec.start_timeout.min(ATTACH_TIMEOUT),
    };
    let options = ClientOptions {
        heartbeat_interval: Some(HEARTBEAT_INTERVAL),
        connect: ConnectMode::FailFast,
        ..ClientOptions::default()
    };
    let mut lifecycle = KernelProcess::Attached { gone: false };
    let unreachable = |why: &str| KernelError::Unreachable {
        connection_file: connection_file.to_owned(),
        problem: why.to_owned(),
    };
    let mut channels =
        KernelClient::open(&connection, &options).map_err(KernelError::from_exhaustion)?;
    match wait_until_ready(&mut channels, &mut lifecycle, &deadline).await {
        Ok(info) => Ok(ReadyKernel {
            channels,
            lifecycle,
            info,
        }),
        Err(StartFailure::Kernel(KernelError::Protocol { violation: what })) => {
            Err(unreachable(&format!("{what} (it may have ended)")))
        }
        Err(StartFailure::Kernel(error)) => Err(error),
        Err(StartFailure::Exited(_)) => Err(unreachable("it closed the connection")),
        Err(StartFailure::TimedOut) => Err(unreachable("it does not reply")),
    }
}

/// How long a running kernel may take to reply.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);
