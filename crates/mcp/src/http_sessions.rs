//! [`HttpSessions`]: the MCP sessions of clients over HTTP. Their number is limited, and those that are not used end.
//!
//! A session is in use while one of its requests is answered, one of its streams is open, one of its calls runs, or one
//! of its runs continues. The kernels of a client end with its session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cellwright_stdext::LockExt;
use futures_util::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::Instant;

use super::server::Server;

/// The longest interval between two searches for sessions that are not used.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Limits of the MCP sessions over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Maximum number of sessions.
    pub sessions_max: usize,
    /// Time after which a session that is not used ends; `None` means never.
    pub idle_timeout: Option<Duration>,
}

/// The sessions of all clients.
pub(crate) struct HttpSessions {
    sessions: LocalSessionManager,
    uses: SessionUses,
    limits: SessionLimits,
}

impl HttpSessions {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        let mut sessions = LocalSessionManager::default();
        // It does not know about calls and streams.
        sessions.session_config.keep_alive = None;
        Self {
            sessions,
            uses: SessionUses::default(),
            limits,
        }
    }

    pub(crate) fn uses(&self) -> &SessionUses {
        &self.uses
    }

    pub(crate) fn limits(&self) -> &SessionLimits {
        &self.limits
    }

    /// Ends the session that has not been used longest if there is no room for another. Returns whether there is room.
    pub(crate) async fn make_room(&self) -> bool {
        while self.uses.count() >= self.limits.sessions_max {
            let mut ended = false;
            for (id, _) in self.uses.unused() {
                ended = self.end_unused(&id).await;
                if ended {
                    break;
                }
            }
            if !ended {
                return false;
            }
        }
        true
    }

    /// Ends sessions that exceed the idle timeout, periodically. Never returns if there is a timeout.
    pub(crate) async fn end_idle(&self) {
        let Some(limit) = self.limits.idle_timeout else {
            return;
        };
        loop {
            tokio::time::sleep(IDLE_CHECK_INTERVAL.min(limit)).await;
            for (id, last_use) in self.uses.unused() {
                if last_use.elapsed() >= limit {
                    self.end_unused(&id).await;
                }
            }
        }
    }

    /// Ends a session unless it is in use. Returns whether it has ended.
    async fn end_unused(&self, id: &SessionId) -> bool {
        if let Some(server) = self.uses.server(id)
            && server.has_active_runs().await
        {
            // The run counts as a use: its client returns for the result.
            self.uses.touch(id);
            return false;
        }
        if !self.uses.remove_unused(id) {
            return false;
        }
        // It fails only if the session has ended by itself.
        self.sessions.close_session(id).await.ok();
        true
    }
}

/// Why a session could not be used.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// There are as many sessions as the limit allows, and all are in use.
    Full,
    Local(LocalSessionManagerError),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("there are too many sessions"),
            Self::Local(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<LocalSessionManagerError> for SessionError {
    fn from(error: LocalSessionManagerError) -> Self {
        Self::Local(error)
    }
}

impl SessionManager for HttpSessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        // Another client may have taken the room that was made for this one.
        if self.uses.count() >= self.limits.sessions_max {
            return Err(SessionError::Full);
        }
        let (id, transport) = self.sessions.create_session().await?;
        self.uses.add(&id);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let _used = self.uses.begin(id, None);
        Ok(self.sessions.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.sessions.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.uses.remove(id);
        Ok(self.sessions.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let used = self.uses.begin(id, None);
        let stream = self.sessions.create_stream(id, message).await?;
        Ok(hold(stream, used))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        let _used = self.uses.begin(id, None);
        Ok(self.sessions.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let used = self.uses.begin(id, None);
        let stream = self.sessions.create_standalone_stream(id).await?;
        Ok(hold(stream, used))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let used = self.uses.begin(id, None);
        let stream = self.sessions.resume(id, last_event_id).await?;
        Ok(hold(stream, used))
    }
}

/// Keeps a session in use until the stream is dropped.
fn hold<S: Stream>(stream: S, used: Option<SessionUse>) -> impl Stream<Item = S::Item> {
    stream.map(move |item| {
        let _held = &used;
        item
    })
}

/// Which sessions are in use. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct SessionUses(Arc<Mutex<HashMap<SessionId, Uses>>>);

struct Uses {
    /// Number of requests, streams and calls.
    count: usize,
    last: Instant,
    /// The server of the client, once it has called a tool.
    server: Option<Server>,
}

impl SessionUses {
    /// Marks a session as in use until the result is dropped; `None` if there is no such session. `server` is the server
    /// of the client.
    pub(crate) fn begin(&self, id: &SessionId, server: Option<&Server>) -> Option<SessionUse> {
        let mut sessions = self.lock();
        let uses = sessions.get_mut(id)?;
        uses.count += 1;
        if uses.server.is_none() {
            uses.server = server.cloned();
        }
        Some(SessionUse {
            uses: self.clone(),
            id: id.clone(),
        })
    }

    fn add(&self, id: &SessionId) {
        let uses = Uses {
            count: 0,
            last: Instant::now(),
            server: None,
        };
        self.lock().insert(id.clone(), uses);
    }

    fn count(&self) -> usize {
        self.lock().len()
    }

    fn server(&self, id: &SessionId) -> Option<Server> {
        self.lock().get(id)?.server.clone()
    }

    fn touch(&self, id: &SessionId) {
        if let Some(uses) = self.lock().get_mut(id) {
            uses.last = Instant::now();
        }
    }

    /// The sessions that are not in use and their last use, the earliest first.
    fn unused(&self) -> Vec<(SessionId, Instant)> {
        let sessions = self.lock();
        let unused = sessions.iter().filter(|(_, uses)| uses.count == 0);
        let mut unused: Vec<(SessionId, Instant)> =
            unused.map(|(id, uses)| (id.clone(), uses.last)).collect();
        unused.sort_by_key(|(_, last)| *last);
        unused
    }

    fn remove(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    /// Removes a session unless it is in use.
    fn remove_unused(&self, id: &SessionId) -> bool {
        let mut sessions = self.lock();
        let unused = sessions.get(id).is_some_and(|uses| uses.count == 0);
        unused && sessions.remove(id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Uses>> {
        self.0.lock_ignoring_poison()
    }
}

/// A session that is in use.
pub(crate) struct SessionUse {
    uses: SessionUses,
    id: SessionId,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(uses) = self.uses.lock().get_mut(&self.id) {
            uses.count -= 1;
            uses.last = Instant::now();
        }
    }
}
