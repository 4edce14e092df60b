//! A proxy on loopback that passes HTTP/1.1 and WebSocket traffic to a server and injects faults on request.
//!
//! It has its own thread, so that tests with and without a runtime use it alike. Its rules can change while
//! connections are open. For `https`, put a [`TlsFront`](crate::TlsFront) before it.

mod connection;
mod http;
mod rule;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use self::rule::{Direction, Fault, Phase, Rule};
use crate::service::Service;

/// A running proxy. It ends with all its connections when it is dropped.
pub struct FaultProxy {
    service: Service,
    shared: Arc<Shared>,
}

/// A request that the proxy has seen.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Request line and headers as the client sent them.
    pub head: String,
}

/// What the connections share.
struct Shared {
    upstream: SocketAddr,
    rules: watch::Sender<Vec<Rule>>,
    /// Number of times that all connections were closed.
    cuts: watch::Sender<usize>,
    requests: watch::Sender<Vec<SeenRequest>>,
    accepted: AtomicUsize,
    open: AtomicUsize,
}

impl FaultProxy {
    /// Starts a proxy without faults before the server at `upstream`.
    pub fn start(upstream: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            upstream,
            rules: watch::Sender::new(Vec::new()),
            cuts: watch::Sender::new(0),
            requests: watch::Sender::new(Vec::new()),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        let service = Service::start({
            let shared = Arc::clone(&shared);
            move |listener| serve(listener, shared)
        });
        Self { service, shared }
    }

    /// Address and port of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// `url` of the server with the address of the proxy.
    pub fn url(&self, url: &str) -> String {
        replace_authority(url, self.address())
    }

    /// Replaces all rules. The first rule that applies to a request decides.
    pub fn set(&self, rules: impl IntoIterator<Item = Rule>) {
        self.shared.rules.send_replace(rules.into_iter().collect());
    }

    /// Removes all rules. Stalled data moves on.
    pub fn clear(&self) {
        self.set([]);
    }

    /// Closes all connections once.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|count| *count += 1);
    }

    /// Number of connections that the proxy has accepted.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Number of connections that are open now.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// All requests in the order of their arrival.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.shared.requests.borrow().clone()
    }

    /// Number of requests of a phase.
    pub fn count(&self, phase: &Phase) -> usize {
        count(&self.shared.requests.borrow(), phase)
    }

    /// Waits until `wanted` requests of a phase were seen since the start.
    pub async fn wait_for(&self, phase: &Phase, wanted: usize) {
        let mut requests = self.shared.requests.subscribe();
        let seen = requests.wait_for(|all| count(all, phase) >= wanted).await;
        assert!(seen.is_ok(), "the proxy owns the sender");
    }
}

/// `url` with another host and port.
pub(crate) fn replace_authority(url: &str, address: SocketAddr) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let path = rest.find('/').map_or("", |start| &rest[start..]);
    format!("{scheme}://{address}{path}")
}

fn count(requests: &[SeenRequest], phase: &Phase) -> usize {
    let matches = |seen: &&SeenRequest| phase.matches(&seen.method, &seen.target);
    requests.iter().filter(matches).count()
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    tokio::spawn(cut_regularly(Arc::clone(&shared)));
    while let Ok((client, _)) = listener.accept().await {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            shared.open.fetch_add(1, Ordering::SeqCst);
            let mut cuts = shared.cuts.subscribe();
            tokio::select! {
                () = connection::run(client, &shared) => {}
                _ = cuts.changed() => {}
            }
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Obeys the rules with [`Fault::CutEvery`].
async fn cut_regularly(shared: Arc<Shared>) {
    let interval = |rules: &Vec<Rule>| -> Option<Duration> {
        rules.iter().find_map(|rule| match rule.fault {
            Fault::CutEvery(interval) => Some(interval),
            _ => None,
        })
    };
    let mut rules = shared.rules.subscribe();
    loop {
        let delay = match rules.wait_for(|rules| interval(rules).is_some()).await {
            Ok(found) => interval(&found).unwrap_or_default(),
            Err(_) => return,
        };
        tokio::select! {
            () = tokio::time::sleep(delay) => shared.cuts.send_modify(|count| *count += 1),
            _ = rules.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests;
