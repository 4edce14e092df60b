//! [`InputRequests`]: passes `input()` requests to the client that follows a run.

use cellwright_kernel::{InputProvider, Prompt};
use tokio::sync::{mpsc, oneshot};

/// The input requests of a run, for the client that answers them. When the client is gone, this is dropped and the
/// code receives no answer.
#[derive(Default)]
pub(super) struct InputRequests {
    requests: Option<mpsc::UnboundedReceiver<PendingInput>>,
    /// Receives the answer to the current request.
    waiting: Option<oneshot::Sender<Option<String>>>,
}

/// An input request with the receiver of its answer.
struct PendingInput {
    prompt: Prompt,
    answer: oneshot::Sender<Option<String>>,
}

impl InputRequests {
    /// Returns the requests and the provider for the job.
    pub(super) fn new() -> (Self, InputProvider) {
        let (sender, requests) = mpsc::unbounded_channel();
        let provider = InputProvider::new(move |prompt| {
            let (answer, answered) = oneshot::channel();
            let sent = sender.send(PendingInput { prompt, answer });
            Box::pin(async move {
                sent.ok()?;
                answered.await.ok().flatten()
            })
        });
        let input_requests = Self {
            requests: Some(requests),
            waiting: None,
        };
        (input_requests, provider)
    }

    /// Returns the prompt of the next request. Cancel-safe.
    pub(super) async fn next(&mut self) -> Prompt {
        if let Some(requests) = &mut self.requests
            && let Some(request) = requests.recv().await
        {
            self.waiting = Some(request.answer);
            return request.prompt;
        }
        std::future::pending().await
    }

    /// Whether a request waits for an answer. Time limits do not apply then.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_closed())
    }

    /// Answers the current request.
    pub(super) fn answer(&mut self, text: Option<String>) {
        if let Some(waiting) = self.waiting.take() {
            // The code may have been stopped since.
            waiting.send(text).ok();
        }
    }
}
