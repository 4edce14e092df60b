//! [`GatewayChannels`]: the messages of a kernel over a WebSocket.

use std::collections::VecDeque;
use std::sync::Mutex;

use cellwright_gateway::{KernelSocket, SocketEvent};
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_stdext::{LockExt, error_chain};
use serde_json::{Value, json};
use tokio::time::timeout_at;
use tracing::debug;

use super::delivery::{self, Delivery, RecoveryStep};
use super::kernel_end::{KernelEnd, KernelEndCell};
use crate::backend::jupyter::{ChannelEvent, Channels};
use crate::execution;

/// The channels that one WebSocket carries.
const CHANNELS: [Channel; 4] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
];

/// How many requests are kept, in case the connection breaks before they arrive.
const SENT_REQUESTS_MAX: usize = 64;

/// The largest message in which a server reports that it drops output.
const RATE_LIMIT_WARNING_SIZE_MAX: u64 = 4096;

/// The messages of a kernel over a WebSocket.
///
/// A status of the server about the kernel's process, which has no parent, ends the kernel. After the connection broke,
/// lost messages of an ipykernel are recovered, and requests that never arrived are sent again.
pub struct GatewayChannels {
    socket: KernelSocket,
    end: KernelEndCell,
    /// Events that were made from one event of the socket.
    pending: VecDeque<ChannelEvent>,
    /// Requests on shell and control whose replies have not arrived.
    sent: Mutex<VecDeque<(Channel, Message)>>,
    /// The `msg_id`s of this module's own requests.
    own_requests: VecDeque<String>,
    /// `None`: the kernel does not number its messages.
    delivery: Option<Delivery>,
    /// The `msg_id` of the request that installs the log in the kernel.
    install_request: Option<String>,
    /// The request whose reply shows that all earlier requests were handled, and the earlier requests that nothing
    /// confirms.
    barrier: Option<(String, Vec<String>)>,
}

impl GatewayChannels {
    pub(super) fn new(socket: KernelSocket, end: KernelEndCell) -> Self {
        Self {
            socket,
            end,
            pending: VecDeque::new(),
            sent: Mutex::default(),
            own_requests: VecDeque::new(),
            delivery: None,
            install_request: None,
            barrier: None,
        }
    }

    /// Lets the kernel, an ipykernel, number its messages.
    pub(super) fn install_delivery_log(&mut self) {
        let code = delivery::install_code(self.socket.session());
        let content = execution::silent_content(&code);
        let id = self.send_own(Channel::Shell, "execute_request", &content);
        self.install_request = Some(id);
        self.delivery = Some(Delivery::default());
    }

    /// Sends a request of this module. Its messages are not passed on.
    fn send_own(&mut self, channel: Channel, msg_type: &str, content: &Value) -> String {
        let message = Message::new(msg_type, self.socket.session(), content);
        self.socket.send(channel, &message);
        let id = message.header.msg_id;
        if self.own_requests.len() == SENT_REQUESTS_MAX {
            self.own_requests.pop_front();
        }
        self.own_requests.push_back(id.clone());
        id
    }

