//! The task that a session is: it owns the kernel, runs one job after the other, and hears meanwhile
//! what else is wanted.

use std::sync::Arc;
use std::time::Duration;

use cellwright_output::Event;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Policy;
use super::bench::{Bench, Executed};
use super::desk::{Command, Desk};
use super::job::{CellEnd, Failing, Job, Notice, Then};
use super::launch::Launch;
use super::queue::{Moment, Task, first_stop, limited};
use super::report::{Activity, Face};
use super::spare::Spares;
use crate::error::{KernelError, Retry};
use crate::kernel::{Ending, LateText, Question, State};
use crate::stop::{Stop, StopReason};

/// How long a kernel whose last cell did not end well may take to end itself.
const SHORT_FAREWELL: Duration = Duration::from_secs(1);

pub(super) struct Worker {
    desk: Desk,
    bench: Bench,
}

/// What a worker is made of.
pub(super) struct Making {
    pub(super) launch: Arc<dyn Launch>,
    pub(super) spares: Spares,
    pub(super) policy: Policy,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) end: Stop,
    pub(super) face: Face,
}

/// Runs a job on a kernel that nobody else has and that is gone afterwards.
pub async fn run_once(launch: Arc<dyn Launch>, policy: Policy, mut job: Job) {
    job.then = Then::End;
    let (commands, receiver) = mpsc::channel(1);
    let worker = Worker::new(Making {
        launch: Arc::clone(&launch),
        spares: Spares::none(),
        policy,
        commands: receiver,
        end: Stop::never(),
        face: Face::new(),
    });
    let task = Task::Run {
        first: first_stop(&job),
        job: Box::new(job),
        resets: 0,
        launch,
    };
    // It has room for one.
    commands.try_send(Command::Do(task)).ok();
    drop(commands);
    worker.run().await;
}

impl Worker {
    pub(super) fn new(making: Making) -> Self {
        let face = making.face;
        Self {
            bench: Bench::new(making.launch, making.spares, making.policy, face.clone()),
            desk: Desk::new(making.commands, making.end, face),
        }
    }

    /// Serves the session until it is ended.
    pub(super) async fn run(mut self) {
        while !self.desk.is_ending() && !self.desk.is_deserted() {
            if !self.desk.resets.is_empty() {
                self.reset().await;
                continue;
            }
            match self.desk.queue.pop() {
                Some(Task::Run {
                    job,
                    first,
                    resets,
                    launch,
                }) => {
                    self.bench.launch = launch;
                    self.job(*job, first, resets).await;
                }
                Some(Task::Ask {
                    question,
                    stop,
                    reply,
                }) => self.ask(&question, &stop, reply).await,
                None => {
                    if let Some(Some(loss)) = self.desk.idle(self.bench.attend()).await {
                        self.desk.during(None, self.bench.bury(loss)).await;
                    }
                }
            }
        }
        self.desk.close();
        self.bench.close().await;
    }

    /// Everybody who wants a fresh kernel gets the same one.
    async fn reset(&mut self) {
        let (bench, never) = (&mut self.bench, Stop::never());
        let renewed = self.desk.during_life(async {
            bench.renew().await;
            bench.ready(&never).await
        });
        let Some(result) = renewed.await else {
            // Whoever waits for it is told when the desk closes.
            return;
        };
        let generation = match result {
            Ok(()) => self.bench.generation,
            // The next call starts one, and will find out for itself.
            Err(_) => 0,
        };
        // Also for those who came in the last moment.
        self.desk.catch_up();
        for reply in self.desk.resets.drain(..) {
            self.desk.face.answered();
            reply.send(Ok(generation)).ok();
        }
    }

    async fn ask(
        &mut self,
        question: &Question,
        stop: &Stop,
        reply: oneshot::Sender<Result<Value, KernelError>>,
    ) {
        let answer = match stop.reason() {
            Some(reason) => Err(KernelError::StoppedEarly { reason }),
            None => self
                .desk
                .during_life(self.bench.ask(question, stop))
                .await
                .unwrap_or(Err(KernelError::SessionEnded)),
        };
        self.desk.face.answered();
        reply.send(answer).ok();
    }

    async fn job(&mut self, mut job: Job, first: Stop, resets: u32) {
        let since = Moment::now().wall;
        self.desk.face.with(|look| {
            look.activity = Activity::Busy {
                owner: job.owner.clone(),
                label: job.label.clone(),
                since,
            };
        });
        let mut run = Run {
            resets,
            introduced: 0,
            requests: Vec::new(),
        };
        let mut stop = first;
        let mut well = true;
        for index in 0..job.cells.len() {
            if index > 0 {
                stop = limited(&job.stop, job.cells[index].timeout);
            }
            well = self.cell(&mut job, index, &stop, &mut run).await;
            if !well {
                break;
            }
        }
        if job.then == Then::End {
            // As Python does at its end: threads are waited for as long as there is time.
            let patience = if well && stop.reason().is_none() {
                stop
            } else {
                Stop::never().with_timeout(SHORT_FAREWELL)
            };
            let end = self.bench.end(patience);
            let farewell = self.desk.during(Some(&job.stopper), end).await;
            if let Some(farewell) = farewell {
                job.audience.farewell(&farewell);
                let generation = self.bench.generation;
                for late in farewell.late {
                    if let Some(late) = run.give(generation, late, &mut job) {
                        self.bench.keep_late(generation, late);
                    }
                }
            }
        }
        let activity = self.bench.activity();
        self.desk.face.with(|look| look.activity = activity);
        // Before the caller hears of it: the session is free then.
        self.desk.face.answered();
        job.audience.done();
    }

