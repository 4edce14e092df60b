//! Runs: beginning one, watching it, waiting for it, ending it.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::session::{Call, Job, Launch, SessionKey, SessionReport};
use cellwright_kernel::{Stop, StopReason};
use cellwright_output::Stream;
use cellwright_run::Places;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::super::connection::Connection;
use super::super::frame::FrameError;
use super::super::log::Level;
use super::super::wanted::{ArtifactsPlace, Attach, EvalWanted, Meanwhile, Talk};
use super::questions::Questions;
use super::runs::Run;
use super::{Keeper, end, refuse_to_replace};
use crate::evaluation::{AtEnd, Evaluation};
use crate::failure::{Failure, Kind};
use crate::feed::{Beyond, Chunk, Feed};
use crate::notice::Told;

/// How many runs are listed for somebody who asks for one that is not there.
const LISTED: usize = 10;

/// How a wait for a run ended.
enum Waited {
    Done,
    /// The time is up.
    StillRunning,
    /// Whoever waited has gone.
    Alone,
}

impl Keeper {
    pub(super) async fn eval(
        &self,
        wanted: EvalWanted,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        // Before another session has to make room for it.
        if let Err(error) = wanted.kernel.check(&wanted.cwd) {
            return end(connection, Err(error.into())).await;
        }
        if let Some(session) = wanted.session.as_ref().filter(|_| wanted.reset) {
            let (key, _) = self.key_for(session, &wanted);
            if let Err(failure) = refuse_to_replace(&key) {
                return end(connection, Err(failure)).await;
            }
        }
        let (stopper, stop) = Stop::new();
        let session = wanted.session.clone();
        let places = Places {
            artifacts: wanted.artifacts.as_ref().map(ArtifactsPlace::artifacts),
            baselines: self.engine.baselines.clone(),
        };
        let at_end = Some(self.journal_entry(&wanted));
        let made = Evaluation::new(&wanted.wish, session, places, stopper.clone(), at_end);
        let (evaluation, stage) = match made {
            Ok(made) => made,
            Err(error) => return end(connection, Err(error.into())).await,
        };
        let feed = match wanted.attach {
            // Whose code it is gets everything, also if it is a little slower than the code.
            Attach::Watching { .. } => Some(evaluation.follow(Beyond::Disk)),
            _ => None,
        };
        let name = wanted.session.as_deref().unwrap_or_default();
        let (questions, asker) = Questions::new();
        let asker = (wanted.talk == Talk::Questions).then_some(asker);
        let job = wanted
            .wish
            .job(&wanted.owner, (stopper.clone(), stop), stage, asker);
        let launch = wanted
            .kernel
            .clone()
            .launch(&self.engine, &self.bridge, name, &wanted.cwd);
        let notice = if let Some(session) = &wanted.session {
            self.submit(session, &wanted, launch, job)
        } else {
            self.run_alone(launch, job);
            None
        };
        let evaluated = evaluation.clone();
        let label = wanted.wish.label();
        let run = self
            .runs
            .add(name, &wanted.owner, label, evaluated, stopper.clone());
        evaluation.with_answer(|answer| {
            answer.notices.extend(notice);
            // Whoever waits for the end will not ask for it again.
            let waits = matches!(
                wanted.attach,
                Attach::Watching { wait: None, .. } | Attach::Document { wait: None }
            );
            answer.run = (!waits).then(|| run.clone());
        });
        let (wait, document) = match wanted.attach {
            Attach::Not => {
                let answer = json!({"run": run, "session": wanted.session, "status": "running"});
                return end(connection, Ok(answer)).await;
            }
            Attach::Watching { wait, document } => (wait, document),
            Attach::Document { wait } => (wait, true),
        };
        let Some(found) = self.runs.get(&run) else {
            return end(connection, Err(no_run(&run, &[]))).await;
        };
        if wanted.talk != Talk::Little {
            connection.send(&json!({"run": run})).await?;
        }
        let waited = self
            .watch(&found, feed, wait, connection, Some(questions))
            .await;
        match waited {
            Ok(Waited::Done) => {
                let told = tell(&found, document, connection).await;
                self.runs.forget(&run);
                told
            }
            Ok(Waited::StillRunning) => {
                let answer = json!({"run": run, "session": wanted.session, "status": "running"});
                end(connection, Ok(answer)).await
            }
            // A client that goes while it is sent something is an error of the connection.
            Ok(Waited::Alone) | Err(_) => {
                // Nobody is there for whom it could go on, and nobody knows its name.
                stopper.stop(StopReason::Cancelled);
                self.runs.forget(&run);
                waited.map(|_| ())
            }
        }
    }

