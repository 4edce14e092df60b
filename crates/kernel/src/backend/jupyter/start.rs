//! Starting a kernel or attaching to one, and waiting until it is ready.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::client::{ClientEvent, ClientOptions, ConnectMode, KernelClient};
use cellwright_jupyter::connection::{self, Channel, Connection, ConnectionFile, SocketDir};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::ports::ReservedPorts;
use cellwright_stdext::error_chain;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::output_tail::ProcessOutputTail;
use super::process::{KernelProcess, OwnedProcess, RuntimeFiles};
use super::python::{self, PythonHooks};
use super::{AttachedSpec, JupyterSpec, SHUTDOWN_STEP_TIMEOUT, Transport, sleep_until_some};
use crate::backend::runner::{check_directory, staging};
use crate::environment;
use crate::error::KernelError;
use crate::launch::LaunchContext;
use crate::process::{ChildCommand, Exit, StartError, Supervised};
use crate::stop::StopSignal;

/// How long to wait for a message on iopub before `kernel_info_request` is sent again.
const INFO_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// How long a kernel may take to become ready over IPC before it is started over TCP.
const IPC_START_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a kernel that has replied may publish nothing on iopub, as some do until there is output,
/// or leave other channels closed.
const READY_GRACE: Duration = Duration::from_secs(3);

/// How often the heartbeat of an attached kernel is checked.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A kernel that is ready.
pub(super) struct ReadyKernel {
    pub(super) process: KernelProcess,
    pub(super) client: KernelClient,
    /// The content of its `kernel_info_reply`.
    pub(super) info: Value,
}

/// When a kernel must be ready, and the signal that ends the wait.
struct StartDeadline<'a> {
    stop: &'a StopSignal,
    at: Instant,
    timeout: Duration,
}

/// Starts a kernel.
pub(super) async fn start(
    spec: &JupyterSpec,
    context: &LaunchContext,
    stop: &StopSignal,
) -> Result<ReadyKernel, KernelError> {
    check_directory(&context.cwd)?;
    check_program(spec)?;
    // Removes the files of hosts that were killed.
    connection::sweep(&spec.runtime);
    SocketDir::sweep(&context.sockets);
    let deadline = StartDeadline {
        stop,
        at: Instant::now() + spec.start_timeout,
        timeout: spec.start_timeout,
    };
    let attempt = LaunchAttempt { spec, context };
    let sockets = match spec.transport {
        Transport::Tcp => None,
        Transport::Auto => SocketDir::new(&context.sockets).ok(),
        Transport::Ipc => match SocketDir::new(&context.sockets) {
            Ok(folder) => Some(folder),
            Err(error) => return Err(KernelError::NoSockets { source: error }),
        },
    };
    let Some(sockets) = sockets else {
        return attempt.start_tcp(&deadline).await;
    };
    if spec.transport == Transport::Ipc {
        return attempt.start_ipc(sockets, &deadline).await;
    }
    let first = StartDeadline {
        at: deadline.at.min(Instant::now() + IPC_START_TIMEOUT),
        ..deadline
    };
    match attempt.start_ipc(sockets, &first).await {
        // Some kernels do not support IPC: they exit or hang.
        Err(KernelError::FailedToStart { .. } | KernelError::NotReady { .. })
            if Instant::now() < deadline.at =>
        {
            attempt.start_tcp(&deadline).await
        }
        ready => ready,
    }
}

