//! [`InputRequests`]: passes `input()` requests to the client that follows a run.

use cellwright_kernel::{InputProvider, Prompt};
use tokio::sync::{mpsc, oneshot};

/// Questions of a run, for the one who answers them. Dropped, nobody does: whoever goes, or does not wait
/// any longer, leaves the code without an answer.
#[derive(Default)]
pub(super) struct InputRequests {
    coming: Option<mpsc::UnboundedReceiver<PendingInput>>,
    /// Who waits for an answer.
    waiting: Option<oneshot::Sender<Option<String>>>,
}

/// A question, and where the answer goes.
struct PendingInput {
    prompt: Prompt,
    answer: oneshot::Sender<Option<String>>,
}

impl InputRequests {
    /// Both ends.
    pub(super) fn new() -> (Self, InputProvider) {
        let (sender, coming) = mpsc::unbounded_channel();
        let asker = InputProvider::new(move |prompt| {
            let (answer, answered) = oneshot::channel();
            let sent = sender.send(PendingInput { prompt, answer });
            Box::pin(async move {
                sent.ok()?;
                answered.await.ok().flatten()
            })
        });
        let questions = Self {
            coming: Some(coming),
            waiting: None,
        };
        (questions, asker)
    }

    /// The next question. Cancel-safe.
    pub(super) async fn next(&mut self) -> Prompt {
        if let Some(coming) = &mut self.coming
            && let Some(asked) = coming.recv().await
        {
            self.waiting = Some(asked.answer);
            return asked.prompt;
        }
        std::future::pending().await
    }

    /// Whether somebody is being asked: people take their time.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_closed())
    }

    /// What somebody said to the last one.
    pub(super) fn answer(&mut self, text: Option<String>) {
        if let Some(waiting) = self.waiting.take() {
            // Code that was stopped meanwhile does not want to know.
            waiting.send(text).ok();
        }
    }
}
