//! [`Publisher`]: what a kernel tells everybody, with text that comes in drops made into streams.
//!
//! A message for each word would cost clients more than the words. So text waits for [`BATCH`], or until
//! something else is to be said: what is told is always told in the order in which it happened.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::message::Message;

/// How long text waits for more of its kind.
pub const BATCH: Duration = Duration::from_millis(80);

/// Text from this length on waits no longer.
pub const LONG: usize = 64 * 1024;

/// Which of a kernel's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStream {
    /// What is printed.
    Stdout,
    /// What is complained.
    Stderr,
}

/// Tells everybody. All of its copies tell in one order.
#[derive(Clone)]
pub struct Publisher {
    shared: Arc<Shared>,
    /// The clock, which ends with the last copy.
    _clock: Arc<Clock>,
}

struct Shared {
    session: String,
    state: Mutex<State>,
    /// There is text where there was none.
    begun: Notify,
}

struct State {
    sink: Box<dyn FnMut(&Message) + Send>,
    pending: Option<Pending>,
}

/// Text that waits.
struct Pending {
    cause: Message,
    stream: TextStream,
    text: String,
    due: Instant,
}

struct Clock(AbortHandle);

impl Drop for Clock {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Publisher {
    /// Publishes through `sink`, which must not wait; text that is due is sent by a task on `runtime`.
    pub fn new(
        runtime: &Handle,
        session: String,
        sink: impl FnMut(&Message) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            session,
            state: Mutex::new(State {
                sink: Box::new(sink),
                pending: None,
            }),
            begun: Notify::new(),
        });
        let clock = runtime.spawn(tick(Arc::clone(&shared)));
        Self {
            shared,
            _clock: Arc::new(Clock(clock.abort_handle())),
        }
    }

    /// Tells text that `cause` made the kernel print.
    pub fn text(&self, cause: &Message, stream: TextStream, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        let same = |pending: &&mut Pending| {
            pending.stream == stream && pending.cause.raw_header == cause.raw_header
        };
        if let Some(pending) = state.pending.as_mut().filter(same) {
            pending.text.push_str(text);
        } else {
            self.shared.flush(&mut state);
            state.pending = Some(Pending {
                cause: cause_only(cause),
                stream,
                text: text.to_owned(),
                due: Instant::now() + BATCH,
            });
            self.shared.begun.notify_one();
        }
        let length = state
            .pending
            .as_ref()
            .map_or(0, |pending| pending.text.len());
        if length >= LONG {
            self.shared.flush(&mut state);
        }
    }

    /// Tells anything else, after the text that waits.
    pub fn publish(&self, message: &Message) {
        let mut state = self.shared.lock();
        self.shared.flush(&mut state);
        (state.sink)(message);
    }

    /// Tells something that `cause` made happen.
    pub fn tell(&self, cause: &Message, msg_type: &str, content: &Value) {
        let message = Message::new(msg_type, &self.shared.session, content).caused_by(cause);
        self.publish(&topical(message));
    }

    /// Tells whether the kernel is `busy` or `idle` because of `cause`.
    pub fn status(&self, cause: &Message, state: &str) {
        self.tell(cause, "status", &json!({ "execution_state": state }));
    }

    /// Tells the text that waits.
    pub fn flush(&self) {
        self.shared.flush(&mut self.shared.lock());
    }
}

impl Shared {
    fn flush(&self, state: &mut State) {
        if let Some(pending) = state.pending.take() {
            let name = match pending.stream {
                TextStream::Stdout => "stdout",
                TextStream::Stderr => "stderr",
            };
            let content = json!({ "name": name, "text": pending.text });
            let message = Message::new("stream", &self.session, &content);
            (state.sink)(&topical(message.caused_by(&pending.cause)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends text when it is due.
async fn tick(shared: Arc<Shared>) {
    loop {
        let due = shared.lock().pending.as_ref().map(|pending| pending.due);
        match due {
            None => shared.begun.notified().await,
            Some(due) if due > Instant::now() => sleep_until(due).await,
            Some(_) => {
                let mut state = shared.lock();
                // Meanwhile it may have become another text, that may wait longer.
                let overdue = |pending: &Pending| pending.due <= Instant::now();
                if state.pending.as_ref().is_some_and(overdue) {
                    shared.flush(&mut state);
                }
            }
        }
    }
}

/// Under its own type as the topic, for clients that want to hear only some.
fn topical(mut message: Message) -> Message {
    let topic = message.header.msg_type.clone();
    message.identities = vec![topic.into()];
    message
}

/// What is needed of a cause: a request may be large.
fn cause_only(cause: &Message) -> Message {
    Message {
        raw_header: cause.raw_header.clone(),
        ..Message::default()
    }
}
