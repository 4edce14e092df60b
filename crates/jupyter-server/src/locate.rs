//! [`locate`]: asks the servers of this machine whether they have a notebook open.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cellwright_stdext::hex;
use sha2::{Digest, Sha256};
use tracing::debug;

use crate::endpoint::{self, ConnectError};
use crate::record::{ServerRecord, read_records};
use crate::rest::{Client, FileHash, RestError, Room, Session};

/// How often the hashes are compared again if the file changes meanwhile.
const HASH_ATTEMPTS: usize = 3;

/// What the servers of this machine reply about a notebook.
#[derive(Debug, Default)]
pub struct Located {
    /// The servers that have the notebook open.
    pub open: Vec<OpenNotebook>,
    /// The servers below whose directory the notebook is, and which could not be asked.
    pub unanswered: Vec<Unanswered>,
}

/// A notebook that a server has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenNotebook {
    /// Address of the server, without its token.
    pub url: String,
    /// Process id of the server.
    pub pid: i32,
    /// Path of the notebook below the server's directory.
    pub path: String,
    /// Whether a collaboration room has the notebook. What is typed there is in the file only after a pause.
    pub room: bool,
    /// The kernel of the notebook's session.
    pub kernel: Option<SessionKernel>,
}

impl OpenNotebook {
    /// Whether a page is connected to the kernel of the notebook.
    pub fn has_page(&self) -> bool {
        self.kernel
            .as_ref()
            .is_some_and(|kernel| kernel.connections > 0)
    }
}

/// The kernel of a notebook's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKernel {
    /// Its id; `kernel-ID.json` in the runtime directory is its connection file.
    pub id: String,
    /// The name of its kernelspec.
    pub name: String,
    /// Its state: `idle`, `busy`, `starting`.
    pub state: Option<String>,
    /// The number of connected pages.
    pub connections: u64,
}

/// A server that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Address of the server, without its token; `None` for servers beyond the limit.
    pub url: Option<String>,
    /// Why it could not be asked.
    pub reason: UnansweredReason,
}

/// Why a server could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnansweredReason {
    /// It did not reply in time.
    TimedOut,
    /// It does not accept the token of its record, as with a password.
    Refused,
    /// It speaks TLS.
    Tls,
    /// The system does not report which process has its port.
    NotVerifiable,
    /// There are too many servers.
    TooMany,
    /// Another error.
    Failed(String),
}

/// Asks all servers whose records are in `runtime_dir` about the notebook, at the same time and for at most `timeout`.
pub fn locate(runtime_dir: &Path, notebook: &Path, timeout: Duration) -> Located {
    let mut located = Located::default();
    let found = read_records(runtime_dir);
    if found.records.is_empty() {
        return located;
    }
    let Ok(notebook) = fs::canonicalize(notebook) else {
        return located;
    };
    if found.skipped > 0 {
        located.unanswered.push(Unanswered {
            url: None,
            reason: UnansweredReason::TooMany,
        });
    }
    let deadline = Instant::now() + timeout;
    let (sender, replies) = mpsc::channel();
    let mut waiting = Vec::new();
    for record in found.records {
        let (sender, query) = (sender.clone(), Query::new(record, &notebook, deadline));
        let summary = (query.record.url.clone(), query.is_below_root());
        // Connecting to a Unix socket has no time limit.
        let spawned = std::thread::Builder::new()
            .name("jupyter-server".to_owned())
            .spawn(move || {
                let reply = query.ask();
                // After the deadline there is no receiver.
                sender.send((query.record.url.clone(), reply)).ok();
            });
        if spawned.is_ok() {
            waiting.push(summary);
        }
    }
    drop(sender);
    let remaining = || deadline.saturating_duration_since(Instant::now());
    // The deadline of the connections is the same: give them the time to report it.
    while let Ok((url, reply)) = replies.recv_timeout(remaining() + Duration::from_millis(50)) {
        let at = waiting.iter().position(|(waiting, _)| *waiting == url);
        let is_below_root = at.is_some_and(|at| waiting.swap_remove(at).1);
        match reply {
            Ok(open) => located.open.extend(open),
            Err(reason) if is_below_root => located.unanswered.push(Unanswered {
                url: Some(url),
                reason,
            }),
            Err(reason) => debug!(url, ?reason, "server of other files not asked"),
        }
    }
    let late = waiting
        .into_iter()
        .filter(|(_, is_below_root)| *is_below_root);
    located.unanswered.extend(late.map(|(url, _)| Unanswered {
        url: Some(url),
        reason: UnansweredReason::TimedOut,
    }));
    located
}