fn check_program(spec: &JupyterSpec) -> Result<(), KernelError> {
    let path = spec.env.iter().find(|(name, _)| name == "PATH");
    let path: Vec<PathBuf> = path
        .map(|(_, value)| value.as_bytes().split(|byte| *byte == b':'))
        .map(|folders| {
            let folder = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
            folders.map(folder).collect()
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
        let mut process = KernelProcess::Owned(Box::new(OwnedProcess {
            process,
            output,
            _files: files,
        }));
        let mut client = KernelClient::open(&connection, &ClientOptions::default())
            .map_err(|source| KernelError::from_launch(program(), source))?;
        let info = wait_until_ready(&mut process, &mut client, deadline).await;
        match info {
            Ok(info) => Ok(ReadyKernel {
                process,
                client,
                info,
            }),
            Err(StartFailure::Kernel(error)) => {
                process.kill().await;
                Err(error)
            }
            Err(StartFailure::Exited(exit)) => {
                Err(self.start_error(exit, process.final_output().await))
            }
            Err(StartFailure::TimedOut) => {
                let after = deadline.timeout;
                process.kill().await;
                let stderr = process.final_output().await;
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
                environment::set_variable(&mut env, name, value);
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
        started.map_err(|error| match error {
            StartError::Program(source) => KernelError::from_launch(self.program(), source),
            StartError::Supervisor(source) => {
                KernelError::from_launch(self.context.supervisor.program.clone(), source)
            }
        })
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
            return KernelError::NoIpykernel { python };
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
    let mut process = KernelProcess::Attached { gone: false };
    let unreachable = |why: &str| KernelError::Unreachable {
        connection_file: connection_file.to_owned(),
        problem: why.to_owned(),
    };
    let mut client =
        KernelClient::open(&connection, &options).map_err(KernelError::from_exhaustion)?;
    match wait_until_ready(&mut process, &mut client, &deadline).await {
        Ok(info) => Ok(ReadyKernel {
            process,
            client,
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

/// Why a kernel is not ready.
enum StartFailure {
    Kernel(KernelError),
    Exited(Exit),
    TimedOut,
}

/// Waits until a kernel has replied and published a message on iopub: from then on no message is missed.
async fn wait_until_ready(
    process: &mut KernelProcess,
    client: &mut KernelClient,
    deadline: &StartDeadline<'_>,
) -> Result<Value, StartFailure> {
    let mut open = Vec::new();
    let mut info = None;
    let mut iopub_works = false;
    let mut next_request = None;
    let mut info_deadline = None;
    let mut closed: Option<(Instant, String)> = None;
    loop {
        let event = tokio::select! {
            biased;
            reason = deadline.stop.requested() => {
                return Err(StartFailure::Kernel(KernelError::StoppedEarly { reason }));
            }
            () = sleep_until(deadline.at) => return Err(StartFailure::TimedOut),
            () = sleep_until_some(closed.as_ref().map(|(at, _)| *at)), if closed.is_some() => {
                let what = closed.map(|(_, what)| what).unwrap_or_default();
                return Err(StartFailure::Kernel(KernelError::Protocol { violation: what }));
            }
            () = sleep_until_some(info_deadline), if info_deadline.is_some() && closed.is_none() => {
                return Ok(info.unwrap_or_default());
            }
            () = sleep_until_some(next_request), if next_request.is_some() => {
                next_request = Some(request_info(client));
                continue;
            }
            event = client.next() => event,
            exit = process.exited() => return Err(StartFailure::Exited(exit)),
        };
        match event {
            ClientEvent::Opened(channel) => open.push(channel),
            ClientEvent::Message(Channel::Iopub, _) => iopub_works = true,
            ClientEvent::Message(Channel::Shell, message)
                if message.header.msg_type == "kernel_info_reply" =>
            {
                info = Some(message.value());
                info_deadline.get_or_insert(Instant::now() + READY_GRACE);
            }
            ClientEvent::Closed(_, None) if process.is_attached() => {
                return Err(StartFailure::Exited(Exit::UNKNOWN));
            }
            ClientEvent::Closed(_, Some(error)) if process.is_attached() => {
                let what = error_chain::format(&error);
                return Err(StartFailure::Kernel(KernelError::Protocol {
                    violation: what,
                }));
            }
            // Most likely the process is exiting: one that was killed leaves broken connections.
            ClientEvent::Closed(_, error) => {
                let what = error.map_or_else(
                    || "it closed its connection".to_owned(),
                    |error| error_chain::format(&error),
                );
                closed.get_or_insert((Instant::now() + SHUTDOWN_STEP_TIMEOUT, what));
            }
            _ => {}
        }
        let has = |wanted: &[Channel]| wanted.iter().all(|channel| open.contains(channel));
        if next_request.is_none() && has(&[Channel::Shell, Channel::Iopub]) {
            next_request = Some(request_info(client));
        }
        // An input request that is sent before stdin is connected is lost.
        if iopub_works
            && closed.is_none()
            && has(&[Channel::Stdin, Channel::Control])
            && let Some(info) = info.take()
        {
            return Ok(info);
        }
    }
}

/// Sends `kernel_info_request`, which causes messages on shell and iopub. Returns when to send it again.
fn request_info(client: &KernelClient) -> Instant {
    let request = Message::new("kernel_info_request", client.session(), &json!({}));
    client.send(Channel::Shell, &request);
    Instant::now() + INFO_RETRY_INTERVAL
}

/// The hooks for a Python kernel; `None` if their files cannot be written anywhere. An attached kernel is changed only as
/// far as queries need it.
pub(super) fn python_hooks(
    staging: &[PathBuf],
    is_attached: bool,
    prelude: bool,
) -> Option<PythonHooks> {
    let folder = staging::stage(staging).ok()?;
    let options = python::HookOptions {
        prelude: prelude && !is_attached,
        cwd_first: !is_attached,
    };
    Some(PythonHooks::new(folder, options))
}
