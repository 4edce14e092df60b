//! Questions that run no code of the user, and kernels that do not answer them.

use std::time::Duration;

use cellwright_kernel::{Kernel as _, KernelError, Question, Stop};
use serde_json::json;

use super::{Odd, bounded};

fn questions() -> [Question; 4] {
    let code = || "abc".to_owned();
    [
        Question::Complete {
            code: code(),
            cursor: 3,
        },
        Question::Inspect {
            code: code(),
            cursor: 3,
            source: false,
        },
        Question::IsComplete { code: code() },
        Question::History { last: 3 },
    ]
}

impl Odd {
    /// What comes of a question that nobody waits for longer than that.
    async fn asked(&mut self, question: &Question, millis: u64) -> String {
        let stop = Stop::never().with_timeout(Duration::from_millis(millis));
        match bounded(self.kernel.ask(question, &stop)).await {
            Ok(answer) => answer.to_string(),
            Err(KernelError::StoppedEarly { .. }) => "stopped".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

#[tokio::test]
async fn a_question_without_an_answer_can_be_given_up() {
    let silent = "def on_question(kind): pass";
    let others = "def on_question(kind): send('shell', kind.replace('request', 'reply'), {'status': 'ok', 'matches': ['no']}, cause={'msg_id': 'x'}); send('iopub', kind.replace('request', 'reply'), {'status': 'ok'})";
    let unsigned = "def on_question(kind): send('shell', kind.replace('request', 'reply'), {'status': 'ok'}, key=b'guess')";
    for start in [silent, others, unsigned] {
        let mut odd = Odd::start(start).await;
        for question in questions() {
            assert_eq!(odd.asked(&question, 300).await, "stopped", "{start}");
        }
        odd.kernel.take_remarks();
        let told = odd.told(super::FINE).await;
        assert!(told.starts_with(super::FINE_TOLD), "{told}");
        odd.goes().await;
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_none() {
    let nonsense = "the kernel could not answer: its answer makes no sense";
    for (content, told) in [
        ("b'junk'", nonsense),
        ("None", nonsense),
        ("[]", nonsense),
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
            "the kernel could not answer: cells of another client fail all the time, and it drops this for it",
        ),
    ] {
        let start = format!(
            "def on_question(kind): send('shell', kind.replace('request', 'reply'), {content})"
        );
        let mut odd = Odd::start(&start).await;
        for question in questions() {
            assert_eq!(odd.asked(&question, 20_000).await, told, "{content}");
        }
        odd.works().await;
        odd.goes().await;
    }
}

#[tokio::test]
async fn an_answer_that_makes_some_sense_is_used_as_far_as_it_does() {
    let mut odd = Odd::start("ANSWER = {}\ndef on_question(kind): send('shell', kind.replace('request', 'reply'), ANSWER)").await;
    let [complete, inspect, is_complete, history] = questions();
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
    for (question, content, answer) in cases {
        assert_eq!(
            odd.told(&format!("begin(); ANSWER = {content}; end()"))
                .await,
            "done"
        );
        assert_eq!(
            odd.asked(question, 20_000).await,
            answer.to_string(),
            "{content}"
        );
    }
    odd.works().await;
    odd.goes().await;
}

#[tokio::test]
async fn a_kernel_that_dies_of_a_question_is_over() {
    let mut odd = Odd::start("def on_question(kind): os._exit(4)").await;
    let [complete, ..] = questions();
    assert_eq!(
        odd.asked(&complete, 20_000).await,
        "the kernel died (exit code 4)"
    );
    odd.over().await;
    let mut odd = Odd::start("def on_question(kind): drop('shell')").await;
    let told = "the kernel broke the protocol: it closed its connection";
    assert_eq!(odd.asked(&complete, 20_000).await, told);
    odd.over().await;
}
