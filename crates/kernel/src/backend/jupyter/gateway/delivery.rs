//! [`Delivery`]: which messages of the kernel have arrived, and how to get those that a broken connection has lost.
//!
//! A server keeps what a kernel sends while its client is away, but loses what is on its way when the connection breaks.
//! Code inside an ipykernel numbers its messages and keeps the latest ones. After the connection is open again:
//!
//! ```text
//! client                                    kernel
//! cellwright_delivery_request         →
//!                                     ←     cellwright_delivery_reply: the last number, requests that never arrived
//! cellwright_delivery_request numbers →
//!                                     ←     those messages, on iopub
//!                                     ←     cellwright_delivery_reply: numbers that it does not have any more
//! ```
//!
//! Messages after a gap wait until the gap is filled, so that the order stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long the kernel may take to answer, before what has arrived is passed on.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// The type of the requests, on the control channel.
pub(super) const REQUEST_TYPE: &str = "cellwright_delivery_request";

/// Python code for the kernel.
const SOURCE: &str = include_str!("../../../../python/injected/delivery_log.py");

/// The name of the number in the metadata of a message.
const NUMBER_KEY: &str = "cellwright_number";

/// The code that installs the log in the kernel, for the client with this session id.
pub(super) fn install_code(session: &str) -> String {
    format!(
        "# Cellwright\n__import__(\"builtins\").exec({}, {{\"client\": {}}})",
        json!(SOURCE),
        json!(session)
    )
}

/// A message, and the channel that it belongs to.
pub(super) type ChannelMessage = (Channel, Box<Message>);

/// The number and the channel in the metadata of a message.
#[derive(Debug, Default, Deserialize)]
struct NumberedMetadata {
    cellwright_number: Option<u64>,
    /// The channel of a message that was published again.
    cellwright_channel: Option<String>,
}

impl NumberedMetadata {
    fn read(message: &Message) -> Option<(u64, Option<Channel>)> {
        memchr::memmem::find(&message.metadata, NUMBER_KEY.as_bytes())?;
        let metadata: Self = serde_json::from_slice(&message.metadata).ok()?;
        let channel = match metadata.cellwright_channel.as_deref() {
            Some("shell") => Some(Channel::Shell),
            Some("stdin") => Some(Channel::Stdin),
            _ => None,
        };
        Some((metadata.cellwright_number?, channel))
    }
}

/// Which messages of the kernel have arrived.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// All messages up to this number have arrived.
    complete: u64,
    /// Later ones that have arrived.
    later: BTreeSet<u64>,
    recovery: Option<Recovery>,
}

/// A search for messages that a broken connection has lost.
#[derive(Debug)]
struct Recovery {
    /// The `msg_id` of the last request to the kernel.
    request: String,
    /// The numbers that were asked for. `None`: the last number is not known yet.
    awaited: Option<BTreeSet<u64>>,
    /// Messages after a gap.
    held: BTreeMap<u64, ChannelMessage>,
    deadline: Instant,
}

/// What follows from the kernel's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecoveryStep {
    /// These messages must be asked for.
    Request(Vec<u64>),
    /// The answer to the last request is complete, or will be.
    Wait,
    /// So many messages are lost.
    Lost(usize),
}

impl Delivery {
    /// Records a message. Returns the messages to pass on now, in order: none if it arrived before or must wait.
    pub(super) fn receive(
        &mut self,
        channel: Channel,
        message: Box<Message>,
    ) -> Vec<ChannelMessage> {
        let Some((number, original)) = NumberedMetadata::read(&message) else {
            return vec![(channel, message)];
        };
        let channel = original.unwrap_or(channel);
        if !self.mark(number) {
            return Vec::new();
        }
        let complete = self.complete;
        let Some(recovery) = &mut self.recovery else {
            return vec![(channel, message)];
        };
        if let Some(awaited) = &mut recovery.awaited {
            awaited.remove(&number);
        }
        recovery.held.insert(number, (channel, message));
        let mut ready = recovery.take_held(complete);
        if recovery.is_finished() {
            ready.extend(self.finish());
        }
        ready
    }

    /// Records that a message has arrived. Returns whether it is the first time.
    fn mark(&mut self, number: u64) -> bool {
        if number <= self.complete || !self.later.insert(number) {
            return false;
        }
        while self.later.remove(&(self.complete + 1)) {
            self.complete += 1;
        }
        true
    }

    /// Begins a recovery whose first request has the `msg_id` `request`. Messages of an earlier one stay held.
    pub(super) fn begin(&mut self, request: String) {
        let held = self.recovery.take().map(|recovery| recovery.held);
        self.recovery = Some(Recovery {
            request,
            awaited: None,
            held: held.unwrap_or_default(),
            deadline: Instant::now() + RECOVERY_TIMEOUT,
        });
    }

    /// Records that the kernel is asked for these messages, by the request with the `msg_id` `request`.
    pub(super) fn await_numbers(&mut self, request: String, numbers: &[u64]) {
        if let Some(recovery) = &mut self.recovery {
            recovery.request = request;
            recovery.awaited = Some(numbers.iter().copied().collect());
            recovery.deadline = Instant::now() + RECOVERY_TIMEOUT;
        }
    }

    /// Whether a message with this parent answers the last request.
    pub(super) fn is_answer(&self, parent: &str) -> bool {
        let recovery = self.recovery.as_ref();
        recovery.is_some_and(|recovery| recovery.request == parent)
    }

