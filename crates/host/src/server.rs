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
use super::log::{Level, Log};
use super::record::HostRecord;
use super::service::HostService;
use signals::Signals;

/// How many clients there may be; more have to wait.
const CLIENTS_MAX: usize = 512;

/// How long nobody is let in when there are no descriptors left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How often the folder is looked at. Shorter than a command waits for a host to be ready.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long ending everything may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last answers may take after that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// What the server and all its clients share.
struct Shared {
    record: HostRecord,
    begun: Instant,
    service: Arc<HostService>,
    log: Arc<Log>,
    /// How many clients there are.
    clients: AtomicUsize,
    /// How many requests are being answered.
    busy: AtomicUsize,
    /// Whoever asks for the end waits for an answer.
    stops: mpsc::UnboundedSender<oneshot::Sender<Map<String, Value>>>,
}

/// A living host.
pub(super) struct Server {
    pub(super) place: HostFiles,
    pub(super) service: Arc<HostService>,
    pub(super) log: Arc<Log>,
    /// How long it stays with nothing to do; `None` for ever.
    pub(super) idle_exit: Option<Duration>,
}

impl Server {
    /// Serves until told to end or nothing is to be done. `ready` is called once clients can come.
    pub(super) async fn serve(
        mut self,
        listener: StdListener,
        ready: impl FnOnce(),
    ) -> io::Result<()> {
        let mut listener = UnixListener::from_std(listener)?;
        let mut signals = Signals::new()?;
        let (stops, mut asked) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            record: self.place.record().clone(),
            begun: Instant::now(),
            service: Arc::clone(&self.service),
            log: Arc::clone(&self.log),
            clients: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            stops,
        });
        ready();
        let mut clients = JoinSet::new();
        let mut askers = Vec::new();
        let mut next_look = Instant::now() + FILE_CHECK_INTERVAL;
        let mut idle = IdleTimer::new(self.idle_exit);
        let mut door = Acceptor::new();
        let why = loop {
            tokio::select! {
                stream = door.next(&listener, &self.log), if clients.len() < CLIENTS_MAX => {
                    idle.reset();
                    if let Some(stream) = stream && self.admits(&stream) {
                        debug!(clients = clients.len() + 1, "client connected");
                        clients.spawn(client::serve(stream, Arc::clone(&shared)));
                    }
                }
                Some(ended) = clients.join_next(), if !clients.is_empty() => {
                    if let Err(error) = ended {
                        self.log.write(Level::Error, &format!("a client's task failed: {error}"));
                    }
                }
                Some(asker) = asked.recv() => {
                    askers.push(asker);
                    break "was asked to";
                }
                name = signals.next() => break name,
                () = idle.tick() => {
                    if idle.has_expired(clients.is_empty() && self.service.is_idle()) {
                        break "had nothing to do";
                    }
                }
                () = sleep_until(next_look) => {
                    next_look = Instant::now() + FILE_CHECK_INTERVAL;
                    match self.place.check() {
                        Ok(FileCheck::Fine) => {}
                        Ok(FileCheck::Mended) => self.log.write(Level::Warn, "files were missing"),
                        Ok(FileCheck::Rebound(new)) => {
                            self.log.write(Level::Warn, "the socket was missing");
                            listener = UnixListener::from_std(new)?;
                        }
                        Ok(FileCheck::Lost) => break "was replaced by another",
                        Err(error) => self.log.write(Level::Error, &error_chain::format(&error)),
                    }
                }
            }
        };
        self.log.write(Level::Info, &format!("ending: {why}"));
        drop(listener);
        // Whoever comes now finds nobody and starts another, which waits for the lock.
        self.place.withdraw();
        let ended = timeout(SHUTDOWN_TIMEOUT, self.service.shut_down()).await;
        if ended.is_err() {
            self.log.write(Level::Warn, "not everything ended in time");
        }
        let ended = ended.unwrap_or_default();
        asked.close();
        while let Ok(asker) = asked.try_recv() {
            askers.push(asker);
        }
        for asker in askers {
            // It may have gone without waiting.
            asker.send(ended.clone()).ok();
        }
        let until = Instant::now() + DRAIN_TIMEOUT;
        while shared.busy.load(Ordering::Acquire) > 0 && Instant::now() < until {
            sleep(Duration::from_millis(5)).await;
        }
        clients.shutdown().await;
        self.log.write(Level::Info, "ended");
        Ok(())
    }

    /// Whether a client is our user.
    fn admits(&self, stream: &UnixStream) -> bool {
        match foreign_peer(stream) {
            Ok(None) => true,
            Ok(Some(user)) => {
                let words = format!("a client of user {user} was turned away");
                self.log.write(Level::Warn, &words);
                false
            }
            Err(_) => false,
        }
    }
}

/// Where clients come in.
struct Acceptor {
    /// Closed until then.
    closed_until: Option<Instant>,
    told: bool,
}

impl Acceptor {
    fn new() -> Self {
        Self {
            closed_until: None,
            told: false,
        }
    }

    /// The next client; `None` if that failed, after which nobody is let in for a moment.
    async fn next(&mut self, listener: &UnixListener, log: &Log) -> Option<UnixStream> {
        if let Some(until) = self.closed_until {
            sleep_until(until).await;
            self.closed_until = None;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                self.told = false;
                Some(stream)
            }
            Err(error) => {
                // It would fail again at once, and again.
                self.closed_until = Some(Instant::now() + ACCEPT_RETRY_DELAY);
                if !self.told {
                    self.told = true;
                    log.write(Level::Error, &format!("no client can come in: {error}"));
                }
                None
            }
        }
    }
}

/// Since when there has been nothing to do.
struct IdleTimer {
    longest: Option<Duration>,
    since: Option<Instant>,
    next: Instant,
}

impl IdleTimer {
    fn new(longest: Option<Duration>) -> Self {
        Self {
            longest,
            since: None,
            next: Instant::now(),
        }
    }

    /// Somebody came.
    fn reset(&mut self) {
        self.since = None;
    }

    /// When to look again; never if the host is to stay. Cancel-safe.
    async fn tick(&self) {
        match self.longest {
            Some(_) => sleep_until(self.next).await,
            None => std::future::pending().await,
        }
    }

    /// Whether there has been nothing to do for long enough.
    fn has_expired(&mut self, idle: bool) -> bool {
        let now = Instant::now();
        let longest = self.longest.unwrap_or(Duration::MAX);
        self.next = now + (longest / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
        if !idle {
            self.since = None;
            return false;
        }
        now - *self.since.get_or_insert(now) >= longest
    }
}
