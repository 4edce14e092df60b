//! The calls that wait for a session: first in, first out. A call leaves the queue when it is stopped.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::job::{Job, reject_job};
use super::launcher::KernelLauncher;
use crate::error::KernelError;
use crate::kernel::{BoxFuture, KernelQuery};
use crate::stop::{StopReason, StopSignal, TimeLimit};

/// A call to a session.
pub(super) enum QueuedCall {
    Run {
        job: Box<Job>,
        /// Ends the wait for the session.
        queue_stop: StopSignal,
        /// The session's reset count when the call was made.
        resets_seen: u32,
        /// Starts a kernel for this caller.
        launcher: Arc<dyn KernelLauncher>,
    },
    Query {
        query: KernelQuery,
        stop: StopSignal,
        reply: oneshot::Sender<Result<Value, KernelError>>,
    },
}

impl QueuedCall {
    pub(super) fn stop(&self) -> &StopSignal {
        match self {
            Self::Run { queue_stop, .. } => queue_stop,
            Self::Query { stop, .. } => stop,
        }
    }

    /// Reports to the caller that the call will not be served.
    pub(super) fn reject(self, error: KernelError) {
        match self {
            Self::Run { job, .. } => reject_job(job.observer, error),
            Self::Query { reply, .. } => {
                // Fails if the caller no longer waits.
                reply.send(Err(error)).ok();
            }
        }
    }
}

struct Waiter {
    call: QueuedCall,
    stopped: BoxFuture<'static, StopReason>,
}

/// The waiting calls, in order.
#[derive(Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
}

impl Queue {
    pub(super) fn push(&mut self, call: QueuedCall) {
        let stop = call.stop().clone();
        self.waiters.push_back(Waiter {
            call,
            stopped: Box::pin(async move { stop.requested().await }),
        });
    }

    pub(super) fn pop(&mut self) -> Option<QueuedCall> {
        self.waiters.pop_front().map(|waiter| waiter.call)
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Waits until a waiting call is stopped, and removes it. Cancel-safe.
    pub(super) async fn next_stopped(&mut self) -> (QueuedCall, StopReason) {
        poll_fn(|context| {
            for index in 0..self.waiters.len() {
                let Some(waiter) = self.waiters.get_mut(index) else {
                    break;
                };
                if let Poll::Ready(reason) = waiter.stopped.as_mut().poll(context)
                    && let Some(waiter) = self.waiters.remove(index)
                {
                    return Poll::Ready((waiter.call, reason));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signal that ends the wait of a job for its session. Its limit starts now.
pub(super) fn queue_stop(job: &Job) -> StopSignal {
    with_limit(&job.stop, TimeLimit::Queue, job.queue_timeout)
}

/// The signal, with a limit if there is one.
pub(super) fn with_limit(
    stop: &StopSignal,
    limit: TimeLimit,
    after: Option<Duration>,
) -> StopSignal {
    match after {
        Some(after) => stop.with_limit(limit, after),
        None => stop.clone(),
    }
}
