//! An execution accepts any messages in any order, and ends with the reply and `idle`.

use proptest::prelude::*;

use super::*;
use crate::kernel::InputAnswers;

/// Counts errors and refused input requests.
#[derive(Default)]
struct EventCounter {
    errors: usize,
    refusals: usize,
}

impl Sink for EventCounter {
    fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Raised(_) => self.errors += 1,
            Event::InputRefused { .. } => self.refusals += 1,
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

const MESSAGE_TYPES: [&str; 14] = [
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

/// Contents that are valid, nearly valid, and invalid.
fn any_content() -> impl Strategy<Value = Vec<u8>> {
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
    let truncated = (value.clone(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
        let mut bytes = value.to_string().into_bytes();
        bytes.truncate(at.index(bytes.len() + 1));
        bytes
    });
    prop_oneof![
        4 => value.prop_map(|value| value.to_string().into_bytes()),
        1 => truncated,
        1 => any::<Vec<u8>>(),
    ]
}

fn any_message() -> impl Strategy<Value = (Channel, &'static str, Vec<u8>)> {
    let channel = prop::sample::select(CHANNELS.to_vec());
    (
        channel,
        prop::sample::select(MESSAGE_TYPES.to_vec()),
        any_content(),
    )
}

proptest! {
    #[test]
    fn any_messages_are_accepted_and_only_reply_and_idle_end_the_execution(
        messages in prop::collection::vec(any_message(), 0..40),
        answers in 0_usize..3,
        stopped in any::<bool>(),
    ) {
        let request = Request {
            stdin: Stdin::Answers(InputAnswers::from_iter(vec!["a"; answers])),
            ..Request::new("x")
        };
        let mut execution = Execution::new("id".to_owned(), &request);
        let mut events = EventCounter::default();
        let (mut replied, mut idle, mut answered, mut interrupts) = (false, false, 0, 0);
        for (channel, msg_type, content) in &messages {
            let follow_up = execution.handle(*channel, &mut message(msg_type, content), &mut events);
            replied |= *channel == Channel::Shell && *msg_type == "execute_reply";
            idle |= *channel == Channel::Iopub
                && *msg_type == "status"
                && super::parse_json(&content.clone().into())["execution_state"] == "idle";
            prop_assert_eq!(execution.has_reply(), replied);
            prop_assert_eq!(execution.is_idle(), idle);
            match follow_up {
                FollowUp::InputReply(_) => answered += 1,
                FollowUp::Interrupt => interrupts += 1,
                FollowUp::Nothing | FollowUp::Resumed | FollowUp::RequestInput(_) => {}
            }
        }
        prop_assert!(answered <= answers);
        prop_assert_eq!(interrupts, events.refusals);
        let aborted = execution.was_aborted();
        prop_assert!(!aborted || replied);
        let errors = events.errors;
        let stop = stopped.then_some((StopReason::Cancelled, KernelState::Preserved));
        let outcome = execution.outcome(stop, String::new, &mut events);
        // The reply is evaluated last, and adds at most one error.
        prop_assert!(events.errors <= errors + 1);
        match outcome.ending {
            Ending::Stopped { .. } => prop_assert!(stopped),
            Ending::Raised(_) => prop_assert!(events.errors > 0),
            Ending::Completed => prop_assert!(!stopped),
        }
    }
}

#[test]
fn an_error_in_message_and_reply_is_reported_once_in_either_order() {
    let request = Request::new("x");
    let failure = br#"{"status": "error", "ename": "E", "evalue": "v", "traceback": ["E: v"]}"#;
    for order in [["execute_reply", "error"], ["error", "execute_reply"]] {
        let mut execution = Execution::new("id".to_owned(), &request);
        let mut events = EventCounter::default();
        for msg_type in order {
            let channel = match msg_type {
                "error" => Channel::Iopub,
                _ => Channel::Shell,
            };
            execution.handle(channel, &mut message(msg_type, failure), &mut events);
        }
        let outcome = execution.outcome(None, String::new, &mut events);
        assert!(matches!(outcome.ending, Ending::Raised(traceback) if traceback.name == "E"));
        assert_eq!(events.errors, 1);
    }
}

#[test]
fn an_exit_is_reported_once_whether_it_is_published_or_only_in_the_reply() {
    let request = Request::new("x");
    let exit = br#"{"status": "error", "ename": "SystemExit", "evalue": "4", "traceback": ["SystemExit: 4"]}"#;
    for order in [
        &["error", "execute_reply"][..],
        &["execute_reply", "error"],
        &["execute_reply"],
    ] {
        let mut execution = Execution::new("id".to_owned(), &request);
        let mut events = EventCounter::default();
        for msg_type in order {
            let channel = match *msg_type {
                "error" => Channel::Iopub,
                _ => Channel::Shell,
            };
            execution.handle(channel, &mut message(msg_type, exit), &mut events);
        }
        let outcome = execution.outcome(None, String::new, &mut events);
        assert!(matches!(outcome.ending, Ending::Raised(error) if error.value == "4"));
        assert_eq!(events.errors, 1, "{order:?}");
    }
}