    /// Hands a job to a session; gives what the caller should know about that.
    fn submit(
        &self,
        session: &str,
        wanted: &EvalWanted,
        launch: Arc<dyn Launch>,
        job: Job,
    ) -> Option<Told> {
        let (key, notice) = self.key_for(session, wanted);
        let its_own = key.kernel == wanted.kernel.label;
        let other = self.launches.of(&key).filter(|_| !its_own);
        let call = Call {
            key,
            owner: wanted.owner.clone(),
            launch: other.unwrap_or(launch),
            reset: wanted.reset,
        };
        let accepted = self.sessions.submit(&call, job)?;
        if its_own {
            self.launches.remember(&call.key, &call.launch);
        }
        if !accepted.new {
            return None;
        }
        self.note_sessions();
        let words = format!(
            "session `{}` in {} on {}",
            call.key.name,
            call.key.cwd.display(),
            call.key.kernel
        );
        self.log.write(Level::Info, &words);
        notice
    }

    pub(super) async fn run_wait(
        &self,
        name: &str,
        wait: Option<Duration>,
        document: bool,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(name) else {
            return end(connection, Err(no_run(name, &self.runs.names()))).await;
        };
        match self.watch(&run, None, wait, connection, None).await? {
            Waited::Done => {
                if !document {
                    let texts = run.evaluation.with_answer(|answer| {
                        let texts = answer.cells.iter().map(|cell| cell.text.clone());
                        texts.collect::<Vec<_>>()
                    });
                    for text in texts {
                        send(&Chunk::Cell, connection).await?;
                        send(&Chunk::Piece(Stream::Stdout, text), connection).await?;
                    }
                }
                tell(&run, document, connection).await?;
                self.runs.told(name);
                Ok(())
            }
            Waited::StillRunning => {
                let answer = json!({"run": name, "session": run.session, "status": "running"});
                end(connection, Ok(answer)).await
            }
            // Waiting is no owning: the run goes on.
            Waited::Alone => Ok(()),
        }
    }

    pub(super) async fn run_tail(
        &self,
        name: &str,
        follow: bool,
        document: bool,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(name) else {
            return end(connection, Err(no_run(name, &self.runs.names()))).await;
        };
        let (feed, glance) = if follow {
            let (feed, glance) = run.evaluation.catch_up(Beyond::Lost);
            (Some(feed), glance)
        } else {
            (None, run.evaluation.glance())
        };
        let so_far = match (&glance.snapshot, run.status().is_final()) {
            (Some(snapshot), _) => snapshot.text.clone(),
            (None, true) => run.evaluation.with_answer(|answer| {
                let last = answer.cells.iter().rev().find(|cell| !cell.text.is_empty());
                last.map(|cell| cell.text.clone()).unwrap_or_default()
            }),
            (None, false) => String::new(),
        };
        if !so_far.is_empty() && !document {
            send(&Chunk::Piece(Stream::Stdout, so_far.clone()), connection).await?;
        }
        if let Some(feed) = feed
            && let Waited::Alone = self.watch(&run, Some(feed), None, connection, None).await?
        {
            return Ok(());
        }
        let glance = run.evaluation.glance();
        let answer = json!({
            "run": name,
            "session": run.session,
            "status": glance.status,
            "cell": glance.cell,
            "cells": glance.cells,
            "elapsed_s": glance.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            "text": document.then_some(so_far),
        });
        end(connection, Ok(answer)).await
    }

    pub(super) fn run_cancel(&self, name: &str) -> Result<Value, Failure> {
        let run = self.runs.get(name);
        let run = run.ok_or_else(|| no_run(name, &self.runs.names()))?;
        let ended = run.status().is_final();
        if !ended {
            run.stopper.stop(StopReason::Cancelled);
        }
        Ok(
            json!({"run": name, "session": run.session, "status": run.status(), "cancelled": !ended}),
        )
    }

    /// Passes on what a run says, until its end or until the time is up.
    async fn watch(
        &self,
        run: &Run,
        feed: Option<Feed>,
        wait: Option<Duration>,
        connection: &mut Connection,
        questions: Option<Questions>,
    ) -> Result<Waited, FrameError> {
        let mut questions = questions.unwrap_or_default();
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            tokio::select! {
                // What is said comes last: code that never stops talking can be cancelled and left.
                biased;
                frame = connection.next() => match frame? {
                    None => return Ok(Waited::Alone),
                    Some(frame) => match frame.parse()? {
                        Meanwhile::Cancel { at_once: false } => {
                            run.stopper.stop(StopReason::Cancelled);
                        }
                        Meanwhile::Cancel { at_once: true } => {
                            run.stopper.stop_at_once(StopReason::Cancelled);
                        }
                        Meanwhile::Input { text } => questions.answer(text),
                    },
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() && !questions.is_waiting() => {
                    return Ok(Waited::StillRunning);
                }
                prompt = questions.next() => {
                    let input = json!({"prompt": prompt.text, "secret": prompt.secret});
                    connection.send(&json!({"input": input})).await?;
                }
                chunk = next_of(feed.as_ref(), &run.evaluation) => match chunk {
                    Some(chunk) => send(&chunk, connection).await?,
                    None => return Ok(Waited::Done),
                },
            }
        }
    }