    /// When the recovery is given up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.recovery.as_ref().map(|recovery| recovery.deadline)
    }

    /// Handles the content of the kernel's answer.
    pub(super) fn handle_answer(&mut self, content: &Value) -> RecoveryStep {
        let Some(recovery) = &mut self.recovery else {
            return RecoveryStep::Wait;
        };
        if recovery.awaited.is_none() {
            let last = content["last"].as_u64().unwrap_or(self.complete);
            let is_missing = |number: &u64| !self.later.contains(number);
            let numbers: Vec<u64> = (self.complete + 1..=last).filter(is_missing).collect();
            return RecoveryStep::Request(numbers);
        }
        let missing = content["missing"].as_array();
        let missing: Vec<u64> = missing
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect();
        for number in &missing {
            if let Some(awaited) = &mut recovery.awaited {
                awaited.remove(number);
            }
        }
        let count = missing
            .into_iter()
            .filter(|number| self.mark(*number))
            .count();
        if count == 0 {
            RecoveryStep::Wait
        } else {
            RecoveryStep::Lost(count)
        }
    }

    /// The messages to pass on if nothing is awaited any more.
    pub(super) fn take_ready(&mut self) -> Vec<ChannelMessage> {
        let complete = self.complete;
        let Some(recovery) = &mut self.recovery else {
            return Vec::new();
        };
        let mut ready = recovery.take_held(complete);
        if recovery.is_finished() {
            ready.extend(self.finish());
        }
        ready
    }

    /// Ends the recovery. Returns the messages that were held.
    pub(super) fn finish(&mut self) -> Vec<ChannelMessage> {
        let recovery = self.recovery.take();
        let held = recovery.map(|recovery| recovery.held).unwrap_or_default();
        held.into_values().collect()
    }
}

impl Recovery {
    fn is_finished(&self) -> bool {
        self.awaited.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// The held messages up to a number.
    fn take_held(&mut self, complete: u64) -> Vec<ChannelMessage> {
        let later = self.held.split_off(&(complete + 1));
        std::mem::replace(&mut self.held, later)
            .into_values()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64) -> Box<Message> {
        let mut message = Message::new("stream", "s", &json!({}));
        message.metadata = json!({NUMBER_KEY: number}).to_string().into();
        Box::new(message)
    }

    fn receive(delivery: &mut Delivery, number: u64) -> Vec<u64> {
        let ready = delivery.receive(Channel::Iopub, message(number));
        numbers(&ready)
    }

    fn numbers(messages: &[ChannelMessage]) -> Vec<u64> {
        let number = |(_, message): &ChannelMessage| NumberedMetadata::read(message).unwrap().0;
        messages.iter().map(number).collect()
    }

    #[test]
    fn messages_that_were_lost_are_asked_for_and_come_in_order() {
        let mut delivery = Delivery::default();
        // Threads of the kernel may send in another order.
        for number in [1, 3, 2] {
            assert_eq!(receive(&mut delivery, number), [number]);
        }
        delivery.begin("a".to_owned());
        assert!(delivery.is_answer("a"));
        // The server sends what it has kept.
        assert_eq!(receive(&mut delivery, 7), [0_u64; 0]);
        assert_eq!(receive(&mut delivery, 2), [0_u64; 0]);
        let step = delivery.handle_answer(&json!({"last": 8}));
        assert_eq!(step, RecoveryStep::Request(vec![4, 5, 6, 8]));
        delivery.await_numbers("b".to_owned(), &[4, 5, 6, 8]);
        assert_eq!(receive(&mut delivery, 5), [0_u64; 0]);
        assert_eq!(receive(&mut delivery, 4), [4, 5]);
        // It does not have one of them any more.
        let step = delivery.handle_answer(&json!({"missing": [6]}));
        assert_eq!(step, RecoveryStep::Lost(1));
        assert_eq!(numbers(&delivery.take_ready()), [7]);
        assert_eq!(receive(&mut delivery, 8), [8]);
        assert!(delivery.deadline().is_none());
        assert_eq!(receive(&mut delivery, 10), [10]);
    }

    #[test]
    fn nothing_is_asked_for_if_nothing_was_lost() {
        let mut delivery = Delivery::default();
        delivery.receive(Channel::Iopub, message(1));
        delivery.begin("a".to_owned());
        let step = delivery.handle_answer(&json!({"last": 1}));
        assert_eq!(step, RecoveryStep::Request(vec![]));
        delivery.await_numbers("a".to_owned(), &[]);
        assert!(delivery.take_ready().is_empty());
        assert!(delivery.deadline().is_none());
    }

    #[test]
    fn a_second_break_keeps_what_was_held() {
        let mut delivery = Delivery::default();
        delivery.begin("a".to_owned());
        assert_eq!(receive(&mut delivery, 2), [0_u64; 0]);
        delivery.begin("b".to_owned());
        assert_eq!(receive(&mut delivery, 1), [1, 2]);
    }

    #[test]
    fn a_reply_that_is_published_again_belongs_to_its_channel() {
        let mut delivery = Delivery::default();
        let mut reply = Message::new("execute_reply", "s", &json!({}));
        let metadata = json!({NUMBER_KEY: 1, "cellwright_channel": "shell"});
        reply.metadata = metadata.to_string().into();
        let ready = delivery.receive(Channel::Iopub, Box::new(reply));
        assert_eq!(ready[0].0, Channel::Shell);
    }
}
