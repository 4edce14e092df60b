//! Whatever a kernel says, and in whatever order: an exchange survives it, and ends with reply and idle.

use proptest::prelude::*;

use super::*;
use crate::kernel::Answers;

/// Hears everything and remembers how often something was raised.
#[derive(Default)]
struct Ear {
    raised: usize,
    refused: usize,
}

impl Sink for Ear {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Raised(_) => self.raised += 1,
            Event::InputRefused { .. } => self.refused += 1,
            _ => {}
        }
    }
}

const CHANNELS: [Channel; 5] = [
    Channel::Shell,
    Channel::Iopub,
    Channel::Stdin,
    Channel::Control,
    Channel::Heartbeat,
];

const TYPES: [&str; 14] = [
    "stream",
    "display_data",
    "execute_result",
    "update_display_data",
    "clear_output",
    "error",
    "execute_input",
    "status",
    "input_request",
    "execute_reply",
    "comm_msg",
    "",
    "status",
    "execute_reply",
];

fn message(msg_type: &str, content: &[u8]) -> Message {
    let mut message = Message::new(msg_type, "s", &Value::Null);
    message.content = content.to_vec().into();
    message
}

/// Contents that make sense, nearly make sense, and make none.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec![
            "ok",
            "error",
            "aborted",
            "idle",
            "busy",
            "stderr",
            "page",
            "SystemExit",
        ])
        .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "status",
        "execution_state",
        "execution_count",
        "name",
        "text",
        "data",
        "metadata",
        "transient",
        "display_id",
        "ename",
        "evalue",
        "traceback",
        "payload",
        "source",
        "text/plain",
        "application/json",
        "wait",
        "prompt",
    ]);
    let value = leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    });
    let torn = (value.clone(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
        let mut bytes = value.to_string().into_bytes();
        bytes.truncate(at.index(bytes.len() + 1));
        bytes
    });
    prop_oneof![
        4 => value.prop_map(|value| value.to_string().into_bytes()),
        1 => torn,
        1 => any::<Vec<u8>>(),
    ]
}

fn heard() -> impl Strategy<Value = (Channel, &'static str, Vec<u8>)> {
    let channel = prop::sample::select(CHANNELS.to_vec());
    (channel, prop::sample::select(TYPES.to_vec()), content())
}

proptest! {
    #[test]
    fn anything_is_survived_and_the_end_is_the_end(
        heard in prop::collection::vec(heard(), 0..40),
        answers in 0_usize..3,
        stopped in any::<bool>(),
    ) {
        let request = Request {
            stdin: Stdin::Answers(Answers::from_iter(vec!["a"; answers])),
            ..Request::new("x")
        };
        let mut exchange = Exchange::new("id".to_owned(), &request);
        let mut ear = Ear::default();
        let (mut replied, mut idle, mut asked, mut interrupts) = (false, false, 0, 0);
        for (channel, msg_type, content) in &heard {
            let want = exchange.take(*channel, &mut message(msg_type, content), &mut ear);
            replied |= *channel == Channel::Shell && *msg_type == "execute_reply";
            idle |= *channel == Channel::Iopub
                && *msg_type == "status"
                && super::said(&content.clone().into())["execution_state"] == "idle";
            prop_assert_eq!(exchange.has_reply(), replied);
            prop_assert_eq!(exchange.is_idle(), idle);
            match want {
                Want::Answer(_) => asked += 1,
                Want::Interrupt => interrupts += 1,
                Want::Nothing | Want::GoesOn | Want::Ask(_) => {}
            }
        }
        prop_assert!(asked <= answers);
        prop_assert_eq!(interrupts, ear.refused);
        let dropped = exchange.was_dropped();
        prop_assert!(!dropped || replied);
        let raised = ear.raised;
        let stop = stopped.then_some((StopReason::Cancelled, State::Kept));
        let outcome = exchange.outcome(stop, String::new, &mut ear);
        // A reply is asked last, and at most once.
        prop_assert!(ear.raised <= raised + 1);
        match outcome.ending {
            Ending::Stopped { .. } => prop_assert!(stopped),
            Ending::Raised(_) | Ending::Exited { .. } => prop_assert!(ear.raised > 0),
            Ending::Completed => prop_assert!(!stopped),
        }
    }
}

#[test]
fn a_reply_that_overtakes_the_exception_does_not_tell_it_twice() {
    let request = Request::new("x");
    let failure = br#"{"status": "error", "ename": "E", "evalue": "v", "traceback": ["E: v"]}"#;
    for order in [["execute_reply", "error"], ["error", "execute_reply"]] {
        let mut exchange = Exchange::new("id".to_owned(), &request);
        let mut ear = Ear::default();
        for msg_type in order {
            let channel = match msg_type {
                "error" => Channel::Iopub,
                _ => Channel::Shell,
            };
            exchange.take(channel, &mut message(msg_type, failure), &mut ear);
        }
        let outcome = exchange.outcome(None, String::new, &mut ear);
        assert!(matches!(outcome.ending, Ending::Raised(raised) if raised.name == "E"));
        assert_eq!(ear.raised, 1);
    }
}
