//! Tells clients when resources change that they want to know of.
//!
//! Files are looked at once a second, and at once after every call: that also finds what others change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{SubscriptionContext, SubscriptionSink};
use rmcp::{Peer, RoleServer};
use serde_json::json;
use tokio::sync::Notify;

use super::resources::{self, Named};
use super::server::Server;
use crate::failure::{Failure, Kind};

/// How often resources are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Resources that one client may want to know of.
const MOST: usize = 1000;

/// Who wants to know of what.
#[derive(Clone, Default)]
pub(super) struct Subscriptions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    nudge: Notify,
}

#[derive(Default)]
struct State {
    wanted: HashMap<String, Wanted>,
    /// Whether somebody looks.
    watched: bool,
}

struct Wanted {
    peer: Peer<RoleServer>,
    /// How it looked last.
    seen: String,
}

impl Subscriptions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at once.
    pub(super) fn look(&self) {
        self.0.nudge.notify_waiters();
    }

    /// A client wants to know of a resource, in the older way.
    pub(super) async fn add(
        &self,
        server: &Server,
        uri: &str,
        peer: Peer<RoleServer>,
    ) -> Result<(), Failure> {
        resources::exists(server, uri).await?;
        let seen = look_of(server, uri).await;
        let mut state = self.state();
        if state.wanted.len() >= MOST {
            let message = format!("No more than {MOST} resources can be subscribed to");
            return Err(Failure::new(Kind::BadArguments, message));
        }
        state.wanted.insert(uri.to_owned(), Wanted { peer, seen });
        if !std::mem::replace(&mut state.watched, true) {
            let (subscriptions, server) = (self.clone(), server.clone());
            tokio::spawn(async move { subscriptions.watch(&server).await });
        }
        Ok(())
    }

    /// A client does not want to know any more.
    pub(super) fn remove(&self, uri: &str) {
        self.state().wanted.remove(uri);
    }

    /// Looks until nobody wants to know any more.
    async fn watch(&self, server: &Server) {
        loop {
            let uris: Vec<(String, String, Peer<RoleServer>)> = {
                let mut state = self.state();
                let closed = |wanted: &Wanted| wanted.peer.is_transport_closed();
                state.wanted.retain(|_, wanted| !closed(wanted));
                if state.wanted.is_empty() {
                    state.watched = false;
                    return;
                }
                let entry = |(uri, wanted): (&String, &Wanted)| {
                    (uri.clone(), wanted.seen.clone(), wanted.peer.clone())
                };
                state.wanted.iter().map(entry).collect()
            };
            for (uri, seen, peer) in uris {
                let now = look_of(server, &uri).await;
                if now == seen {
                    continue;
                }
                let param = ResourceUpdatedNotificationParam::new(uri.as_str());
                // One that has gone is left out the next time.
                peer.notify_resource_updated(param).await.ok();
                if let Some(wanted) = self.state().wanted.get_mut(&uri) {
                    wanted.seen = now;
                }
            }
            self.moment().await;
        }
    }

    async fn moment(&self) {
        tokio::select! {
            () = self.0.nudge.notified() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }

    /// Tells a client of the resources that it listens for, until it does not any more.
    pub(super) async fn listen(&self, server: &Server, context: SubscriptionContext) {
        let accepted = context.accepted().resource_subscriptions.clone();
        let mut seen: Vec<(String, String)> = Vec::new();
        for uri in accepted.unwrap_or_default().into_iter().take(MOST) {
            let now = look_of(server, &uri).await;
            seen.push((uri, now));
        }
        let sink: &SubscriptionSink = context.sink();
        loop {
            tokio::select! {
                () = context.cancelled() => return,
                () = self.moment() => {}
            }
            for (uri, last) in &mut seen {
                let now = look_of(server, uri).await;
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

/// How a resource looks: another text when it has changed.
async fn look_of(server: &Server, uri: &str) -> String {
    match Named::of(uri) {
        Ok(Named::Notebook(path)) => {
            let place = resources::place(server, &path).map(|(place, _)| place);
            let found = place.ok().and_then(|place| place.path().metadata().ok());
            found.map_or_else(
                || "none".to_owned(),
                |found| {
                    use std::os::unix::fs::MetadataExt;
                    let (time, nanos) = (found.mtime(), found.mtime_nsec());
                    format!("{time}.{nanos} {} {}", found.len(), found.ino())
                },
            )
        }
        Ok(Named::Kernel(id)) => match resources::kernel(server, id).await {
            Ok(kernel) => json!([
                kernel["state"],
                kernel["generation"],
                kernel["executions"],
                kernel["waiting"],
                kernel["pid"],
            ])
            .to_string(),
            Err(_) => "none".to_owned(),
        },
        // What was kept stays as it is.
        _ => "kept".to_owned(),
    }
}
