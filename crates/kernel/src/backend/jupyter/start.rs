//! How a kernel is started, or found, and when it is ready.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::connection::{self, Channel, Connection, ConnectionFile, SocketFolder};
use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_jupyter::link::{Heard, Link, Options, Sockets};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::ports::HeldPorts;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::life::{Child, Life, Traces};
use super::python::{self, Guest};
use super::words::Words;
use super::{FAREWELL_STEP, JupyterSpec, Transport};
use crate::backend::runner::{check_directory, staging};
use crate::environment;
use crate::error::KernelError;
use crate::process::{Command, Exit, StartError, Supervised};
use crate::stop::Stop;

/// How long a kernel has to say anything on iopub before it is made to.
const NUDGE: Duration = Duration::from_millis(200);

/// How long a kernel has to open its sockets in the file system before they are tried on loopback.
const IPC_PATIENCE: Duration = Duration::from_secs(15);

/// How long a kernel that has answered may say nothing on iopub, which some never do until there is output,
/// or leave other channels closed.
const REST_PATIENCE: Duration = Duration::from_secs(3);

/// How often the heart of a kernel is felt that is not ours.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A kernel that is ready.
pub(super) struct Ready {
    pub(super) life: Life,
    pub(super) link: Link,
    /// What it says about itself.
    pub(super) info: Value,
}

/// Until when it must be ready, and who may end the wait.
struct Patience<'a> {
    stop: &'a Stop,
    until: Instant,
    given: Duration,
}

/// Starts a kernel of ours.
pub(super) async fn start(
    spec: &JupyterSpec,
    kernelspec: &Kernelspec,
    python: Option<&Path>,
    stop: &Stop,
) -> Result<Ready, KernelError> {
    check_directory(&spec.cwd)?;
    check_program(spec, kernelspec, python)?;
    // What a host left behind that was killed.
    connection::sweep(&spec.runtime);
    SocketFolder::sweep(&spec.sockets);
    let patience = Patience {
        stop,
        until: Instant::now() + spec.start_timeout,
        given: spec.start_timeout,
    };
    let attempt = Attempt {
        spec,
        kernelspec,
        python,
    };
    let sockets = match spec.transport {
        Transport::Tcp => None,
        Transport::Auto => SocketFolder::new(&spec.sockets).ok(),
        Transport::Ipc => match SocketFolder::new(&spec.sockets) {
            Ok(folder) => Some(folder),
            Err(error) => return Err(KernelError::NoSockets { source: error }),
        },
    };
    let Some(sockets) = sockets else {
        return attempt.tcp(&patience).await;
    };
    if spec.transport == Transport::Ipc {
        return attempt.ipc(sockets, &patience).await;
    }
    let first = Patience {
        until: patience.until.min(Instant::now() + IPC_PATIENCE),
        ..patience
    };
    match attempt.ipc(sockets, &first).await {
        // Not every kernel can have its sockets in the file system; some end, some hang.
        Err(KernelError::FailedToStart { .. } | KernelError::NotReady { .. })
            if Instant::now() < patience.until =>
        {
            attempt.tcp(&patience).await
        }
        ready => ready,
    }
}

fn check_program(
    spec: &JupyterSpec,
    kernelspec: &Kernelspec,
    python: Option<&Path>,
) -> Result<(), KernelError> {
    let path = spec.env.iter().find(|(name, _)| name == "PATH");
    let path: Vec<PathBuf> = path
        .map(|(_, value)| value.as_bytes().split(|byte| *byte == b':'))
        .map(|folders| {
            let folder = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
            folders.map(folder).collect()
        })
        .unwrap_or_default();
    match kernelspec.check(&path, python) {
        Ok(_) => Ok(()),
        Err(fault) => Err(KernelError::BrokenKernelspec {
            name: kernelspec.name.clone(),
            fault,
        }),
    }
}

/// One way to start a kernel.
struct Attempt<'a> {
    spec: &'a JupyterSpec,
    kernelspec: &'a Kernelspec,
    python: Option<&'a Path>,
}