    /// Runs one cell; says whether the next may follow.
    async fn cell(&mut self, job: &mut Job, index: usize, stop: &Stop, run: &mut Run) -> bool {
        if self.desk.is_ending() {
            job.stopper.stop(StopReason::ShuttingDown);
        }
        // Nothing is taken away for a cell that will not run, and what there is to tell is kept for one
        // that will.
        if let Some(reason) = stop.reason() {
            let end = CellEnd {
                result: Err(KernelError::StoppedEarly { reason }),
                time: Duration::ZERO,
            };
            job.audience.end(index, end);
            return false;
        }
        let mut retried = false;
        if job.cells[index].reset {
            self.desk
                .during(Some(&job.stopper), self.bench.renew())
                .await;
            run.resets = self.bench.resets();
        }
        loop {
            let ready = self
                .desk
                .during(Some(&job.stopper), self.bench.ready(stop))
                .await;
            if let Err(error) = ready {
                let end = CellEnd {
                    result: Err(error),
                    time: Duration::ZERO,
                };
                job.audience.end(index, end);
                return false;
            }
            self.introduce(job, run);
            let begun = Instant::now();
            let early = self.early_text(job, run);
            let sink = job.audience.begin(index);
            for late in &early {
                sink.push(Event::Text {
                    stream: late.stream,
                    bytes: &late.bytes,
                });
            }
            let execution = self
                .bench
                .execute(&job.cells[index].request, sink, stop, &job.stopper);
            let Executed {
                result,
                notice,
                number,
            } = self.desk.during(Some(&job.stopper), execution).await;
            let time = begun.elapsed();
            run.requests.push((index, number));
            for (generation, late) in self.bench.take_late() {
                if let Some(late) = run.give(generation, late, job) {
                    self.bench.keep_late(generation, late);
                }
            }
            if let Some(notice) = notice {
                job.audience.tell(notice);
            }
            for remark in self.bench.take_remarks() {
                job.audience.tell(Notice::Remark(remark));
            }
            let unbegun =
                matches!(&result, Err(error) if error.retry() == Retry::OnceOnAFreshKernel);
            if unbegun && !retried {
                retried = true;
                continue;
            }
            let well = match &result {
                Ok(outcome) => may_follow(&outcome.ending, job.cells[index].failing),
                Err(_) => false,
            };
            job.audience.end(index, CellEnd { result, time });
            return well;
        }
    }

    /// Tells the caller which kernel it has, and whether that is another one than before.
    fn introduce(&mut self, job: &mut Job, run: &mut Run) {
        let generation = self.bench.generation;
        if run.introduced == generation {
            return;
        }
        run.introduced = generation;
        if let Some(loss) = self.bench.take_loss(run.resets) {
            job.audience.tell(Notice::Restarted { generation, loss });
        }
        for remark in self.bench.take_remarks() {
            job.audience.tell(Notice::Remark(remark));
        }
        if let Some(description) = self.bench.description() {
            job.audience.kernel(description, generation);
        }
    }

    /// What was said before the first cell of a job: by a kernel that started, which belongs to the
    /// cell, or by cells of earlier jobs.
    fn early_text(&mut self, job: &mut Job, run: &Run) -> Vec<LateText> {
        let mut early = Vec::new();
        let fresh = self.bench.is_fresh();
        for (generation, late) in self.bench.take_late() {
            if fresh && late.request == 0 && generation == self.bench.generation {
                early.push(late);
            } else if let Some(late) = run.give(generation, late, job) {
                let LateText { stream, bytes, .. } = late;
                job.audience.tell(Notice::Late { stream, bytes });
            }
        }
        early
    }
}

/// Whether the next cell may follow one that ended like this.
fn may_follow(ending: &Ending, failing: Failing) -> bool {
    match ending {
        Ending::Completed | Ending::Exited { code: 0 } => true,
        Ending::Raised(_) | Ending::Exited { .. } => failing == Failing::GoesOn,
        Ending::Stopped { reason, state } => {
            let timed_out = matches!(reason, StopReason::TimedOut(_));
            failing == Failing::GoesOn && timed_out && *state == State::Kept
        }
    }
}

/// What is known of a job while it runs.
struct Run {
    /// How many resets of the session the caller knows of.
    resets: u32,
    /// The generation that the caller knows of.
    introduced: u32,
    /// Cells, and the generation and number they ran under.
    requests: Vec<(usize, (u32, u64))>,
}

impl Run {
    /// Gives late text to the cell that caused it; hands it back if that is not one of this job.
    fn give(&self, generation: u32, late: LateText, job: &mut Job) -> Option<LateText> {
        let cell = self
            .requests
            .iter()
            .find(|(_, number)| *number == (generation, late.request));
        match cell {
            Some((index, _)) => {
                job.audience.late(*index, &late);
                None
            }
            None => Some(late),
        }
    }
}
