//! Cells on a kernel, one after the other, with what is seen of them meanwhile.

use std::time::{Duration, Instant};

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::{Kernel, KernelError, Request, Stdin, Stop, StopReason, Stopper};
use cellwright_output::{Capture, Event, Limits, Sink};
use tokio::signal::unix::{SignalKind, signal};

use super::report::{CellReport, EvalAnswer, KernelReport, Status};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::live::{Extent, Face};
use crate::screen::Screen;

/// What is to be run.
pub(super) struct Job {
    pub(super) cells: Vec<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) answers: Vec<String>,
    pub(super) extent: Extent,
}

/// Runs a job on a fresh runner, which is gone afterwards.
pub(super) fn run(
    job: Job,
    spec: &RunnerSpec,
    engine: &Engine,
    screen: &Screen,
) -> Result<EvalAnswer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (stopper, stop) = Stop::new();
        let mut signals = tokio::task::JoinSet::new();
        signals.spawn(watch_signals(stopper.clone())?);
        run_cells(job, spec, engine, screen, &stopper, &stop).await
    })
}

/// Turns Ctrl-C and the like into a stop; a second one does not wait for the code. Never ends.
fn watch_signals(stopper: Stopper) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            let reason = tokio::select! {
                _ = interrupt.recv() => StopReason::Cancelled,
                _ = terminate.recv() => StopReason::ShuttingDown,
                _ = hangup.recv() => StopReason::ShuttingDown,
            };
            if stopper.is_pulled() {
                stopper.stop_at_once(reason);
            } else {
                stopper.stop(reason);
            }
        }
    })
}

async fn run_cells(
    job: Job,
    spec: &RunnerSpec,
    engine: &Engine,
    screen: &Screen,
    stopper: &Stopper,
    stop: &Stop,
) -> Result<EvalAnswer, Failure> {
    let limited = |stop: &Stop| match job.timeout {
        Some(timeout) => stop.with_timeout(timeout),
        None => stop.clone(),
    };
    // One deadline for the start and the first cell.
    let mut deadline = limited(stop);
    let mut kernel: Box<dyn Kernel> = match Runner::start(spec, &deadline).await {
        Ok(runner) => Box::new(runner),
        Err(KernelError::StoppedEarly { reason }) => {
            return Ok(EvalAnswer::never_started(job.cells.len(), reason));
        }
        Err(error) => return Err(error.into()),
    };
    let mut answer = EvalAnswer::new(KernelReport::of(kernel.description()));
    let stdin = Stdin::Answers(job.answers.iter().cloned().collect());
    let mut running: Vec<(CellReport, Tee<'_>)> = Vec::new();
    for (index, code) in job.cells.iter().enumerate() {
        if answer.status != Status::Ok {
            answer.skipped(index);
            continue;
        }
        if index > 0 {
            deadline = limited(stop);
        }
        let mut tee = Tee {
            capture: Capture::new(Limits::default(), engine.artifacts.clone()),
            face: Face::new(screen, job.extent),
            stopper: stopper.clone(),
        };
        let request = Request {
            stdin: stdin.clone(),
            ..Request::new(code.clone())
        };
        let begin = Instant::now();
        let result = kernel.execute(&request, &mut tee, &deadline).await;
        let mut cell = CellReport::new(index, begin.elapsed());
        answer.take(&mut cell, result);
        tee.face.finish();
        running.push((cell, tee));
    }
    let farewell = kernel.shutdown().await;
    // What threads and children said after their cell, until the kernel was gone.
    for late in &farewell.late {
        let position = usize::try_from(late.request).unwrap_or(0).saturating_sub(1);
        if let Some((_, tee)) = running.get_mut(position) {
            let (stream, bytes) = (late.stream, late.bytes.as_slice());
            tee.push(Event::Text { stream, bytes });
        }
    }
    for (cell, mut tee) in running {
        tee.face.finish();
        answer.closed |= tee.face.is_closed();
        answer.finish(cell, tee.capture.finish());
    }
    answer.cells.sort_by_key(|cell| cell.index);
    Ok(answer)
}

/// Keeps what comes, and shows it.
pub(super) struct Tee<'a> {
    capture: Capture,
    face: Face<'a>,
    stopper: Stopper,
}

impl Sink for Tee<'_> {
    fn push(&mut self, event: Event<'_>) {
        self.face.show(&event);
        if self.face.is_closed() {
            // Nobody wants to know the rest.
            self.stopper.stop(StopReason::Cancelled);
        }
        self.capture.push(event);
    }
}