    /// Which session is meant: one that lives, or a new one.
    fn key_for(&self, session: &str, wanted: &EvalWanted) -> (SessionKey, Option<Told>) {
        let kernel = &wanted.kernel.label;
        let sessions = self.sessions.list();
        let named = || sessions.iter().filter(|report| report.key.name == session);
        let fitting = named()
            .filter(|report| report.key.cwd == wanted.cwd)
            .filter(|report| wanted.kernel.within.holds(kernel, &report.key.kernel))
            // Whoever does not care which kernel it is wants the one there is.
            .min_by_key(|report| (report.key.kernel != *kernel, report.idle));
        if let Some(report) = fitting {
            return (report.key.clone(), None);
        }
        if wanted.anywhere {
            let holds =
                |report: &&SessionReport| wanted.kernel.within.holds(kernel, &report.key.kernel);
            let mut elsewhere = named().filter(holds);
            if let (Some(only), None) = (elsewhere.next(), elsewhere.next()) {
                return (only.key.clone(), None);
            }
        }
        let notice = named().next().map(|other| {
            let cwd = other.key.cwd.display();
            Told::new(
                "session_elsewhere",
                format!(
                    "this is a new session; another one named `{session}` lives in {cwd} on {} \
                     (--cwd, --python and --kernel say which)",
                    other.key.kernel
                ),
            )
        });
        let key = SessionKey {
            name: session.to_owned(),
            cwd: wanted.cwd.clone(),
            kernel: kernel.clone(),
        };
        (key, notice)
    }

    /// Writes down what ran before anybody is told.
    fn journal_entry(&self, wanted: &EvalWanted) -> AtEnd {
        let journals = Arc::clone(&self.journals);
        let codes: Vec<String> = wanted
            .wish
            .cells
            .iter()
            .map(|cell| cell.code.clone())
            .collect();
        let notebooks = Arc::clone(&self.notebooks);
        let order = wanted.wish.order.clone();
        Box::new(move |session, answer| {
            if let Some(session) = session {
                journals.write(session, &codes, answer);
                if let Some(order) = &order {
                    notebooks.note(session, order, answer);
                }
            }
        })
    }
}

/// The next thing that a run says; `None` when it has ended and everything is said. Cancel-safe.
async fn next_of(feed: Option<&Feed>, evaluation: &Evaluation) -> Option<Chunk> {
    if let Some(feed) = feed
        && let Some(chunk) = feed.next().await
    {
        return Some(chunk);
    }
    evaluation.done().await;
    None
}

/// Passes something on.
async fn send(chunk: &Chunk, connection: &mut Connection) -> Result<(), FrameError> {
    match chunk {
        Chunk::Cell => connection.send(&json!({"cell": true})).await,
        Chunk::Text(stream, bytes) => {
            let head = json!({"text": stream.name(), "n": bytes.len()});
            connection.send_with(&head, bytes).await
        }
        Chunk::Piece(stream, text) => {
            let head = json!({"piece": stream.name(), "n": text.len()});
            connection.send_with(&head, text.as_bytes()).await
        }
        Chunk::Lost(bytes) => connection.send(&json!({"lost": bytes})).await,
        Chunk::Mark(mark) => connection.send(&json!({"mark": mark})).await,
    }
}

/// Tells the end of a run.
async fn tell(run: &Run, document: bool, connection: &mut Connection) -> Result<(), FrameError> {
    let verdict = run.evaluation.verdict();
    if !document {
        let head = json!({"end": true, "verdict": verdict});
        return connection.send(&head).await;
    }
    let document = run
        .evaluation
        .with_answer(|answer| serde_json::to_vec(answer));
    let document = document.map_err(FrameError::Garbage)?;
    let head = json!({"end": true, "verdict": verdict, "n": document.len()});
    connection.send_with(&head, &document).await
}

fn no_run(name: &str, names: &[String]) -> Failure {
    let failure = Failure::new(Kind::BadArguments, format!("There is no run `{name}`"));
    let failure = failure.hint(
        "ends are kept until they are told, for a day at most, and go with the host if that is killed",
    );
    if names.is_empty() {
        return failure;
    }
    let latest = &names[names.len().saturating_sub(LISTED)..];
    let more = if latest.len() < names.len() {
        "…, "
    } else {
        ""
    };
    failure.hint(format!("there are: {more}{}", latest.join(", ")))
}
