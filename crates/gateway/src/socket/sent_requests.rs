//! [`SentRequests`]: requests that were sent and not confirmed, in case the connection breaks.

use std::collections::VecDeque;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use serde::Deserialize;

/// How many requests are remembered. A client waits for a reply before it sends the next cell.
const REQUESTS_MAX: usize = 256;

/// The ids of requests that were sent, and that no message of the kernel has confirmed.
#[derive(Debug, Default)]
pub(super) struct SentRequests(VecDeque<String>);

impl SentRequests {
    /// Records a request that was sent.
    pub(super) fn push(&mut self, channel: Channel, message: &Message) {
        if channel == Channel::Stdin {
            // It is an answer.
            return;
        }
        if self.0.len() == REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(message.header.msg_id.clone());
    }

    /// Records a message of the kernel: the request that caused it has arrived.
    pub(super) fn confirm(&mut self, parent: &[u8]) {
        #[derive(Deserialize)]
        struct Parent<'a> {
            #[serde(borrow, default)]
            msg_id: Option<std::borrow::Cow<'a, str>>,
        }
        if self.0.is_empty() {
            return;
        }
        let parent: Option<Parent<'_>> = serde_json::from_slice(parent).ok();
        if let Some(id) = parent.and_then(|parent| parent.msg_id)
            && let Some(at) = self.0.iter().position(|sent| *sent == id)
        {
            self.0.remove(at);
        }
    }

    /// The requests that were not confirmed.
    pub(super) fn unconfirmed(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}
