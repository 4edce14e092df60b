//! [`Bridge`]: an HTTP server on the loopback address, through which code in a kernel calls verbs.
//!
//! A call is a `POST /v1/tool` with a bearer token that belongs to one session. The bridge executes it only while a cell
//! of that session runs, and cancels it when the cell ends. The verb runs as a child process of this binary. Only verbs
//! that do not reach other sessions can be called.

mod call;
#[cfg(feature = "fuzz")]
mod fuzz;
mod http;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cellwright_kernel::StopSignal;
use cellwright_stdext::LockExt;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::secret::{constant_time_eq, random_token};

#[cfg(feature = "fuzz")]
pub use fuzz::request_status;

/// How many calls of one session run at once; others wait.
const CONCURRENT_CALLS_MAX: usize = 16;

/// The server and its sessions. The server stops when this is dropped.
pub struct Bridge {
    url: String,
    sessions: Arc<BridgeSessions>,
    build_command: BuildCommand,
    /// Stops the server when it is dropped.
    _server: oneshot::Sender<()>,
}

/// The command line of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BridgeCommand {
    /// Arguments of this binary.
    pub arguments: Vec<String>,
    /// Text for the standard input of the command.
    pub stdin: Option<String>,
}

/// Builds the command line of a call from the verb, its named and its positional arguments. The error describes an
/// invalid call. The front end that defines the command line provides the function.
pub type BuildCommand = fn(&str, &Map<String, Value>, &[Value]) -> Result<BridgeCommand, String>;

/// The context in which the calls of a session run.
pub struct CallContext {
    /// The name of the session.
    pub session: String,
    /// The environment variables of the verbs.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory of calls that name none.
    pub cwd: PathBuf,
}

impl CallContext {
    /// For a session whose kernel starts in `cwd` with these environment variables.
    pub fn new(session: &str, env: &[(OsString, OsString)], cwd: &Path) -> Self {
        Self {
            session: session.to_owned(),
            env: env.to_vec(),
            cwd: cwd.to_owned(),
        }
    }
}

/// The access of one session. The token is revoked when this is dropped.
pub struct SessionAccess {
    session: Arc<BridgeSession>,
    sessions: Arc<BridgeSessions>,
}

/// Marks a cell as running. Calls are accepted until this is dropped.
pub struct CellGuard {
    session: Arc<BridgeSession>,
    number: u64,
}

/// A session with access to the bridge.
struct BridgeSession {
    token: String,
    context: CallContext,
    build_command: BuildCommand,
    /// The running cell and its stop signal.
    running_cell: watch::Sender<Option<RunningCell>>,
    /// How many cells have started: a call must not mistake the next cell for its own.
    cell_count: AtomicU64,
    call_permits: Semaphore,
}

#[derive(Clone)]
struct RunningCell {
    number: u64,
    stop: StopSignal,
}

#[derive(Default)]
struct BridgeSessions(Mutex<Vec<Arc<BridgeSession>>>);

impl BridgeSessions {
    /// Returns the session with this token. Compares the tokens of all sessions, each in constant time.
    fn with_token(&self, token: &[u8]) -> Option<Arc<BridgeSession>> {
        let sessions = self.0.lock_ignoring_poison();
        let mut found = None;
        for session in sessions.iter() {
            if constant_time_eq(session.token.as_bytes(), token) {
                found = Some(Arc::clone(session));
            }
        }
        found
    }
}

impl Bridge {
    /// Starts the server on a port that the system selects.
    #[expect(clippy::unused_async, reason = "it needs a tokio runtime")]
    pub async fn start(build_command: BuildCommand) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let sessions = Arc::new(BridgeSessions::default());
        let (server, end) = oneshot::channel::<()>();
        tokio::spawn(http::serve(listener, Arc::clone(&sessions), end));
        Ok(Self {
            url,
            sessions,
            build_command,
            _server: server,
        })
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Gives a session access, with a new token.
    pub fn register(&self, context: CallContext) -> io::Result<SessionAccess> {
        let session = Arc::new(BridgeSession {
            token: random_token()?,
            context,
            build_command: self.build_command,
            running_cell: watch::Sender::new(None),
            cell_count: AtomicU64::new(0),
            call_permits: Semaphore::new(CONCURRENT_CALLS_MAX),
        });
        let mut sessions = self.sessions.0.lock_ignoring_poison();
        sessions.push(Arc::clone(&session));
        drop(sessions);
        Ok(SessionAccess {
            session,
            sessions: Arc::clone(&self.sessions),
        })
    }
}

impl SessionAccess {
    /// The bearer token of the session's calls.
    pub fn token(&self) -> &str {
        &self.session.token
    }

    /// Marks a cell as running. Calls are accepted until the guard is dropped or the cell is stopped.
    pub fn begin_cell(&self, stop: &StopSignal) -> CellGuard {
        let number = self.session.cell_count.fetch_add(1, Ordering::Relaxed);
        let stop = stop.clone();
        self.session
            .running_cell
            .send_replace(Some(RunningCell { number, stop }));
        CellGuard {
            session: Arc::clone(&self.session),
            number,
        }
    }
}

impl Drop for SessionAccess {
    fn drop(&mut self) {
        let mut sessions = self.sessions.0.lock_ignoring_poison();
        sessions.retain(|session| !Arc::ptr_eq(session, &self.session));
        drop(sessions);
        self.session.running_cell.send_replace(None);
    }
}

impl Drop for CellGuard {
    fn drop(&mut self) {
        let number = self.number;
        self.session.running_cell.send_if_modified(|cell| {
            let is_own = cell
                .as_ref()
                .is_some_and(|running| running.number == number);
            if is_own {
                *cell = None;
            }
            is_own
        });
    }
}

#[cfg(test)]
mod tests;
