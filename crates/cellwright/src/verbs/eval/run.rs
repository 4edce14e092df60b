//! Cells on a kernel, one after the other, with what is seen of them meanwhile.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::{Kernel, KernelError, LateText, Request, Stdin, Stop, StopReason, Stopper};
use cellwright_output::{Capture, Event, Limits, Sink};
use tokio::signal::unix::{SignalKind, signal};

use super::report::{CellReport, EvalAnswer, KernelReport, Status};
use crate::bridge::{Bridge, Door};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::inside::Inside;
use crate::live::{Extent, Face, Trouble};
use crate::screen::Screen;

/// The signal of a file that has become too large.
const SIGXFSZ: i32 = 25;

/// How many descriptors a run needs at the least.
const DESCRIPTORS: usize = 14;

/// How long a kernel whose cells did not end well may take to end itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a kernel that ends with the call is told about its session.
const SESSION: &str = "per-call";

/// What is to be run.
pub(super) struct Job {
    pub(super) cells: Vec<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) answers: Vec<String>,
    /// The script that the first cell is.
    pub(super) file: Option<PathBuf>,
    pub(super) extent: Extent,
}

/// Runs a job on a fresh runner, which is gone afterwards.
pub(super) fn run(
    job: Job,
    spec: &RunnerSpec,
    engine: &Engine,
    screen: &Screen,
) -> Result<EvalAnswer, Failure> {
    check_descriptors()?;
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

/// The runtime panics when it cannot have the descriptors it needs; so they are asked for before.
fn check_descriptors() -> Result<(), Failure> {
    let mut open = Vec::new();
    for _ in 0..DESCRIPTORS {
        match std::fs::File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(source) => return Err(KernelError::exhausted_by(source).into()),
        }
    }
    Ok(())
}

/// Turns Ctrl-C and the like into a stop; a second one does not wait for the code. Never ends.
fn watch_signals(stopper: Stopper) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // A file that may not grow any more is an error for whoever writes it, not the end of us.
    let _too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
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
    // The way back opens while Python starts.
    let (started, bridge) = tokio::join!(Runner::start(spec, &deadline), Bridge::start());
    let mut kernel: Box<dyn Kernel> = match started {
        Ok(runner) => Box::new(runner),
        Err(KernelError::StoppedEarly { reason }) => {
            return Ok(EvalAnswer::never_started(job.cells.len(), reason));
        }
        Err(error) => return Err(error.into()),
    };
    let mut answer = EvalAnswer::new(KernelReport::of(kernel.description()));
    let inside = Inside::new(bridge.as_ref().ok(), Door::of(spec, SESSION));
    let ready = inside.prepare(kernel.as_mut(), engine, &spec.cwd, &deadline);
    let ready = match ready.await {
        Ok(ready) => ready,
        Err(KernelError::StoppedEarly { reason }) => {
            return Ok(EvalAnswer::never_started(job.cells.len(), reason));
        }
        Err(error) => return Err(error.into()),
    };
    answer.tell(ready.notices);
    let stdin = Stdin::Answers(job.answers.iter().cloned().collect());
    let mut running: Vec<(CellReport, Tee<'_>)> = Vec::new();
    // What was said while it started: before everything else.
    let mut early = kernel.take_late();
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
        for late in early.drain(..) {
            tee.push(text_of(&late));
        }
        let request = Request {
            stdin: stdin.clone(),
            env: inside.env(),
            file: job.file.clone().filter(|_| index == 0),
            ..Request::new(code.clone())
        };
        let begin = Instant::now();
        let open = inside.cell(&deadline);
        let result = kernel.execute(&request, &mut tee, &deadline).await;
        drop(open);
        let mut cell = CellReport::new(index, begin.elapsed());
        answer.take(&mut cell, result);
        tee.face.finish();
        running.push((cell, tee));
        attribute(&kernel.take_late(), ready.requests, &mut running);
    }
    // As Python does at its end: threads are waited for as long as there is time.
    let patience = if deadline.reason().is_none() && answer.status == Status::Ok {
        deadline
    } else {
        Stop::never().with_timeout(FAREWELL)
    };
    let farewell = kernel.shutdown(patience).await;
    answer.farewell(&farewell);
    attribute(&farewell.late, ready.requests, &mut running);
    for (cell, mut tee) in running {
        tee.face.finish();
        answer.unseen(tee.face.trouble());
        answer.finish(cell, tee.capture.finish());
    }
    answer.cells.sort_by_key(|cell| cell.index);
    Ok(answer)
}

/// Gives what threads and children said after their cell to that cell; those of modules, which were
/// the kernel's first `requests`, to the first one.
fn attribute(late: &[LateText], requests: u64, running: &mut [(CellReport, Tee<'_>)]) {
    for late in late {
        let number = late.request.saturating_sub(requests);
        let position = usize::try_from(number).unwrap_or(0).saturating_sub(1);
        if let Some((_, tee)) = running.get_mut(position) {
            tee.push(text_of(late));
        }
    }
}

fn text_of(late: &LateText) -> Event<'_> {
    let (stream, bytes) = (late.stream, late.bytes.as_slice());
    Event::Text { stream, bytes }
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
        if self.face.trouble() == Some(&Trouble::Closed) {
            // Nobody wants to know the rest.
            self.stopper.stop(StopReason::Cancelled);
        }
        self.capture.push(event);
    }
}
