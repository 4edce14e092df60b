//! [`OpenNotebooks`]: refuses writes to notebooks that a Jupyter server has in a collaboration room, and reports pages that
//! show an old text, and writes that such a page has overwritten.

mod written;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_jupyter::paths::{JupyterPaths, PathInputs};
use cellwright_jupyter_server::locate::Unanswered;
use cellwright_jupyter_server::{Located, UnansweredReason, locate};
use cellwright_notebook::Notice;
use cellwright_notebook::file::{WriteGuard, WritePermit, WriteRefusal};
use tracing::debug;

use self::written::{Content, WrittenRecord, WrittenRecords};
use crate::env;

pub use cellwright_jupyter_server::OpenNotebook;

/// Time limit of the questions to all servers. A server that does not reply within it does not block a write.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(1);

/// The guard of all notebooks: asks the Jupyter servers of this user.
#[derive(Clone, Debug, Default)]
pub struct OpenNotebooks {
    /// Jupyter's runtime directory; `None` without a home directory.
    runtime_dir: Option<PathBuf>,
    /// Writes while a page had the notebook open; `None` without a home directory.
    records: Option<WrittenRecords>,
}

impl OpenNotebooks {
    /// Uses the servers whose records are in the runtime directory of the environment.
    pub(crate) fn from_env(state_dir: Option<&Path>) -> Self {
        let path = |name| env::value(name).map(PathBuf::from);
        let paths = JupyterPaths::new(&PathInputs {
            data_dir: path(env::JUPYTER_DATA_DIR),
            runtime_dir: path(env::JUPYTER_RUNTIME_DIR),
            xdg_data_home: path(env::XDG_DATA_HOME),
            home: path(env::HOME),
            ..PathInputs::default()
        });
        Self {
            runtime_dir: paths.runtime_dir,
            records: state_dir.map(WrittenRecords::new),
        }
    }

    /// Uses the servers whose records are in this directory: the environment of a host is not that of its clients.
    pub fn guard(&self, runtime_dir: Option<PathBuf>) -> Arc<dyn WriteGuard> {
        let records = self.records.clone();
        Arc::new(Self {
            runtime_dir,
            records,
        })
    }

    /// Jupyter's runtime directory.
    pub fn runtime_dir(&self) -> Option<&Path> {
        self.runtime_dir.as_deref()
    }

    /// Asks the servers about a notebook.
    pub fn locate(&self, path: &Path) -> Located {
        let Some(runtime_dir) = &self.runtime_dir else {
            return Located::default();
        };
        locate(runtime_dir, path, SERVERS_TIMEOUT)
    }

    /// Reports, once, that an earlier write to a notebook has been overwritten. Costs one failed `open` if there was none.
    pub fn overwritten(&self, path: &Path) -> Option<Notice> {
        let records = self.records.as_ref()?;
        let real = fs::canonicalize(path).ok()?;
        let record = records.find(&real)?;
        if !record.is_overwritten(&Content::read(path)?) {
            return None;
        }
        records.remove(&real);
        Some(record.to_notice())
    }

    /// Remembers a write to a notebook that a page has open, when it is done.
    fn remember(&self, path: &Path, server: String) -> Option<Box<dyn FnOnce()>> {
        let records = self.records.clone()?;
        let real = fs::canonicalize(path).ok()?;
        let before = Content::read(path)?;
        // Not by its real path, which may lead to another file by then.
        let path = path.to_owned();
        Some(Box::new(move || {
            let Some(after) = Content::read(&path) else {
                return;
            };
            let previous = records.find(&real);
            let record = WrittenRecord::new(&real, server, previous, &before, &after);
            if let Err(error) = records.store(&record) {
                debug!(path = %real.display(), %error, "write not remembered");
            }
        }))
    }

    /// Forgets writes to a notebook that no page has open any more, when the next one is done.
    fn forget(&self, path: &Path) -> Option<Box<dyn FnOnce()>> {
        let records = self.records.clone()?;
        let path = fs::canonicalize(path).ok()?;
        records.find(&path)?;
        Some(Box::new(move || records.remove(&path)))
    }
}

impl WriteGuard for OpenNotebooks {
    fn before_write(&self, path: &Path, force: bool) -> Result<WritePermit, WriteRefusal> {
        let located = self.locate(path);
        let mut notices = Vec::from_iter(self.overwritten(path));
        let mut page_server = None;
        for open in &located.open {
            let server = open.url.clone();
            match (open.room, force) {
                (true, false) => return Err(WriteRefusal { server }),
                (true, true) => notices.push(Notice::OpenInRoom { server }),
                (false, _) if open.has_page() => {
                    page_server = Some(server.clone());
                    notices.push(Notice::OpenInPage { server });
                }
                (false, _) => {}
            }
        }
        notices.extend(located.unanswered.iter().map(to_notice));
        Ok(WritePermit {
            notices,
            on_written: match page_server {
                Some(server) => self.remember(path, server),
                None => self.forget(path),
            },
        })
    }
}

/// The notice that a server could not be asked, as text.
pub fn describe_unanswered(server: &Unanswered) -> String {
    let notices = cellwright_diagnostics::notice::describe(&[to_notice(server)]);
    notices.into_iter().map(|notice| notice.text).collect()
}

fn to_notice(server: &Unanswered) -> Notice {
    Notice::ServerNotAsked {
        server: server.url.clone(),
        reason: describe_reason(&server.reason),
    }
}

/// Why a server could not be asked.
fn describe_reason(reason: &UnansweredReason) -> String {
    match reason {
        UnansweredReason::TimedOut => "it does not reply".to_owned(),
        UnansweredReason::Refused => "it accepts no token, only a password or a login".to_owned(),
        UnansweredReason::Tls => "it uses TLS, which is not supported yet".to_owned(),
        UnansweredReason::NotVerifiable => {
            "this system does not report which process has its port".to_owned()
        }
        UnansweredReason::TooMany => "there are too many servers to ask all of them".to_owned(),
        UnansweredReason::Failed(cause) => cause.clone(),
    }
}
