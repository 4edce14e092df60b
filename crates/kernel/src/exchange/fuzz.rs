//! What a fuzzer plays with: a kernel that says anything at all.

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::frame::{Frame, Stored};
use cellwright_jupyter::message::Message;
use cellwright_output::Sink;
use serde_json::Value;

use super::Exchange;
use crate::kernel::{Outcome, Request};

/// What comes of a cell whose kernel says all this: channel, sort of message, content, which is in memory or
/// on disk.
pub fn hear(said: &[(Channel, &str, &[u8])], on_disk: bool, sink: &mut dyn Sink) -> Outcome {
    let mut exchange = Exchange::new(String::new(), &Request::new(""));
    for (channel, msg_type, content) in said {
        let mut message = Message::new(msg_type, "", &Value::Null);
        message.content = content.to_vec().into();
        if let (true, Ok(stored)) = (on_disk, Stored::new(content)) {
            message.content = Frame::Stored(stored);
        }
        exchange.take(*channel, &mut message, sink);
    }
    exchange.outcome(None, String::new, sink)
}
