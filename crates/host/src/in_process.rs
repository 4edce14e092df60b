//! [`InProcessHost`]: sessions that this process owns, and that end with it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_stdext::private::{self, PrivateDir, effective_user, temporary};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::channel::{self, RequestChannel};
use super::log::Log;
use super::protocol::HostRequest;
use super::service::HostService;

/// Prefix of the directory of an in-process host.
const DIR_PREFIX: &str = "own-";

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
    /// Creates the host. Must be called within a runtime; blocks while it creates files.
    pub(super) fn start(engine: Engine) -> Result<Self, Failure> {
        let runtime = Handle::current();
        // Nothing waits for it.
        drop(runtime.spawn_blocking(remove_abandoned_dirs));
        let dir = temporary::create_user_dir(DIR_PREFIX)?;
        let mut new = OpenOptions::new();
        let lock = private::open_file(
            new.write(true).create_new(true),
            &dir.path().join(LOCK_FILE),
        )?;
        // On a file system without locks no process removes directories.
        lock.lock().ok();
        let runtime_dir = RuntimeDir::create(&dir.path().join("kernels"))?;
        let log = Arc::new(Log::open(&runtime_dir));
        Ok(Self {
            service: Arc::new(HostService::new(engine, &runtime_dir, &log)),
            runtime,
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

/// Removes the directories of processes that were killed. They are in the user's temporary directories: a shared directory is
/// not searched, because other users decide what it contains.
fn remove_abandoned_dirs() {
    for dir in temporary::user_dirs() {
        // A directory of another user is not ours, whatever its name.
        if let Ok(Some(dir)) = PrivateDir::open(&dir) {
            remove_abandoned_in(dir.path());
        }
    }
}

fn remove_abandoned_in(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(DIR_PREFIX) {
            continue;
        }
        let Ok(meta) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        let age = meta.modified().ok().and_then(|time| time.elapsed().ok());
        let is_old = age.is_some_and(|age| age >= ABANDONED_DIR_GRACE);
        if !meta.is_dir() || meta.uid() != effective_user() || !is_old {
            continue;
        }
        // A live process holds the lock.
        let mut options = OpenOptions::new();
        let lock = private::open_file(options.write(true), &entry.path().join(LOCK_FILE));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
