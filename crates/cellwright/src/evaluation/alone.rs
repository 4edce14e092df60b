//! An evaluation on a kernel of its own, which is gone afterwards.

use std::sync::Arc;

use cellwright_kernel::session::{Launch, Policy, run_once};
use cellwright_kernel::{KernelError, Stop, StopReason, Stopper};
use cellwright_run::Places;
use tokio::signal::unix::{SignalKind, signal};

use super::viewer::{self, View};
use super::{EvalAnswer, Evaluation, Wish};
use crate::failure::Failure;
use crate::feed::Beyond;
use crate::live::{Extent, Trouble};
use crate::screen::Screen;

/// The signal of a file that has become too large.
const SIGXFSZ: i32 = 25;

/// How many descriptors a run needs at the least.
const DESCRIPTORS: usize = 14;

/// Runs it, and shows what it says meanwhile; also gives why that did not arrive, if so.
pub(crate) fn run(
    wish: &Wish,
    launch: Arc<dyn Launch>,
    places: Places,
    screen: &Screen,
    view: View,
) -> Result<(EvalAnswer, Option<Trouble>), Failure> {
    let runtime = runtime()?;
    let (stopper, stop) = Stop::new();
    let (evaluation, stage) = Evaluation::new(wish, None, places, stopper.clone(), None)?;
    let unseen = std::thread::scope(|scope| {
        let viewer = (view.extent != Extent::Nothing).then(|| {
            let feed = evaluation.follow(Beyond::Disk);
            let limits = wish.shown.limits();
            viewer::spawn(scope, feed, screen, view, limits, stopper.clone())
        });
        let ran = runtime.block_on(async {
            let mut signals = tokio::task::JoinSet::new();
            signals.spawn(watch_signals(stopper.clone())?);
            let job = wish.job("", (stopper.clone(), stop), stage, None);
            run_once(launch, Policy::default(), job).await;
            Ok::<_, Failure>(())
        });
        ran?;
        // A viewer that came to grief has shown what it could.
        Ok::<_, Failure>(viewer.and_then(|viewer| viewer.join().ok().flatten()))
    })?;
    let mut answer = evaluation
        .with_answer(|answer| std::mem::replace(answer, EvalAnswer::new(None, &Wish::default())));
    match answer.take_refusal() {
        Some(refusal) => Err(refusal),
        None => Ok((answer, unseen)),
    }
}

/// A runtime of one thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    check_descriptors(DESCRIPTORS)?;
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// An error unless this process can still have so many descriptors. Some things panic without them, or
/// stop working; so they are asked for before.
pub(crate) fn check_descriptors(count: usize) -> Result<(), KernelError> {
    let mut open = Vec::new();
    for _ in 0..count {
        match std::fs::File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(source) => return Err(KernelError::exhausted_by(source)),
        }
    }
    Ok(())
}

/// Turns Ctrl-C and the like into a stop; a second one does not wait for the code. Never ends.
pub(crate) fn watch_signals(stopper: Stopper) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // A file that may not grow any more is an error for whoever writes it, not the end of us.
    let _too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let reason = StopReason::Cancelled;
            if stopper.is_pulled() {
                stopper.stop_at_once(reason);
            } else {
                stopper.stop(reason);
            }
        }
    })
}
