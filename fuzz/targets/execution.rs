//! Arbitrary contents of a kernel's messages, one per line: the first byte selects the message type.
//! No content may cause a panic, the output must not be much larger than the input, and stream text
//! must equal the text that a JSON parser finds.

#![no_main]

use cellwright_jupyter::connection::Channel;
use cellwright_kernel::{Ending, replay_messages};
use cellwright_output::{Data, Event, Sink};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const MESSAGE_TYPES: [(Channel, &str); 10] = [
    (Channel::Iopub, "stream"),
    (Channel::Iopub, "display_data"),
    (Channel::Iopub, "execute_result"),
    (Channel::Iopub, "update_display_data"),
    (Channel::Iopub, "clear_output"),
    (Channel::Iopub, "error"),
    (Channel::Iopub, "execute_input"),
    (Channel::Iopub, "status"),
    (Channel::Stdin, "input_request"),
    (Channel::Shell, "execute_reply"),
];

#[derive(Debug, Default, PartialEq)]
struct RecordingSink {
    text: Vec<u8>,
    errors: usize,
    displays: Vec<String>,
}

impl Sink for RecordingSink {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Text { bytes, .. } => self.text.extend_from_slice(bytes),
            Event::Raised(_) => self.errors += 1,
            Event::Display { bundle, .. } | Event::Update { bundle, .. } => {
                for (mime, data) in bundle.data {
                    let data = match data {
                        Data::Stored(stored) => Data::Text(stored.text().unwrap()),
                        data => data,
                    };
                    self.displays.push(format!("{mime}: {data:?}"));
                }
                self.displays.push(format!("{:?}", bundle.metadata));
            }
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut messages = Vec::new();
    let mut expected = Some(Vec::new());
    for line in data.split(|byte| *byte == b'\n') {
        let Some((&kind, content)) = line.split_first() else {
            continue;
        };
        let (channel, msg_type) = MESSAGE_TYPES[usize::from(kind) % MESSAGE_TYPES.len()];
        if msg_type == "stream" {
            match (text(content), &mut expected) {
                (Some(text), Some(expected)) => expected.extend_from_slice(text.as_bytes()),
                _ => expected = None,
            }
        }
        messages.push((channel, msg_type, content));
    }
    let mut in_memory = RecordingSink::default();
    let outcome = replay_messages(&messages, false, &mut in_memory);
    let mut on_disk = RecordingSink::default();
    replay_messages(&messages, true, &mut on_disk);
    let is_json = |content: &[u8]| serde_json::from_slice::<Value>(content).is_ok();
    if messages.iter().all(|(_, _, content)| is_json(content)) {
        assert_eq!(
            in_memory, on_disk,
            "contents in memory and on disk are read differently"
        );
    }
    // An invalid character is replaced by three bytes.
    assert!(in_memory.text.len() <= 3 * data.len());
    if let Some(expected) = expected {
        assert_eq!(in_memory.text, expected);
    }
    match outcome.ending {
        Ending::Raised(_) => assert!(in_memory.errors > 0),
        Ending::Completed => {}
        other => panic!("{other:?}"),
    }
});

/// The text of a `stream` message according to a JSON parser; `None` if the kernel crate may read it
/// differently.
fn text(content: &[u8]) -> Option<String> {
    // Member names can contain escapes, which no kernel uses.
    if content.windows(2).any(|pair| pair == b"\\u") {
        return None;
    }
    match serde_json::from_slice(content).ok()? {
        Value::Object(members) => match members.get("text") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(_)) => None,
            _ => Some(String::new()),
        },
        _ => Some(String::new()),
    }
}
