//! The server of a host: accepts connections, checks its files, and shuts down on signals or idleness.

mod client;
mod signals;

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cellwright_stdext::error_chain;
use serde_json::{Map, Value};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;

use super::connection::foreign_peer;
use super::host_files::{FileCheck, HostFiles};
use super::host_record::HostRecord;
use super::log::{Level, Log};
use super::service::HostService;
use signals::Signals;

/// Maximum number of clients. Further clients wait in the queue of the socket.
const CLIENTS_MAX: usize = 512;

/// Delay after a failed accept, for example when no file descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Interval between checks of the files. Shorter than the time a command waits for a host to be ready.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time limit for the shutdown of the service.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the last replies, after the shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// State that the server and all its clients share.
struct Shared {
    record: HostRecord,
    started: Instant,
    service: Arc<HostService>,
    log: Arc<Log>,
    /// Number of connected clients.
    clients: AtomicUsize,
    /// Number of requests in progress.
    busy: AtomicUsize,
    /// Requests to stop, each with the channel for its reply.
    stop_requests: mpsc::UnboundedSender<oneshot::Sender<Map<String, Value>>>,
}

/// A running host.
pub(super) struct Server {
    pub(super) files: HostFiles,
    pub(super) service: Arc<HostService>,
    pub(super) log: Arc<Log>,
    /// Time without work after which the host ends. `None` means never.
    pub(super) idle_exit: Option<Duration>,
}

impl Server {
    /// Serves clients until a stop request, a signal or the idle time ends the host. Calls `ready` when clients can
    /// connect.
    pub(super) async fn serve(
        mut self,
        listener: StdListener,
        ready: impl FnOnce(),
    ) -> io::Result<()> {
        let mut listener = UnixListener::from_std(listener)?;
        let mut signals = Signals::new()?;
        let (stop_requests, mut stop_receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            record: self.files.record().clone(),
            started: Instant::now(),
            service: Arc::clone(&self.service),
            log: Arc::clone(&self.log),
            clients: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            stop_requests,
        });
        ready();
        let mut clients = JoinSet::new();
        let mut stop_replies = Vec::new();
        let mut next_check = Instant::now() + FILE_CHECK_INTERVAL;
        let mut idle = IdleTimer::new(self.idle_exit);
        let mut acceptor = Acceptor::new();
        let reason = loop {
            tokio::select! {
                stream = acceptor.next(&listener, &self.log), if clients.len() < CLIENTS_MAX => {
                    idle.reset();
                    if let Some(stream) = stream && self.accepts(&stream) {
                        debug!(clients = clients.len() + 1, "client connected");
                        clients.spawn(client::serve(stream, Arc::clone(&shared)));
                    }
                }
                Some(ended) = clients.join_next(), if !clients.is_empty() => {
                    if let Err(error) = ended {
                        self.log.write(Level::Error, &format!("the task of a client failed: {error}"));
                    }
                }
                Some(reply) = stop_receiver.recv() => {
                    stop_replies.push(reply);
                    break "stop requested";
                }
                name = signals.next() => break name,
                () = idle.tick() => {
                    if idle.has_expired(clients.is_empty() && self.service.is_idle()) {
                        break "idle";
                    }
                }
                () = sleep_until(next_check) => {
                    next_check = Instant::now() + FILE_CHECK_INTERVAL;
                    match self.files.check() {
                        Ok(FileCheck::Unchanged) => {}
                        Ok(FileCheck::Restored) => self.log.write(Level::Warn, "restored missing files"),
                        Ok(FileCheck::SocketRestored(new)) => {
                            self.log.write(Level::Warn, "restored the missing socket");
                            listener = UnixListener::from_std(new)?;
                        }
                        Ok(FileCheck::LockLost) => break "replaced by another host",
                        Err(error) => self.log.write(Level::Error, &error_chain::format(&error)),
                    }
                }
            }
        };
        self.log.write(Level::Info, &format!("ending: {reason}"));
        drop(listener);
        // A command that comes now finds no host and starts another, which waits for the lock.
        self.files.remove_files();
        let ended = timeout(SHUTDOWN_TIMEOUT, self.service.shut_down()).await;
        if ended.is_err() {
            self.log
                .write(Level::Warn, "the shutdown exceeded its time limit");
        }
        let ended = ended.unwrap_or_default();
        stop_receiver.close();
        while let Ok(reply) = stop_receiver.try_recv() {
            stop_replies.push(reply);
        }
        for reply in stop_replies {
            // The client may have disconnected.
            reply.send(ended.clone()).ok();
        }
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while shared.busy.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(5)).await;
        }
        clients.shutdown().await;
        self.log.write(Level::Info, "ended");
        Ok(())
    }

    /// Whether a client belongs to the user of the host.
    fn accepts(&self, stream: &UnixStream) -> bool {
        match foreign_peer(stream) {
            Ok(None) => true,
            Ok(Some(user)) => {
                let message = format!("rejected a client of user {user}");
                self.log.write(Level::Warn, &message);
                false
            }
            Err(_) => false,
        }
    }
}

/// Accepts clients, with a delay after a failure.
struct Acceptor {
    /// End of the delay after a failure.
    retry_at: Option<Instant>,
    /// Whether the current series of failures is in the log.
    is_logged: bool,
}

impl Acceptor {
    fn new() -> Self {
        Self {
            retry_at: None,
            is_logged: false,
        }
    }

    /// Accepts the next client. Returns `None` on failure; the next call then starts with a delay.
    async fn next(&mut self, listener: &UnixListener, log: &Log) -> Option<UnixStream> {
        if let Some(time) = self.retry_at {
            sleep_until(time).await;
            self.retry_at = None;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                self.is_logged = false;
                Some(stream)
            }
            Err(error) => {
                // Without a delay, accept would fail in a busy loop.
                self.retry_at = Some(Instant::now() + ACCEPT_RETRY_DELAY);
                if !self.is_logged {
                    self.is_logged = true;
                    log.write(Level::Error, &format!("cannot accept clients: {error}"));
                }
                None
            }
        }
    }
}

/// Measures the time without work.
struct IdleTimer {
    /// Idle time after which the host ends. `None` means never.
    limit: Option<Duration>,
    /// Start of the idle time.
    since: Option<Instant>,
    next_check: Instant,
}

impl IdleTimer {
    fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            since: None,
            next_check: Instant::now(),
        }
    }

    /// Restarts the idle time, because a client connected.
    fn reset(&mut self) {
        self.since = None;
    }

    /// Waits until the next check. Never returns without a limit. Cancel-safe.
    async fn tick(&self) {
        match self.limit {
            Some(_) => sleep_until(self.next_check).await,
            None => std::future::pending().await,
        }
    }

    /// Whether the idle time has reached the limit. `idle` is the current state.
    fn has_expired(&mut self, idle: bool) -> bool {
        let now = Instant::now();
        let limit = self.limit.unwrap_or(Duration::MAX);
        let delay = (limit / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
        self.next_check = now + delay;
        if !idle {
            self.since = None;
            return false;
        }
        now - *self.since.get_or_insert(now) >= limit
    }
}