    /// Converts an event of the socket.
    fn convert(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Opened => {
                let opened = CHANNELS.into_iter().map(ChannelEvent::Opened);
                self.pending.extend(opened);
            }
            SocketEvent::Message(channel, message) => self.receive(channel, message),
            SocketEvent::Rejected => self.pending.push_back(ChannelEvent::Rejected),
            SocketEvent::Reconnected(reconnection) => self.recover(reconnection.unconfirmed),
            SocketEvent::Closed(error) => {
                if let Some(delivery) = &mut self.delivery {
                    let held = delivery.finish();
                    self.pass_on(held);
                }
                let reason = error_chain::format(&error);
                self.end.set(KernelEnd::Server(error));
                let closed = CHANNELS.into_iter();
                let closed =
                    closed.map(|channel| ChannelEvent::Closed(channel, Some(reason.clone())));
                self.pending.extend(closed);
            }
        }
    }

    fn receive(&mut self, channel: Channel, message: Box<Message>) {
        let parent = message.parent_id();
        if self.own_requests.contains(&parent) {
            if channel != Channel::Iopub {
                self.handle_own_reply(&parent, &message.value());
            }
            // A message of the kernel's log, if it is numbered, counts as received.
            if let Some(delivery) = &mut self.delivery {
                let ready = delivery.receive(channel, message);
                let is_own = |message: &Message| message.parent_id() == parent;
                let ready = ready.into_iter().filter(|(_, message)| !is_own(message));
                let ready = ready.collect();
                self.pass_on(ready);
            }
            return;
        }
        if parent.is_empty() && channel == Channel::Iopub && is_status_of_dead_process(&message) {
            self.end.set(KernelEnd::Died);
        }
        if channel == Channel::Iopub && is_rate_limit_warning(&message) {
            self.pending.push_back(ChannelEvent::RateLimited);
            return;
        }
        let ready = match &mut self.delivery {
            Some(delivery) => delivery.receive(channel, message),
            None => vec![(channel, message)],
        };
        self.pass_on(ready);
    }

    fn pass_on(&mut self, messages: Vec<delivery::ChannelMessage>) {
        for (channel, message) in messages {
            let parent = message.parent_id();
            if self.own_requests.contains(&parent) {
                continue;
            }
            if channel != Channel::Iopub {
                let mut sent = self.sent.lock_ignoring_poison();
                sent.retain(|(_, request)| request.header.msg_id != parent);
            }
            self.pending
                .push_back(ChannelEvent::Message(channel, message));
        }
    }

    /// The connection broke and is open again.
    fn recover(&mut self, unconfirmed: Vec<String>) {
        if self.delivery.is_none() || self.install_request.is_some() {
            self.pending
                .push_back(ChannelEvent::Reconnected { unconfirmed });
            return;
        }
        let request = self.send_own(Channel::Control, delivery::REQUEST_TYPE, &json!({}));
        if let Some(delivery) = &mut self.delivery {
            delivery.begin(request);
        }
        let is_own = |id: &String| self.own_requests.contains(id);
        let unconfirmed: Vec<_> = unconfirmed.into_iter().filter(|id| !is_own(id)).collect();
        if !unconfirmed.is_empty() {
            // The kernel answers after the requests that it has received before.
            let barrier = self.send_own(Channel::Shell, "kernel_info_request", &json!({}));
            self.barrier = Some((barrier, unconfirmed));
        }
    }

    fn handle_own_reply(&mut self, parent: &str, content: &Value) {
        if self.install_request.as_deref() == Some(parent) {
            self.install_request = None;
            if content["status"] != "ok" {
                debug!(%content, "the kernel does not number its messages");
                self.delivery = None;
            }
            return;
        }
        if self.barrier.as_ref().is_some_and(|(id, _)| id == parent)
            && let Some((_, requests)) = self.barrier.take()
        {
            let content = json!({"requests": requests, "numbers": []});
            self.send_own(Channel::Control, delivery::REQUEST_TYPE, &content);
            return;
        }
        if let Some(unknown) = content["unknown"].as_array() {
            self.send_again(unknown);
        }
        let Some(delivery) = &mut self.delivery else {
            return;
        };
        if !delivery.is_answer(parent) {
            return;
        }
        match delivery.handle_answer(content) {
            RecoveryStep::Request(numbers) => {
                let content = json!({"numbers": numbers});
                debug!(count = numbers.len(), "messages are requested again");
                let request = if numbers.is_empty() {
                    parent.to_owned()
                } else {
                    self.send_own(Channel::Control, delivery::REQUEST_TYPE, &content)
                };
                if let Some(delivery) = &mut self.delivery {
                    delivery.await_numbers(request, &numbers);
                }
            }
            RecoveryStep::Wait => {}
            RecoveryStep::Lost(count) => {
                self.pending.push_back(ChannelEvent::MessagesLost(count));
            }
        }
        if let Some(delivery) = &mut self.delivery {
            let ready = delivery.take_ready();
            self.pass_on(ready);
        }
    }

    /// Sends requests again that the kernel has never received.
    fn send_again(&mut self, unknown: &[Value]) {
        let sent = self.sent.lock_ignoring_poison();
        for (channel, message) in sent.iter() {
            if unknown.iter().any(|id| *id == message.header.msg_id) {
                debug!(
                    msg_type = message.header.msg_type,
                    "a request is sent again that the kernel has not received"
                );
                self.socket.send(*channel, message);
            }
        }
    }

    /// Gives up the recovery: what has arrived is passed on.
    fn give_up_recovery(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            let held = delivery.finish();
            self.pass_on(held);
            self.pending.push_back(ChannelEvent::Reconnected {
                unconfirmed: Vec::new(),
            });
        }
    }
}

/// Whether the server reports that the process of the kernel has died. The status has no parent.
fn is_status_of_dead_process(message: &Message) -> bool {
    message.header.msg_type == "status"
        && matches!(
            message.value()["execution_state"].as_str(),
            Some("restarting" | "dead")
        )
}

/// Whether the server, not the kernel, has printed that it drops output.
fn is_rate_limit_warning(message: &Message) -> bool {
    const WARNINGS: [&str; 2] = ["IOPub data rate exceeded", "IOPub message rate exceeded"];
    if message.header.msg_type != "stream" || message.content.size() > RATE_LIMIT_WARNING_SIZE_MAX {
        return false;
    }
    let content = message.value();
    let text = content["text"].as_str().unwrap_or_default().trim_start();
    content["name"] == "stderr" && WARNINGS.iter().any(|warning| text.starts_with(warning))
}

impl Channels for GatewayChannels {
    fn session(&self) -> &str {
        self.socket.session()
    }

    fn send(&self, channel: Channel, message: &Message) {
        if channel != Channel::Stdin {
            let mut sent = self.sent.lock_ignoring_poison();
            if sent.len() == SENT_REQUESTS_MAX {
                sent.pop_front();
            }
            sent.push_back((channel, message.clone()));
        }
        self.socket.send(channel, message);
    }

    async fn next(&mut self) -> ChannelEvent {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            let deadline = self.delivery.as_ref().and_then(Delivery::deadline);
            let received = match deadline {
                None => Ok(self.socket.next().await),
                Some(deadline) => timeout_at(deadline, self.socket.next()).await,
            };
            let Ok(event) = received else {
                self.give_up_recovery();
                continue;
            };
            self.convert(event);
        }
    }

    fn try_next(&mut self) -> Option<ChannelEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let event = self.socket.try_next()?;
            self.convert(event);
        }
    }

    async fn close(self) {
        self.socket.close().await;
    }
}
