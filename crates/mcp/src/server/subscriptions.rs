//! [`Subscriptions`]: notifies clients when resources change.
//!
//! Resources are checked once a second and after every call. Polling also finds changes by other processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_stdext::LockExt;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{SubscriptionContext, SubscriptionSink};
use rmcp::{Peer, RoleServer};
use serde_json::json;
use tokio::sync::Notify;

use crate::server::Server;
use crate::server::resources::{self, ResourceId};

/// Time between two checks of the resources.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of resources that one client may subscribe to.
const SUBSCRIPTIONS_MAX: usize = 1000;

/// The subscriptions of a server's clients.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    table: Mutex<SubscriptionTable>,
    nudge: Notify,
}

#[derive(Default)]
struct SubscriptionTable {
    by_uri: HashMap<String, Subscription>,
    /// Whether the polling task runs.
    is_polling: bool,
}

struct Subscription {
    peer: Peer<RoleServer>,
    /// Fingerprint at the last check.
    fingerprint: String,
}

impl Subscriptions {
    fn table(&self) -> MutexGuard<'_, SubscriptionTable> {
        self.0.table.lock_ignoring_poison()
    }

    /// Checks the resources now.
    pub(crate) fn check_now(&self) {
        self.0.nudge.notify_waiters();
    }

    /// Adds a subscription of a client with an older protocol revision.
    pub(crate) async fn add(
        &self,
        server: &Server,
        uri: &str,
        peer: Peer<RoleServer>,
    ) -> Result<(), Failure> {
        resources::exists(server, uri).await?;
        let fingerprint = fingerprint(server, uri).await;
        let mut table = self.table();
        if table.by_uri.len() >= SUBSCRIPTIONS_MAX {
            let message =
                format!("A client can subscribe to at most {SUBSCRIPTIONS_MAX} resources");
            return Err(Failure::new(Kind::BadArguments, message));
        }
        table
            .by_uri
            .insert(uri.to_owned(), Subscription { peer, fingerprint });
        if !std::mem::replace(&mut table.is_polling, true) {
            let (subscriptions, server) = (self.clone(), server.clone());
            tokio::spawn(async move { subscriptions.poll(&server).await });
        }
        Ok(())
    }

    /// Removes a subscription.
    pub(crate) fn remove(&self, uri: &str) {
        self.table().by_uri.remove(uri);
    }

    /// Polls until there are no subscriptions.
    async fn poll(&self, server: &Server) {
        loop {
            let uris: Vec<(String, String, Peer<RoleServer>)> = {
                let mut table = self.table();
                let closed = |subscription: &Subscription| subscription.peer.is_transport_closed();
                table.by_uri.retain(|_, subscription| !closed(subscription));
                if table.by_uri.is_empty() {
                    table.is_polling = false;
                    return;
                }
                let entry = |(uri, subscription): (&String, &Subscription)| {
                    (
                        uri.clone(),
                        subscription.fingerprint.clone(),
                        subscription.peer.clone(),
                    )
                };
                table.by_uri.iter().map(entry).collect()
            };
            for (uri, last, peer) in uris {
                let now = fingerprint(server, &uri).await;
                if now == last {
                    continue;
                }
                let param = ResourceUpdatedNotificationParam::new(uri.as_str());
                // The next round removes a client that is gone.
                peer.notify_resource_updated(param).await.ok();
                if let Some(subscription) = self.table().by_uri.get_mut(&uri) {
                    subscription.fingerprint = now;
                }
            }
            self.wait_for_poll().await;
        }
    }

    async fn wait_for_poll(&self) {
        tokio::select! {
            () = self.0.nudge.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }

    /// Notifies a client about the resources that it listens to, until it stops.
    pub(crate) async fn listen(&self, server: &Server, context: SubscriptionContext) {
        let accepted = context.accepted().resource_subscriptions.clone();
        let mut fingerprints: Vec<(String, String)> = Vec::new();
        for uri in accepted
            .unwrap_or_default()
            .into_iter()
            .take(SUBSCRIPTIONS_MAX)
        {
            let now = fingerprint(server, &uri).await;
            fingerprints.push((uri, now));
        }
        let sink: &SubscriptionSink = context.sink();
        loop {
            tokio::select! {
                () = context.cancelled() => return,
                () = self.wait_for_poll() => {}
            }
            for (uri, last) in &mut fingerprints {
                let now = fingerprint(server, uri).await;
                if now == *last {
                    continue;
                }
                *last = now;
                if sink.notify_resource_updated(uri.as_str()).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns a text that differs after the resource has changed.
async fn fingerprint(server: &Server, uri: &str) -> String {
    match ResourceId::parse(uri) {
        Ok(ResourceId::Notebook(path)) => {
            let place = resources::resolve_notebook(server, &path).map(|(place, _)| place);
            let found = place
                .ok()
                .and_then(|place| place.path().symlink_metadata().ok());
            found.map_or_else(
                || "none".to_owned(),
                |found| {
                    use std::os::unix::fs::MetadataExt;
                    let (time, nanos) = (found.mtime(), found.mtime_nsec());
                    format!("{time}.{nanos} {} {}", found.len(), found.ino())
                },
            )
        }
        Ok(ResourceId::Kernel(id)) => match resources::read_kernel(server, id).await {
            Ok(session) => json!([
                session.state,
                session.generation,
                session.executions,
                session.waiting,
                session.pid,
            ])
            .to_string(),
            Err(_) => "none".to_owned(),
        },
        // An artifact never changes.
        _ => "fixed".to_owned(),
    }
}
