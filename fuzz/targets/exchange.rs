//! Arbitrary contents of a kernel's messages, one on each line: its first byte chooses the sort of message.
//! They are survived, what is shown is not much more than what was said, and text is what a parser finds.

#![no_main]

use cellwright_jupyter::connection::Channel;
use cellwright_kernel::{Ending, hear};
use cellwright_output::{Data, Event, Sink};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const SORTS: [(Channel, &str); 10] = [
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
struct Ear {
    text: Vec<u8>,
    raised: usize,
    shown: Vec<String>,
}

impl Sink for Ear {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Text { bytes, .. } => self.text.extend_from_slice(bytes),
            Event::Raised(_) => self.raised += 1,
            Event::Display { bundle, .. } | Event::Update { bundle, .. } => {
                for (mime, data) in bundle.data {
                    let data = match data {
                        Data::Stored(stored) => Data::Text(stored.text().unwrap()),
                        data => data,
                    };
                    self.shown.push(format!("{mime}: {data:?}"));
                }
                self.shown.push(format!("{:?}", bundle.metadata));
            }
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut said = Vec::new();
    let mut expected = Some(Vec::new());
    for line in data.split(|byte| *byte == b'\n') {
        let Some((&sort, content)) = line.split_first() else {
            continue;
        };
        let (channel, msg_type) = SORTS[usize::from(sort) % SORTS.len()];
        if msg_type == "stream" {
            match (text(content), &mut expected) {
                (Some(text), Some(expected)) => expected.extend_from_slice(text.as_bytes()),
                _ => expected = None,
            }
        }
        said.push((channel, msg_type, content));
    }
    let mut ear = Ear::default();
    let outcome = hear(&said, false, &mut ear);
    let mut other = Ear::default();
    hear(&said, true, &mut other);
    let is_json = |content: &[u8]| serde_json::from_slice::<Value>(content).is_ok();
    if said.iter().all(|(_, _, content)| is_json(content)) {
        assert_eq!(ear, other, "it depends on where it is");
    }
    // A character that is no character is replaced by three bytes.
    assert!(ear.text.len() <= 3 * data.len());
    if let Some(expected) = expected {
        assert_eq!(ear.text, expected);
    }
    match outcome.ending {
        Ending::Raised(_) | Ending::Exited { .. } => assert!(ear.raised > 0),
        Ending::Completed => {}
        other => panic!("{other:?}"),
    }
});

/// The text of a stream, if a parser sees it as we should.
fn text(content: &[u8]) -> Option<String> {
    // Names can be written with escapes, which nobody does.
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
