//! [`Reach`]: the way to whoever keeps kernels, a host or this very process.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use super::ask;
use super::connection::Connection;
use super::error::HostError;
use super::folder::Folder;
use super::frame::FrameError;
use super::keeper::Keeper;
use super::log::Log;
use super::service::{Request, Service};
use super::wanted::Wanted;
use crate::failure::Failure;

/// What the folder of a process that keeps its own kernels begins with.
const PREFIX: &str = "cellwright-own-";

/// The file in it that its owner holds locked.
const ALIVE: &str = "alive";

/// Folders that are younger may have an owner who is about to lock them.
const YOUNG: Duration = Duration::from_mins(1);

/// Removes what processes left behind that were killed.
fn sweep() {
    let entries = std::fs::read_dir(std::env::temp_dir());
    for entry in entries.into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let age = entry.metadata().and_then(|found| found.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        if age.is_none_or(|age| age < YOUNG) {
            continue;
        }
        // Whose it is nobody else can lock, and of another user's nothing can be removed.
        let lock = File::options().write(true).open(entry.path().join(ALIVE));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// The way to whoever keeps kernels; clones lead to the same.
#[derive(Clone)]
pub(crate) enum Reach {
    /// The background process of this user, started when it is needed.
    Host,
    /// This process.
    Own(Arc<Own>),
}

/// Kernels that are this process's own, and end with it.
pub(crate) struct Own {
    service: Arc<dyn Service>,
    runtime: Handle,
    /// Held as long as it lives.
    _alive: File,
    /// Where it writes down what ran; goes with it.
    _folder: tempfile::TempDir,
}

impl Reach {
    /// A keeper of this process. Must be called within a runtime.
    pub(crate) fn own() -> Result<Self, Failure> {
        sweep();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let alive = File::create(folder.path().join(ALIVE))?;
        // Where files cannot be locked, nobody sweeps.
        alive.lock().ok();
        let place = Folder::make(folder.path().join("kernels"))?;
        let log = Arc::new(Log::open(&place));
        let own = Own {
            service: Arc::new(Keeper::new(&place, &log)),
            runtime: Handle::current(),
            _alive: alive,
            _folder: folder,
        };
        Ok(Self::Own(Arc::new(own)))
    }

    /// A connection for one request. A host is started if there is none.
    pub(crate) async fn connect(&self, idle_exit: Option<Duration>) -> Result<Connection, Failure> {
        match self {
            Self::Host => Ok(ask::host(idle_exit).await?.connection),
            Self::Own(own) => own.connect(),
        }
    }

    /// A connection for one request; `None` if there is no host.
    pub(crate) async fn look(&self) -> Result<Option<Connection>, Failure> {
        match self {
            Self::Host => Ok(ask::living_host().await?.map(|client| client.connection)),
            Self::Own(own) => own.connect().map(Some),
        }
    }

    /// Asks something; `None` if there is nobody to ask. `more` is how long the answer may take beyond the
    /// usual. Not to be called where a runtime must not be blocked.
    pub(crate) fn ask(&self, wanted: &Wanted, more: Duration) -> Result<Option<Value>, Failure> {
        match self {
            Self::Host => ask::ask(wanted, more),
            Self::Own(own) => own.runtime.block_on(self.inquire(wanted, more)),
        }
    }

    /// The same where a runtime is.
    pub(crate) async fn inquire(
        &self,
        wanted: &Wanted,
        more: Duration,
    ) -> Result<Option<Value>, Failure> {
        let Some(mut connection) = self.look().await? else {
            return Ok(None);
        };
        let answer = async {
            connection.send(wanted).await.map_err(HostError::from)?;
            loop {
                let frame = connection.next().await.map_err(HostError::from)?;
                let frame = frame.ok_or(HostError::Gone)?;
                if let Some(end) = ask::end_of(&frame)? {
                    return Ok(Some(end));
                }
            }
        };
        match tokio::time::timeout(ask::PATIENCE + more, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(HostError::Hung {
                pid: std::process::id(),
            }
            .into()),
        }
    }

    /// Ends what is this process's own; a host stays.
    pub(crate) fn end(&self) -> BoxFuture<'static, Map<String, Value>> {
        match self {
            Self::Host => Box::pin(async { Map::new() }),
            Self::Own(own) => {
                let own = Arc::clone(own);
                Box::pin(async move { own.service.end().await })
            }
        }
    }

    /// Whether kernels are this process's own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

impl Own {
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
        service.handle(Request { name, frame }, connection).await?;
    }
    Ok(())
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_own() { "Own" } else { "Host" })
    }
}