impl Attempt<'_> {
    async fn ipc(
        &self,
        sockets: SocketFolder,
        patience: &Patience<'_>,
    ) -> Result<Ready, KernelError> {
        let connection = Connection::new_ipc(sockets.stem()).map_err(KernelError::exhausted_by)?;
        self.run(connection, Some(sockets), patience).await
    }

    async fn tcp(&self, patience: &Patience<'_>) -> Result<Ready, KernelError> {
        let held = HeldPorts::take().map_err(KernelError::exhausted_by)?;
        let connection = Connection::new_tcp(held.ports()).map_err(KernelError::exhausted_by)?;
        let ready = self.run(connection, None, patience).await;
        // The kernel has them now.
        drop(held);
        ready
    }

    async fn run(
        &self,
        mut connection: Connection,
        sockets: Option<SocketFolder>,
        patience: &Patience<'_>,
    ) -> Result<Ready, KernelError> {
        connection.kernel_name = Some(self.kernelspec.name.clone());
        let listed = ConnectionFile::write(&self.spec.runtime, &connection)
            .map_err(|source| KernelError::Connection { source })?;
        let mut traces = Traces {
            pid: None,
            listed,
            sockets,
        };
        let (process, ends) = self.spawn(traces.listed.path()).await?;
        traces.pid = Some(process.pid());
        let program = || self.program();
        let words = Words::hear(ends).map_err(|source| KernelError::launch(program(), source))?;
        let mut life = Life::Ours(Box::new(Child {
            process,
            words,
            _traces: traces,
        }));
        let mut link = Link::open(&connection, &Options::default())
            .map_err(|source| KernelError::launch(program(), source))?;
        let info = greet(&mut life, &mut link, patience).await;
        match info {
            Ok(info) => Ok(Ready { life, link, info }),
            Err(Trouble::Kernel(error)) => {
                life.end().await;
                Err(error)
            }
            Err(Trouble::Ended(exit)) => Err(self.failed(exit, life.last_words().await)),
            Err(Trouble::Late) => {
                let after = patience.given;
                life.end().await;
                let stderr = life.last_words().await;
                Err(KernelError::NotReady { after, stderr })
            }
        }
    }

    async fn spawn(
        &self,
        connection_file: &Path,
    ) -> Result<(Supervised, crate::process::Ends), KernelError> {
        let mut env = self.spec.env.clone();
        for (name, value) in self.kernelspec.environment(&self.spec.env) {
            if let Some(name) = name.to_str() {
                environment::set(&mut env, name, value);
            }
        }
        let mut arguments = self.kernelspec.command(connection_file, self.python);
        if self.kernelspec.is_ipykernel() {
            // What agents and scripts try is not what its user typed; and many kernels that write into one
            // file wait for each other.
            arguments.push("--HistoryManager.hist_file=:memory:".into());
        }
        let command = Command {
            arguments,
            env,
            cwd: self.spec.cwd.clone(),
        };
        let started = Supervised::start(&self.spec.supervisor, &command).await;
        started.map_err(|error| match error {
            StartError::Program(source) => KernelError::launch(self.program(), source),
            StartError::Supervisor(source) => {
                KernelError::launch(self.spec.supervisor.program.clone(), source)
            }
        })
    }

    fn program(&self) -> PathBuf {
        let command = self.kernelspec.command(Path::new(""), self.python);
        command
            .into_iter()
            .next()
            .map(OsString::into)
            .unwrap_or_default()
    }

    fn failed(&self, exit: Exit, stderr: String) -> KernelError {
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

/// Finds a kernel that runs.
pub(super) async fn attach(
    spec: &JupyterSpec,
    connection_file: &Path,
    stop: &Stop,
) -> Result<Ready, KernelError> {
    let connection =
        Connection::read(connection_file).map_err(|source| KernelError::Connection { source })?;
    let patience = Patience {
        stop,
        until: Instant::now() + spec.start_timeout.min(ATTACH),
        given: spec.start_timeout.min(ATTACH),
    };
    let options = Options {
        heartbeat: Some(HEARTBEAT),
        sockets: Sockets::Are,
        ..Options::default()
    };
    let mut life = Life::Theirs { gone: false };
    let unreachable = |why: &str| KernelError::Unreachable {
        connection_file: connection_file.to_owned(),
        why: why.to_owned(),
    };
    let mut link = Link::open(&connection, &options).map_err(KernelError::exhausted_by)?;
    match greet(&mut life, &mut link, &patience).await {
        Ok(info) => Ok(Ready { life, link, info }),
        Err(Trouble::Kernel(KernelError::Protocol { what })) => {
            Err(unreachable(&format!("{what} (it may have ended)")))
        }
        Err(Trouble::Kernel(error)) => Err(error),
        Err(Trouble::Ended(_)) => Err(unreachable("it closed the connection")),
        Err(Trouble::Late) => Err(unreachable("nobody answers there")),
    }
}

/// How long a kernel that runs has to answer.
const ATTACH: Duration = Duration::from_secs(10);

/// Why a kernel is not ready.
enum Trouble {
    Kernel(KernelError),
    Ended(Exit),
    Late,
}

/// Waits until a kernel answers and is heard on iopub: from then on nothing that it says is missed.
async fn greet(
    life: &mut Life,
    link: &mut Link,
    patience: &Patience<'_>,
) -> Result<Value, Trouble> {
    let mut open = Vec::new();
    let mut info = None;
    let mut heard_iopub = false;
    let mut nudge = None;
    let mut enough = None;
    let mut closed: Option<(Instant, String)> = None;
    loop {
        let heard = tokio::select! {
            biased;
            reason = patience.stop.pulled() => {
                return Err(Trouble::Kernel(KernelError::StoppedEarly { reason }));
            }
            () = sleep_until(patience.until) => return Err(Trouble::Late),
            () = until(closed.as_ref().map(|(until, _)| *until)), if closed.is_some() => {
                let what = closed.map(|(_, what)| what).unwrap_or_default();
                return Err(Trouble::Kernel(KernelError::Protocol { what }));
            }
            () = until(enough), if enough.is_some() && closed.is_none() => {
                return Ok(info.unwrap_or_default());
            }
            () = until(nudge), if nudge.is_some() => {
                nudge = Some(ask_info(link));
                continue;
            }
            heard = link.next() => heard,
            exit = life.exited() => return Err(Trouble::Ended(exit)),
        };
        match heard {
            Heard::Open(channel) => open.push(channel),
            Heard::Message(Channel::Iopub, _) => heard_iopub = true,
            Heard::Message(Channel::Shell, message)
                if message.header.msg_type == "kernel_info_reply" =>
            {
                info = Some(message.value());
                enough.get_or_insert(Instant::now() + REST_PATIENCE);
            }
            Heard::Closed(_, None) if life.is_theirs() => {
                return Err(Trouble::Ended(Exit::UNKNOWN));
            }
            Heard::Closed(_, Some(error)) if life.is_theirs() => {
                let what = words(&error);
                return Err(Trouble::Kernel(KernelError::Protocol { what }));
            }
            // Its process ends, most likely: one that was killed leaves connections in disorder.
            Heard::Closed(_, error) => {
                let what = error.map_or_else(
                    || "it closed its connection".to_owned(),
                    |error| words(&error),
                );
                closed.get_or_insert((Instant::now() + FAREWELL_STEP, what));
            }
            _ => {}
        }
        let has = |wanted: &[Channel]| wanted.iter().all(|channel| open.contains(channel));
        if nudge.is_none() && has(&[Channel::Shell, Channel::Iopub]) {
            nudge = Some(ask_info(link));
        }
        // A question that comes before we are there to be asked is lost.
        if heard_iopub
            && closed.is_none()
            && has(&[Channel::Stdin, Channel::Control])
            && let Some(info) = info.take()
        {
            return Ok(info);
        }
    }
}

/// An error with its causes.
pub(super) fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    words
}

/// Asks a kernel what it is, to which it answers on shell and is heard on iopub; when to ask again.
fn ask_info(link: &Link) -> Instant {
    let request = Message::new("kernel_info_request", link.session(), &json!({}));
    link.send(Channel::Shell, &request);
    Instant::now() + NUDGE
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What a Python kernel is to find inside; nothing if our files cannot be put anywhere.
pub(super) fn guest(spec: &JupyterSpec, life: &Life) -> Option<Guest> {
    let folder = staging::stage(&spec.staging).ok()?;
    let ours = matches!(life, Life::Ours(_));
    let off = |(name, value): &(OsString, OsString)| name == "CELLWRIGHT_PRELUDE" && value == "0";
    let options = python::Options {
        // What is in a kernel of others is their affair; all we want there is to ask.
        prelude: ours && !spec.env.iter().any(off),
        front: ours,
    };
    Some(Guest::new(folder, options))
}
