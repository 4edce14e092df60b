//! [`KernelHost`]: the owner of sessions, either the shared host or this process.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use super::client;
use super::connection::Connection;
use super::error::HostError;
use super::frame::FrameError;
use super::keeper::HostService;
use super::log::Log;
use super::protocol::HostRequest;
use super::service::{Service, ServiceRequest};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::runtime_dir::RuntimeDir;

/// What the folder of a process that keeps its own kernels begins with.
const DIR_PREFIX: &str = "cellwright-own-";

/// The file in it that its owner holds locked.
const LOCK_FILE: &str = "alive";

/// Folders that are younger may have an owner who is about to lock them.
const SWEEP_MIN_AGE: Duration = Duration::from_mins(1);

/// Removes what processes left behind that were killed.
fn sweep() {
    let entries = std::fs::read_dir(std::env::temp_dir());
    for entry in entries.into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(DIR_PREFIX) {
            continue;
        }
        let age = entry.metadata().and_then(|found| found.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        if age.is_none_or(|age| age < SWEEP_MIN_AGE) {
            continue;
        }
        // Whose it is nobody else can lock, and of another user's nothing can be removed.
        let lock = File::options()
            .write(true)
            .open(entry.path().join(LOCK_FILE));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// The way to whoever keeps kernels; clones lead to the same.
#[derive(Clone)]
pub(crate) enum KernelHost {
    /// The background process of this user, started when it is needed.
    Shared,
    /// This process.
    InProcess(Arc<InProcessHost>),
}

/// Kernels that are this process's own, and end with it.
pub(crate) struct InProcessHost {
    service: Arc<dyn Service>,
    runtime: Handle,
    /// Held as long as it lives.
    _alive: File,
    /// Where it writes down what ran; goes with it.
    _folder: tempfile::TempDir,
}

impl KernelHost {
    /// A keeper of this process. Must be called within a runtime.
    pub(crate) fn in_process(engine: Engine) -> Result<Self, Failure> {
        sweep();
        let folder = tempfile::Builder::new().prefix(DIR_PREFIX).tempdir()?;
        let alive = File::create(folder.path().join(LOCK_FILE))?;
        // Where files cannot be locked, nobody sweeps.
        alive.lock().ok();
        let place = RuntimeDir::create(folder.path().join("kernels"))?;
        let log = Arc::new(Log::open(&place));
        let own = InProcessHost {
            service: Arc::new(HostService::new(engine, &place, &log)),
            runtime: Handle::current(),
            _alive: alive,
            _folder: folder,
        };
        Ok(Self::InProcess(Arc::new(own)))
    }

    /// A connection for one request. A host is started if there is none.
    pub(crate) async fn connect(&self, idle_exit: Option<Duration>) -> Result<Connection, Failure> {
        match self {
            Self::Shared => Ok(client::connect_or_start(idle_exit).await?.connection),
            Self::InProcess(own) => own.connect(),
        }
    }

    /// A connection for one request; `None` if there is no host.
    pub(crate) async fn connect_existing(&self) -> Result<Option<Connection>, Failure> {
        match self {
            Self::Shared => Ok(client::connect_running()
                .await?
                .map(|client| client.connection)),
            Self::InProcess(own) => own.connect().map(Some),
        }
    }

    /// Asks something; `None` if there is nobody to ask. `more` is how long the answer may take beyond the
    /// usual. Not to be called where a runtime must not be blocked.
    pub(crate) fn request_blocking(
        &self,
        wanted: &HostRequest,
        more: Duration,
    ) -> Result<Option<Value>, Failure> {
        match self {
            Self::Shared => client::request_blocking(wanted, more),
            Self::InProcess(own) => own.runtime.block_on(self.request(wanted, more)),
        }
    }

    /// The same where a runtime is.
    pub(crate) async fn request(
        &self,
        wanted: &HostRequest,
        more: Duration,
    ) -> Result<Option<Value>, Failure> {
        let Some(mut connection) = self.connect_existing().await? else {
            return Ok(None);
        };
        let answer = async {
            connection.send(wanted).await.map_err(HostError::from)?;
            loop {
                let frame = connection.next().await.map_err(HostError::from)?;
                let frame = frame.ok_or(HostError::Disconnected)?;
                if let Some(end) = client::final_reply(&frame)? {
                    return Ok(Some(end));
                }
            }
        };
        match tokio::time::timeout(client::REPLY_TIMEOUT + more, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(HostError::Unresponsive {
                pid: std::process::id(),
            }
            .into()),
        }
    }

    /// Ends what is this process's own; a host stays.
    pub(crate) fn shut_down(&self) -> BoxFuture<'static, Map<String, Value>> {
        match self {
            Self::Shared => Box::pin(async { Map::new() }),
            Self::InProcess(own) => {
                let own = Arc::clone(own);
                Box::pin(async move { own.service.shut_down().await })
            }
        }
    }

    /// Whether kernels are this process's own.
    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self, Self::InProcess(_))
    }
}

impl InProcessHost {
    /// Both ends are here, so that whoever asks does not have to know who answers.
    fn connect(&self) -> Result<Connection, Failure> {
        let (ours, theirs) = UnixStream::pair()?;
        let service = Arc::clone(&self.service);
        self.runtime.spawn(async move {
            let mut connection = Connection::new(theirs);
            // Whoever asked and has gone does not want to know.
            serve(&*service, &mut connection).await.ok();
        });
        Ok(Connection::new(ours))
    }
}

async fn serve(service: &dyn Service, connection: &mut Connection) -> Result<(), FrameError> {
    #[derive(Deserialize)]
    struct Do {
        r#do: String,
    }
    while let Some(frame) = connection.next().await? {
        let Do { r#do: name } = frame.parse()?;
        service
            .handle(ServiceRequest { name, frame }, connection)
            .await?;
    }
    Ok(())
}

impl std::fmt::Debug for KernelHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_in_process() { "Own" } else { "Host" })
    }
}
