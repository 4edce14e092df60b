//! [`InProcessHost`]: sessions that this process owns, and that end with it.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::runtime_dir::RuntimeDir;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::channel::{self, RequestChannel};
use super::log::Log;
use super::protocol::HostRequest;
use super::service::HostService;

/// Prefix of the directory of an in-process host.
const DIR_PREFIX: &str = "cellwright-own-";

/// The file in it that the process holds locked.
const LOCK_FILE: &str = "alive";

/// Age below which a directory is not removed: its process may not have locked it yet.
const ABANDONED_DIR_GRACE: Duration = Duration::from_mins(1);

/// A host in this process.
pub struct InProcessHost {
    service: Arc<HostService>,
    runtime: Handle,
    /// Held locked until the process ends.
    _lock: File,
    /// The directory of the journals; removed with the host.
    _dir: tempfile::TempDir,
}

impl InProcessHost {
    /// Creates the host. Must be called within a runtime. It shares the limit on sessions and the spare kernels with
    /// `sibling`.
    pub(super) fn start(engine: Engine, sibling: Option<&Self>) -> Result<Self, Failure> {
        remove_abandoned_dirs();
        let dir = tempfile::Builder::new().prefix(DIR_PREFIX).tempdir()?;
        let lock = File::create(dir.path().join(LOCK_FILE))?;
        // On a file system without locks no process removes directories.
        lock.lock().ok();
        let runtime_dir = RuntimeDir::create(dir.path().join("kernels"))?;
        let log = Arc::new(Log::open(&runtime_dir));
        Ok(Self {
            service: Arc::new(HostService::new(
                engine,
                &runtime_dir,
                &log,
                sibling.map(|sibling| &*sibling.service),
            )),
            runtime: Handle::current(),
            _lock: lock,
            _dir: dir,
        })
    }

    /// Opens a request.
    pub(super) fn open(&self, request: HostRequest) -> RequestChannel {
        let (client, mut host) = channel::in_process();
        let service = Arc::clone(&self.service);
        self.runtime.spawn(async move {
            // An error means that the client is gone.
            service.serve(request, &mut host).await.ok();
        });
        client
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) async fn shut_down(&self) -> Map<String, Value> {
        self.service.shut_down().await
    }
}

/// Removes the directories of processes that were killed.
fn remove_abandoned_dirs() {
    let entries = std::fs::read_dir(std::env::temp_dir());
    for entry in entries.into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(DIR_PREFIX) {
            continue;
        }
        let modified = entry.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok());
        if age.is_none_or(|age| age < ABANDONED_DIR_GRACE) {
            continue;
        }
        // A live process holds the lock, and the files of another user cannot be removed.
        let lock = File::options()
            .write(true)
            .open(entry.path().join(LOCK_FILE));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}
