//! [`Publisher`]: publishes a kernel's messages on iopub, with short pieces of text combined into `stream` messages.
//!
//! One message per word would be expensive for clients. Text therefore waits for [`BATCH_DELAY`], or until
//! another message is published: messages keep the order in which they were made.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cellwright_stdext::LockExt;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::message::Message;

/// Time that text waits for more text of the same stream.
pub const BATCH_DELAY: Duration = Duration::from_millis(80);

/// Text of at least this many bytes is published at once.
pub const BATCH_SIZE_LIMIT: usize = 64 * 1024;

/// A kernel's standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Publishes messages on iopub. All clones share one order.
#[derive(Clone)]
pub struct Publisher {
    shared: Arc<PublisherShared>,
    /// Publishes text when it is due. Dropping the last clone ends it.
    _flush_task: Arc<FlushTask>,
}

struct PublisherShared {
    session: String,
    state: Mutex<PublisherState>,
    /// Text was added where there was none.
    text_added: Notify,
}

struct PublisherState {
    sink: Box<dyn FnMut(&Message) + Send>,
    pending: Option<PendingText>,
}

/// Text that waits to be published.
struct PendingText {
    parent: Message,
    stream: TextStream,
    text: String,
    due: Instant,
}

/// The task that publishes text when it is due.
struct FlushTask(AbortHandle);

impl Drop for FlushTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Publisher {
    /// Publishes through `sink`, which must not block. A task on `runtime` publishes text when it is due.
    pub fn new(
        runtime: &Handle,
        session: String,
        sink: impl FnMut(&Message) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(PublisherShared {
            session,
            state: Mutex::new(PublisherState {
                sink: Box::new(sink),
                pending: None,
            }),
            text_added: Notify::new(),
        });
        let task = runtime.spawn(flush_when_due(Arc::clone(&shared)));
        Self {
            shared,
            _flush_task: Arc::new(FlushTask(task.abort_handle())),
        }
    }

    /// Publishes text that the kernel printed while it handled `parent`.
    pub fn publish_text(&self, parent: &Message, stream: TextStream, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        let is_same_text = |pending: &&mut PendingText| {
            pending.stream == stream && pending.parent.raw_header == parent.raw_header
        };
        if let Some(pending) = state.pending.as_mut().filter(is_same_text) {
            pending.text.push_str(text);
        } else {
            self.shared.flush(&mut state);
            state.pending = Some(PendingText {
                parent: parent_only(parent),
                stream,
                text: text.to_owned(),
                due: Instant::now() + BATCH_DELAY,
            });
            self.shared.text_added.notify_one();
        }
        let length = state
            .pending
            .as_ref()
            .map_or(0, |pending| pending.text.len());
        if length >= BATCH_SIZE_LIMIT {
            self.shared.flush(&mut state);
        }
    }

    /// Publishes a message, after the text that waits.
    pub fn publish(&self, message: &Message) {
        let mut state = self.shared.lock();
        self.shared.flush(&mut state);
        (state.sink)(message);
    }

    /// Publishes a new message caused by `parent`.
    pub fn publish_new(&self, parent: &Message, msg_type: &str, content: &Value) {
        let message = Message::new(msg_type, &self.shared.session, content).with_parent(parent);
        self.publish(&with_topic(message));
    }

    /// Publishes the execution state (`busy` or `idle`) of the kernel while it handles `parent`.
    pub fn publish_status(&self, parent: &Message, state: &str) {
        self.publish_new(parent, "status", &json!({ "execution_state": state }));
    }

    /// Publishes the text that waits.
    pub fn flush(&self) {
        self.shared.flush(&mut self.shared.lock());
    }
}

impl PublisherShared {
    fn flush(&self, state: &mut PublisherState) {
        if let Some(pending) = state.pending.take() {
            let name = match pending.stream {
                TextStream::Stdout => "stdout",
                TextStream::Stderr => "stderr",
            };
            let content = json!({ "name": name, "text": pending.text });
            let message = Message::new("stream", &self.session, &content);
            (state.sink)(&with_topic(message.with_parent(&pending.parent)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PublisherState> {
        self.state.lock_ignoring_poison()
    }
}

/// Publishes text when it is due.
async fn flush_when_due(shared: Arc<PublisherShared>) {
    loop {
        let due = shared.lock().pending.as_ref().map(|pending| pending.due);
        match due {
            None => shared.text_added.notified().await,
            Some(due) if due > Instant::now() => sleep_until(due).await,
            Some(_) => {
                let mut state = shared.lock();
                // It may be another text by now, which is due later.
                let overdue = |pending: &PendingText| pending.due <= Instant::now();
                if state.pending.as_ref().is_some_and(overdue) {
                    shared.flush(&mut state);
                }
            }
        }
    }
}

/// Sets the message type as the topic, for clients that subscribe to some types only.
fn with_topic(mut message: Message) -> Message {
    let topic = message.header.msg_type.clone();
    message.identities = vec![topic.into()];
    message
}

/// Copies only the header of a parent: a request may be large.
fn parent_only(parent: &Message) -> Message {
    Message {
        raw_header: parent.raw_header.clone(),
        ..Message::default()
    }
}
