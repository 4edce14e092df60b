//! A bug of ours is an answer, not silence: without one a client waits for ever.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future whose panics are results.
pub(super) struct Guarded<F>(Pin<Box<F>>);

impl<F: Future> Guarded<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // What a call holds is not used again after it.
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)));
        match polled {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_result() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let fine = runtime.block_on(Guarded::new(async { 1 }));
        assert_eq!(fine.unwrap(), 1);
        let broken = Guarded::new(async {
            tokio::task::yield_now().await;
            assert!(std::env::args().count() == 0, "broken");
        });
        assert!(runtime.block_on(broken).is_err());
    }
}
