//! Text in batches, and everything in the order in which it happened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_jupyter::message::Message;
use cellwright_jupyter::publisher::{BATCH, LONG, Publisher, TextStream};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use TextStream::{Stderr, Stdout};

/// What was told: after how many milliseconds, because of what, and what.
type Told = Arc<Mutex<Vec<(u64, String, String)>>>;

fn publisher() -> (Publisher, Told) {
    let told = Told::default();
    let start = Instant::now();
    let to = Arc::clone(&told);
    let publisher = Publisher::new(&Handle::current(), "s".to_owned(), move |message| {
        let content = message.value();
        let what = match message.header.msg_type.as_str() {
            "stream" => format!(
                "{}: {}",
                content["name"].as_str().unwrap(),
                content["text"].as_str().unwrap()
            ),
            "status" => content["execution_state"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        assert_eq!(message.identities[0], message.header.msg_type);
        let after = u64::try_from(start.elapsed().as_millis()).unwrap();
        to.lock().unwrap().push((after, message.parent_id(), what));
    });
    (publisher, told)
}

fn cause() -> Message {
    Message::new("execute_request", "client", &json!({}))
}

fn take(told: &Told) -> Vec<(u64, String)> {
    let told = std::mem::take(&mut *told.lock().unwrap());
    told.into_iter().map(|(at, _, what)| (at, what)).collect()
}

fn at(milliseconds: u64, what: &str) -> (u64, String) {
    (milliseconds, what.to_owned())
}

#[tokio::test(start_paused = true)]
async fn text_waits_for_more_and_goes_when_its_time_has_come() {
    let (publisher, told) = publisher();
    let cause = cause();
    for _ in 0..3 {
        publisher.text(&cause, Stdout, "a");
        sleep(Duration::from_millis(30)).await;
    }
    // 80 ms after the first, whatever came meanwhile.
    assert_eq!(take(&told), [at(80, "stdout: aaa")]);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(take(&told), []);
    publisher.text(&cause, Stdout, "b");
    sleep(BATCH + Duration::from_millis(1)).await;
    assert_eq!(take(&told), [at(60_170, "stdout: b")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_overtakes_text() {
    let (publisher, told) = publisher();
    let cause = cause();
    publisher.status(&cause, "busy");
    publisher.text(&cause, Stdout, "one ");
    publisher.text(&cause, Stdout, "");
    publisher.text(&cause, Stdout, "two");
    publisher.text(&cause, Stderr, "three");
    publisher.text(&cause, Stdout, "four");
    publisher.tell(&cause, "display_data", &json!({}));
    publisher.text(&cause, Stdout, "five");
    publisher.status(&cause, "idle");
    let all = [
        "busy",
        "stdout: one two",
        "stderr: three",
        "stdout: four",
        "display_data",
        "stdout: five",
        "idle",
    ];
    assert_eq!(take(&told), all.map(|what| at(0, what)));
}

#[tokio::test(start_paused = true)]
async fn text_of_two_causes_is_not_mixed() {
    let (publisher, told) = publisher();
    let (one, two) = (cause(), cause());
    publisher.text(&one, Stdout, "1");
    publisher.text(&two, Stdout, "2");
    publisher.text(&one, Stdout, "3");
    publisher.flush();
    let told = std::mem::take(&mut *told.lock().unwrap());
    let expected = [(&one, "1"), (&two, "2"), (&one, "3")]
        .map(|(cause, text)| (0, cause.header.msg_id.clone(), format!("stdout: {text}")));
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn long_text_does_not_wait() {
    let (publisher, told) = publisher();
    let cause = cause();
    let half = "x".repeat(LONG / 2);
    publisher.text(&cause, Stdout, &half);
    assert_eq!(take(&told), []);
    publisher.text(&cause, Stdout, &half);
    assert_eq!(take(&told), [at(0, &format!("stdout: {half}{half}"))]);
}

#[tokio::test(start_paused = true)]
async fn text_that_follows_other_text_has_its_own_time() {
    let (publisher, told) = publisher();
    let cause = cause();
    publisher.text(&cause, Stdout, "a");
    sleep(Duration::from_millis(50)).await;
    publisher.text(&cause, Stderr, "b");
    sleep(Duration::from_millis(200)).await;
    assert_eq!(take(&told), [at(50, "stdout: a"), at(130, "stderr: b")]);
}
