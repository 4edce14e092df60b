//! The entry point for fuzzing: messages of a kernel that may send anything.

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::frame::{Frame, StoredFrame};
use cellwright_jupyter::message::Message;
use cellwright_output::Sink;
use serde_json::Value;

use super::Execution;
use crate::kernel::{Outcome, Request};

/// Runs one execution with these messages (channel, message type, content) and returns its outcome. The contents
/// are in memory, or on disk with `on_disk`.
pub fn replay_messages(
    messages: &[(Channel, &str, &[u8])],
    on_disk: bool,
    sink: &mut dyn Sink,
) -> Outcome {
    let mut execution = Execution::new(String::new(), &Request::new(""));
    for (channel, msg_type, content) in messages {
        let mut message = Message::new(msg_type, "", &Value::Null);
        message.content = content.to_vec().into();
        if let (true, Ok(stored)) = (on_disk, StoredFrame::new(content)) {
            message.content = Frame::OnDisk(stored);
        }
        execution.handle(*channel, &mut message, sink);
    }
    execution.outcome(None, String::new, sink)
}
