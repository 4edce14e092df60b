//! What a fuzzer plays with: a kernel that says anything at all.

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use cellwright_output::Sink;
use serde_json::Value;

use super::Exchange;
use crate::kernel::{Outcome, Request};

/// What comes of a cell whose kernel says all this: channel, sort of message, content.
pub fn hear(said: &[(Channel, &str, &[u8])], sink: &mut dyn Sink) -> Outcome {
    let mut exchange = Exchange::new(String::new(), &Request::new(""));
    for (channel, msg_type, content) in said {
        let mut message = Message::new(msg_type, "", &Value::Null);
        message.content = content.to_vec().into();
        exchange.take(*channel, &mut message, sink);
    }
    exchange.outcome(None, sink)
}
