//! [`KernelLease`]: a process that starts a kernel on a server, and ends it when the owner is gone.
//!
//! A server does not notice that the client of a kernel was killed. So a separate process sends the request that
//! starts the kernel, passes on the answer, and waits. When the owner ends or is killed, its socket is closed, and the process ends the kernel, also one that the server has just begun to start.
//!
//! ```text
//! owner → lease   LeaseRequest, one line of JSON
//! lease → owner   LeaseReply, one line of JSON
//! owner → lease   `released`: the kernel has ended; or the end of the socket: end the kernel
//! ```

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cellwright_gateway::{RemoteKernel, Server, ServerClient, ServerError, StartRequest};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::error::KernelError;
use crate::process::Supervisor;

/// The argument of a supervisor program that makes it a lease.
const LEASE_ARG: &str = "--kernel-lease";

/// The line that ends a lease whose kernel has ended.
const RELEASED: &[u8] = b"released\n";

/// How long a server that cannot be reached is asked to end the kernel of an owner that is gone.
const END_TIMEOUT: Duration = Duration::from_mins(5);
const END_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The longest line of a request: the environment of a kernel is in it.
const LINE_SIZE_MAX: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct LeaseRequest {
    server: Server,
    start: StartRequest,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LeaseReply {
    Started(RemoteKernel),
    Failed(ServerError),
}

/// A process that ends the kernel when this value is dropped or its process is killed.
#[derive(Debug)]
pub(super) struct KernelLease {
    socket: BufReader<UnixStream>,
}

impl KernelLease {
    /// Starts the process, and sends it the request. The process starts the kernel.
    pub(super) async fn start(
        program: &Supervisor,
        server: &Server,
        start: StartRequest,
    ) -> Result<Self, KernelError> {
        let failed = |source| KernelError::from_launch(program.program().to_owned(), source);
        let (own, other) = StdUnixStream::pair().map_err(failed)?;
        own.set_nonblocking(true).map_err(failed)?;
        let mut owner = UnixStream::from_std(own).map_err(failed)?;
        Command::new(program.program())
            .args(program.arguments())
            .arg(LEASE_ARG)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(other))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let request = LeaseRequest {
            server: server.clone(),
            start,
        };
        let mut line = serde_json::to_vec(&request).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        owner.write_all(&line).await.map_err(failed)?;
        Ok(Self {
            socket: BufReader::new(owner),
        })
    }

    /// Waits until the server has started the kernel. Cancel-safe if the lease is dropped afterwards.
    pub(super) async fn wait_started(&mut self) -> io::Result<Result<RemoteKernel, ServerError>> {
        let mut line = Vec::new();
        self.socket.read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(match serde_json::from_slice(&line)? {
            LeaseReply::Started(kernel) => Ok(kernel),
            LeaseReply::Failed(error) => Err(error),
        })
    }

    /// Ends the process without a request to the server: the kernel has ended.
    pub(super) async fn release(mut self) {
        // A process that is gone does nothing either.
        self.socket.write_all(RELEASED).await.ok();
        self.socket.shutdown().await.ok();
    }
}

/// Runs the lease if a supervisor program was started as one, with the socket of its owner. Returns `None` for other
/// arguments.
pub fn run_lease(
    mut arguments: impl Iterator<Item = OsString>,
    owner: &OwnedFd,
) -> Option<io::Result<()>> {
    (arguments.next()? == OsStr::new(LEASE_ARG)).then(|| hold(owner))
}

fn hold(owner: &OwnedFd) -> io::Result<()> {
    // Detaches from the owner's terminal and its Ctrl-C. Fails only if this process already leads a group.
    let _session = rustix::process::setsid();
    let socket = StdUnixStream::from(owner.try_clone()?);
    let mut input = io::BufReader::new(&socket);
    let mut line = Vec::new();
    (&mut input)
        .take(LINE_SIZE_MAX)
        .read_until(b'\n', &mut line)?;
    let request: LeaseRequest = serde_json::from_slice(&line)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let started = runtime.block_on(start(request));
    let reply = match &started {
        Ok((_, kernel)) => LeaseReply::Started(kernel.clone()),
        Err(error) => LeaseReply::Failed(error.clone()),
    };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    // An owner that is gone has closed the socket.
    (&socket).write_all(&text).ok();
    let Ok((client, kernel)) = started else {
        return Ok(());
    };
    let mut rest = Vec::new();
    input.read_to_end(&mut rest).ok();
    if rest != RELEASED {
        runtime.block_on(end(&client, &kernel));
    }
    Ok(())
}

/// Ends the kernel of an owner that is gone.
async fn end(client: &ServerClient, kernel: &RemoteKernel) {
    let deadline = Instant::now() + END_TIMEOUT;
    while let Err(error) = client.delete(&kernel.id).await {
        // The kernels of the shared gateway end with it, and another process may get its port.
        let has_ended = client.server().name.as_deref() == Some(super::LOCAL)
            && matches!(error, ServerError::Unreachable { .. });
        if has_ended || !error.is_transient() || Instant::now() > deadline {
            break;
        }
        sleep(END_RETRY_DELAY).await;
    }
}

async fn start(request: LeaseRequest) -> Result<(ServerClient, RemoteKernel), ServerError> {
    let client = ServerClient::new(Arc::new(request.server))?;
    let kernel = match client.start_kernel(&request.start).await {
        // A server that fails is asked once more.
        Err(ServerError::Status { status: 500.., .. }) => {
            client.start_kernel(&request.start).await?
        }
        result => result?,
    };
    Ok((client, kernel))
}
