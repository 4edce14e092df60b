//! Who waits for a session: first come, first served; a waiter can leave.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::job::{Job, refused};
use super::launch::Launch;
use crate::error::KernelError;
use crate::kernel::{BoxFuture, Question};
use crate::stop::{Stop, StopReason};

/// What a caller waits for.
pub(super) enum Task {
    Run {
        job: Box<Job>,
        /// Counts from when it was asked for.
        first: Stop,
        /// How often the session had been reset then.
        resets: u32,
        /// How this caller would have a kernel started.
        launch: Arc<dyn Launch>,
    },
    Ask {
        question: Question,
        stop: Stop,
        reply: oneshot::Sender<Result<Value, KernelError>>,
    },
}

impl Task {
    pub(super) fn stop(&self) -> &Stop {
        match self {
            Self::Run { first, .. } => first,
            Self::Ask { stop, .. } => stop,
        }
    }

    /// Tells whoever waits for it that it will not be done.
    pub(super) fn refuse(self, error: KernelError) {
        match self {
            Self::Run { job, .. } => refused(job.audience, error),
            Self::Ask { reply, .. } => {
                // Whoever asked may have gone.
                reply.send(Err(error)).ok();
            }
        }
    }
}

struct Waiter {
    task: Task,
    left: BoxFuture<'static, StopReason>,
}

/// The waiters, in order.
#[derive(Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
}

impl Queue {
    pub(super) fn push(&mut self, task: Task) {
        let stop = task.stop().clone();
        self.waiters.push_back(Waiter {
            task,
            left: Box::pin(async move { stop.pulled().await }),
        });
    }

    pub(super) fn pop(&mut self) -> Option<Task> {
        self.waiters.pop_front().map(|waiter| waiter.task)
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Waits until a waiter leaves. Cancel-safe.
    pub(super) async fn leaver(&mut self) -> (Task, StopReason) {
        poll_fn(|context| {
            for index in 0..self.waiters.len() {
                let Some(waiter) = self.waiters.get_mut(index) else {
                    break;
                };
                if let Poll::Ready(reason) = waiter.left.as_mut().poll(context)
                    && let Some(waiter) = self.waiters.remove(index)
                {
                    return Poll::Ready((waiter.task, reason));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The stop for the first cell of a job, from now on.
pub(super) fn first_stop(job: &Job) -> Stop {
    limited(&job.stop, job.cells.first().and_then(|cell| cell.timeout))
}

/// A stop with a limit, if there is one.
pub(super) fn limited(stop: &Stop, timeout: Option<std::time::Duration>) -> Stop {
    match timeout {
        Some(timeout) => stop.with_timeout(timeout),
        None => stop.clone(),
    }
}

/// When something began, in both ways of counting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) wall: std::time::SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self {
            instant: Instant::now(),
            wall: std::time::SystemTime::now(),
        }
    }
}
