//! [`Publisher`]: text in batches, and all messages in their order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_jupyter::message::Message;
use cellwright_jupyter::publisher::{BATCH_DELAY, BATCH_SIZE_LIMIT, Publisher, TextStream};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use TextStream::{Stderr, Stdout};

/// Published messages: milliseconds since the start, parent id, summary.
type Published = Arc<Mutex<Vec<(u64, String, String)>>>;

fn publisher() -> (Publisher, Published) {
    let published = Published::default();
    let start = Instant::now();
    let sink = Arc::clone(&published);
    let publisher = Publisher::new(&Handle::current(), "s".to_owned(), move |message| {
        let content = message.value();
        let summary = match message.header.msg_type.as_str() {
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
        sink.lock()
            .unwrap()
            .push((after, message.parent_id(), summary));
    });
    (publisher, published)
}

fn parent() -> Message {
    Message::new("execute_request", "client", &json!({}))
}

fn take_published(published: &Published) -> Vec<(u64, String)> {
    let messages = std::mem::take(&mut *published.lock().unwrap());
    let timed = messages.into_iter().map(|(at, _, summary)| (at, summary));
    timed.collect()
}

fn expected(milliseconds: u64, summary: &str) -> (u64, String) {
    (milliseconds, summary.to_owned())
}

#[tokio::test(start_paused = true)]
async fn text_is_published_after_the_delay() {
    let (publisher, published) = publisher();
    let parent = parent();
    for _ in 0..3 {
        publisher.publish_text(&parent, Stdout, "a");
        sleep(Duration::from_millis(30)).await;
    }
    // 80 ms after the first piece, whatever was added since.
    assert_eq!(take_published(&published), [expected(80, "stdout: aaa")]);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(take_published(&published), []);
    publisher.publish_text(&parent, Stdout, "b");
    sleep(BATCH_DELAY + Duration::from_millis(1)).await;
    assert_eq!(take_published(&published), [expected(60_170, "stdout: b")]);
}

#[tokio::test(start_paused = true)]
async fn messages_do_not_overtake_text() {
    let (publisher, published) = publisher();
    let parent = parent();
    publisher.publish_status(&parent, "busy");
    publisher.publish_text(&parent, Stdout, "one ");
    publisher.publish_text(&parent, Stdout, "");
    publisher.publish_text(&parent, Stdout, "two");
    publisher.publish_text(&parent, Stderr, "three");
    publisher.publish_text(&parent, Stdout, "four");
    publisher.publish_new(&parent, "display_data", &json!({}));
    publisher.publish_text(&parent, Stdout, "five");
    publisher.publish_status(&parent, "idle");
    let all = [
        "busy",
        "stdout: one two",
        "stderr: three",
        "stdout: four",
        "display_data",
        "stdout: five",
        "idle",
    ];
    assert_eq!(
        take_published(&published),
        all.map(|summary| expected(0, summary))
    );
}

#[tokio::test(start_paused = true)]
async fn text_of_two_parents_is_not_mixed() {
    let (publisher, published) = publisher();
    let (one, two) = (parent(), parent());
    publisher.publish_text(&one, Stdout, "1");
    publisher.publish_text(&two, Stdout, "2");
    publisher.publish_text(&one, Stdout, "3");
    publisher.flush();
    let messages = std::mem::take(&mut *published.lock().unwrap());
    let expected = [(&one, "1"), (&two, "2"), (&one, "3")]
        .map(|(parent, text)| (0, parent.header.msg_id.clone(), format!("stdout: {text}")));
    assert_eq!(messages, expected);
}

#[tokio::test(start_paused = true)]
async fn long_text_is_published_at_once() {
    let (publisher, published) = publisher();
    let parent = parent();
    let half = "x".repeat(BATCH_SIZE_LIMIT / 2);
    publisher.publish_text(&parent, Stdout, &half);
    assert_eq!(take_published(&published), []);
    publisher.publish_text(&parent, Stdout, &half);
    assert_eq!(
        take_published(&published),
        [expected(0, &format!("stdout: {half}{half}"))]
    );
}

#[tokio::test(start_paused = true)]
async fn text_after_other_text_has_its_own_delay() {
    let (publisher, published) = publisher();
    let parent = parent();
    publisher.publish_text(&parent, Stdout, "a");
    sleep(Duration::from_millis(50)).await;
    publisher.publish_text(&parent, Stderr, "b");
    sleep(Duration::from_millis(200)).await;
    assert_eq!(
        take_published(&published),
        [expected(50, "stdout: a"), expected(130, "stderr: b")]
    );
}
