//! Queries to kernels that answer wrongly or not at all.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, KernelError, KernelQuery, StopSignal};
use serde_json::json;

use super::{HostileKernel, within_timeout};

fn queries() -> [KernelQuery; 4] {
    let code = || "abc".to_owned();
    [
        KernelQuery::Complete {
            code: code(),
            cursor: 3,
        },
        KernelQuery::Inspect {
            code: code(),
            cursor: 3,
            include_source: false,
        },
        KernelQuery::IsComplete { code: code() },
        KernelQuery::History { last: 3 },
    ]
}

impl HostileKernel {
    /// The answer or error of a query that is stopped after `millis` milliseconds.
    async fn query(&mut self, query: &KernelQuery, millis: u64) -> String {
        let stop = StopSignal::never().with_timeout(Duration::from_millis(millis));
        match within_timeout(self.jupyter.query(query, &stop)).await {
            Ok(answer) => answer.to_string(),
            Err(KernelError::StoppedEarly { .. }) => "stopped".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

#[tokio::test]
async fn a_query_without_an_answer_can_be_stopped() {
    let silent = "def on_query(msg_type): pass";
    let others = "def on_query(msg_type): send('shell', msg_type.replace('request', 'reply'), {'status': 'ok', 'matches': ['no']}, parent_header={'msg_id': 'x'}); send('iopub', msg_type.replace('request', 'reply'), {'status': 'ok'})";
    let unsigned = "def on_query(msg_type): send('shell', msg_type.replace('request', 'reply'), {'status': 'ok'}, key=b'guess')";
    for setup in [silent, others, unsigned] {
        let mut kernel = HostileKernel::start(setup).await;
        for query in queries() {
            assert_eq!(kernel.query(&query, 300).await, "stopped", "{setup}");
        }
        kernel.jupyter.take_notices();
        let summary = kernel.run(super::GOOD_CELL).await;
        assert!(summary.starts_with(super::GOOD_CELL_SUMMARY), "{summary}");
        kernel.assert_shuts_down().await;
    }
}

#[tokio::test]
async fn an_invalid_reply_is_an_error() {
    let invalid = "the kernel could not answer: its reply is invalid";
    for (content, expected) in [
        ("b'junk'", invalid),
        ("None", invalid),
        ("[]", invalid),
        (
            "{'status': 'error', 'ename': 'E', 'evalue': 'why'}",
            "the kernel could not answer: why",
        ),
        (
            "{'status': 'error'}",
            "the kernel could not answer: it failed",
        ),
        (
            "{'status': 'aborted'}",
            "the kernel could not answer: it keeps aborting this request because another client's cells fail",
        ),
    ] {
        let setup = format!(
            "def on_query(msg_type): send('shell', msg_type.replace('request', 'reply'), {content})"
        );
        let mut kernel = HostileKernel::start(&setup).await;
        for query in queries() {
            assert_eq!(kernel.query(&query, 20_000).await, expected, "{content}");
        }
        kernel.assert_works().await;
        kernel.assert_shuts_down().await;
    }
}

#[tokio::test]
async fn valid_members_of_a_reply_are_used() {
    let mut kernel = HostileKernel::start("ANSWER = {}\ndef on_query(msg_type): send('shell', msg_type.replace('request', 'reply'), ANSWER)").await;
    let [complete, inspect, is_complete, history] = queries();
    let cases = [
        (
            &complete,
            "{}",
            json!({"matches": [], "start": 3, "end": 3}),
        ),
        (
            &complete,
            "{'matches': 5, 'cursor_start': 'x', 'cursor_end': -1}",
            json!({"matches": [], "start": 3, "end": 3}),
        ),
        (
            &complete,
            "{'matches': ['a', 5, None], 'cursor_start': 1, 'cursor_end': 2}",
            json!({"matches": ["a"], "start": 1, "end": 2}),
        ),
        (&inspect, "{}", json!({"found": false, "data": {}})),
        (
            &inspect,
            "{'found': 'yes', 'data': 5}",
            json!({"found": false, "data": {}}),
        ),
        (
            &is_complete,
            "{}",
            json!({"status": "unknown", "indent": ""}),
        ),
        (
            &is_complete,
            "{'status': 5, 'indent': 5}",
            json!({"status": "unknown", "indent": ""}),
        ),
        (&history, "{}", json!([])),
        (&history, "{'history': 5}", json!([])),
        (
            &history,
            "{'history': [5, None, [], [0, 1, 'x'], [0, 2, ['y', None]]]}",
            json!([{"count": null, "code": null, "output": null}, {"count": 1, "code": "x", "output": null}, {"count": 2, "code": "y", "output": null}]),
        ),
    ];
    for (query, content, answer) in cases {
        assert_eq!(
            kernel
                .run(&format!("begin(); ANSWER = {content}; end()"))
                .await,
            "done"
        );
        assert_eq!(
            kernel.query(query, 20_000).await,
            answer.to_string(),
            "{content}"
        );
    }
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn a_kernel_that_dies_during_a_query_is_dead() {
    let mut kernel = HostileKernel::start("def on_query(msg_type): os._exit(4)").await;
    let [complete, ..] = queries();
    assert_eq!(
        kernel.query(&complete, 20_000).await,
        "the kernel died (exit code 4)"
    );
    kernel.assert_over().await;
    let mut kernel = HostileKernel::start("def on_query(msg_type): drop('shell')").await;
    let expected = "the kernel violated the protocol: it closed its connection";
    assert_eq!(kernel.query(&complete, 20_000).await, expected);
    kernel.assert_over().await;
}