/// A question to one server.
struct Query {
    record: ServerRecord,
    /// The server's directory, without links.
    root_dir: Option<PathBuf>,
    /// The notebook, without links.
    notebook: PathBuf,
    deadline: Instant,
}

impl Query {
    fn new(record: ServerRecord, notebook: &Path, deadline: Instant) -> Self {
        Self {
            root_dir: fs::canonicalize(&record.root_dir).ok(),
            record,
            notebook: notebook.to_owned(),
            deadline,
        }
    }

    /// The path of the notebook below the server's directory.
    fn relative_path(&self) -> Option<String> {
        let relative = self.notebook.strip_prefix(self.root_dir.as_ref()?).ok()?;
        Some(relative.to_str()?.to_owned())
    }

    fn is_below_root(&self) -> bool {
        self.relative_path().is_some()
    }

    fn ask(&self) -> Result<Option<OpenNotebook>, UnansweredReason> {
        if self.root_dir.is_none() {
            return Ok(None);
        }
        if self.record.secure {
            return Err(UnansweredReason::Tls);
        }
        let timeout = self.deadline.saturating_duration_since(Instant::now());
        let stream = match endpoint::connect(&self.record, timeout) {
            Ok(stream) => stream,
            Err(ConnectError::Stale) => {
                debug!(record = ?self.record, "stale record");
                return Ok(None);
            }
            Err(ConnectError::NotVerifiable) => return Err(UnansweredReason::NotVerifiable),
            Err(ConnectError::Io(error)) => return Err(RestError::Io(error).into()),
        };
        let mut client = Client::new(&self.record, stream, self.deadline)?;
        self.ask_client(&mut client).map_err(Into::into)
    }

    fn ask_client(&self, client: &mut Client) -> Result<Option<OpenNotebook>, RestError> {
        let sessions = client.sessions()?;
        // A link below the server's directory is another path of the same file.
        let session = sessions
            .into_iter()
            .filter(|session| self.is_session_of_notebook(session))
            .max_by_key(|session| session.kernel.as_ref().map(|kernel| kernel.connections));
        let path = match &session {
            Some(session) => session_path(session).to_owned(),
            None => match self.relative_path() {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        let kernel = session.and_then(|session| session.kernel);
        let kernel = kernel.map(|kernel| SessionKernel {
            id: kernel.id,
            name: kernel.name,
            state: kernel.execution_state,
            connections: kernel.connections,
        });
        let has_page = kernel.as_ref().is_some_and(|kernel| kernel.connections > 0);
        let room = match client.room(&path)? {
            Room::Live => true,
            Room::None => false,
            Room::Unknown => has_page,
            // `jupyter_server_documents` has a room for each session, and counts no pages.
            Room::Unsupported => kernel.is_some() && client.has_server_documents()?,
        };
        if !room && kernel.is_none() {
            return Ok(None);
        }
        // The server's contents may be other than the files below its directory.
        if !self.has_same_content(client, &path)? {
            return Ok(None);
        }
        Ok(Some(OpenNotebook {
            url: self.record.url.clone(),
            pid: self.record.pid,
            path,
            room,
            kernel,
        }))
    }

    fn is_session_of_notebook(&self, session: &Session) -> bool {
        let path = session_path(session);
        let root = self.root_dir.as_ref();
        root.and_then(|root| fs::canonicalize(root.join(path)).ok())
            .is_some_and(|path| path == self.notebook)
    }

    /// Whether the server's file has the content of the notebook. A writer may change it meanwhile.
    fn has_same_content(&self, client: &mut Client, path: &str) -> Result<bool, RestError> {
        for _ in 0..HASH_ATTEMPTS {
            let before = hash_file(&self.notebook)?;
            match client.file_hash(path)? {
                FileHash::Sha256(hash) if hash != before => {}
                FileHash::NotFound => return Ok(false),
                // Without hashes, the path must do.
                FileHash::Sha256(_) | FileHash::Unsupported => return Ok(true),
            }
            if hash_file(&self.notebook)? == before {
                return Ok(false);
            }
        }
        // It changes all the time, so a program works on it.
        Ok(true)
    }
}

/// The path of a session, without the name of the drive that older versions of jupyter-collaboration add.
fn session_path(session: &Session) -> &str {
    session.path.strip_prefix("RTC:").unwrap_or(&session.path)
}

/// The SHA-256 of a file, in hexadecimal.
fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

impl From<RestError> for UnansweredReason {
    fn from(error: RestError) -> Self {
        match error {
            RestError::Io(error) if error.kind() == ErrorKind::TimedOut => Self::TimedOut,
            RestError::Status(401 | 403 | 300..=399) => Self::Refused,
            other => Self::Failed(other.to_string()),
        }
    }
}
