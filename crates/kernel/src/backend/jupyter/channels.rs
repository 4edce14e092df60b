//! [`Channels`]: the messages of a kernel, whatever carries them.

use cellwright_jupyter::client::{ClientEvent, Heartbeat, KernelClient};
use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_stdext::error_chain;

/// The channels of one kernel: shell, iopub, stdin and control.
///
/// An implementation connects by itself and reports each channel that is open. It verifies and decodes messages. It
/// never makes the kernel wait for its caller: it stores what the caller has not taken yet, if necessary on disk.
///
/// [`KernelClient`] carries messages over ZeroMQ sockets, [`GatewayChannels`](super::gateway::GatewayChannels) over one
/// WebSocket, whose frames name the channel.
pub trait Channels: Send + 'static {
    /// The session id in the headers of this client's messages.
    fn session(&self) -> &str;

    /// Queues a message. It is sent when its channel is open, after the earlier messages of the channel. If the channel
    /// is closed, the message is dropped: an event reports the reason.
    fn send(&self, channel: Channel, message: &Message);

    /// Waits for the next event. Cancel-safe. Messages of one channel are in the order in which the kernel sent them.
    /// After the last event it never returns.
    fn next(&mut self) -> impl Future<Output = ChannelEvent> + Send;

    /// Returns the next event if it has already been received.
    fn try_next(&mut self) -> Option<ChannelEvent>;

    /// Sends all queued messages, then closes all channels. Dropping the channels closes them at once.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// An event on the channels of a kernel.
#[derive(Debug)]
pub enum ChannelEvent {
    /// A channel is open.
    Opened(Channel),
    /// A message.
    Message(Channel, Box<Message>),
    /// A message was dropped because it is malformed, or not signed with the kernel's key.
    Rejected,
    /// A channel is closed. The text states how the kernel or the transport violated the protocol; `None`: the kernel has
    /// disconnected.
    Closed(Channel, Option<String>),
    /// The connection broke and is open again. Messages of the kernel may be missing.
    Reconnected {
        /// The `msg_id`s of requests that were sent before, and that no message of the kernel has confirmed.
        unconfirmed: Vec<String>,
    },
    /// The server drops output of the kernel, because it is more than the server allows.
    RateLimited,
    /// So many messages of the kernel were lost.
    MessagesLost(usize),
    /// The kernel no longer answers heartbeats, although no channel is closed.
    HeartbeatLost,
}

impl Channels for KernelClient {
    fn session(&self) -> &str {
        self.session()
    }

    fn send(&self, channel: Channel, message: &Message) {
        self.send(channel, message);
    }

    async fn next(&mut self) -> ChannelEvent {
        loop {
            if let Some(event) = to_channel_event(self.next().await) {
                return event;
            }
        }
    }

    fn try_next(&mut self) -> Option<ChannelEvent> {
        loop {
            if let Some(event) = to_channel_event(self.try_next()?) {
                return Some(event);
            }
        }
    }

    async fn close(self) {
        self.close().await;
    }
}

fn to_channel_event(event: ClientEvent) -> Option<ChannelEvent> {
    Some(match event {
        ClientEvent::Opened(channel) => ChannelEvent::Opened(channel),
        ClientEvent::Message(channel, message) => ChannelEvent::Message(channel, message),
        ClientEvent::Rejected(..) => ChannelEvent::Rejected,
        ClientEvent::Closed(channel, error) => {
            ChannelEvent::Closed(channel, error.map(|error| error_chain::format(&error)))
        }
        ClientEvent::Heartbeat(Heartbeat::Lost) => ChannelEvent::HeartbeatLost,
        ClientEvent::Heartbeat(Heartbeat::Restored) => return None,
    })
}
