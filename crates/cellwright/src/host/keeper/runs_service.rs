//! Starts runs, streams them to clients, waits for them and cancels them.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::session::{Job, KernelLauncher, SessionCall, SessionKey, SessionReport};
use cellwright_kernel::{StopReason, StopSignal};
use cellwright_output::Stream;
use cellwright_run::Stores;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::super::connection::Connection;
use super::super::frame::FrameError;
use super::super::log::Level;
use super::super::protocol::{
    ArtifactStoreParams, ClientMessage, ExecuteParams, Interaction, WaitMode,
};
use super::input_requests::InputRequests;
use super::runs::Run;
use super::{HostService, check_replaceable, send_result};
use crate::execution::feed::{FeedItem, OutputFeed, Overflow};
use crate::execution::{Execution, OnFinish};
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice};

/// How many runs are listed for somebody who asks for one that is not there.
const RUNS_LISTED_MAX: usize = 10;

/// How a wait for a run ended.
enum WaitEnd {
    Done,
    /// The time is up.
    StillRunning,
    /// Whoever waited has gone.
    ClientGone,
}

impl HostService {
    pub(super) async fn execute(
        &self,
        wanted: ExecuteParams,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        // Before another session has to make room for it.
        if let Err(error) = wanted.kernel.check_directory(&wanted.cwd) {
            return send_result(connection, Err(error.into())).await;
        }
        if let Some(session) = wanted.session.as_ref().filter(|_| wanted.reset) {
            let (key, _) = self.session_key(session, &wanted);
            if let Err(failure) = check_replaceable(&key) {
                return send_result(connection, Err(failure)).await;
            }
        }
        let (stopper, stop) = StopSignal::new();
        let session = wanted.session.clone();
        let places = Stores {
            artifacts: wanted
                .artifacts
                .as_ref()
                .map(ArtifactStoreParams::artifacts),
            baselines: self.engine.baselines.clone(),
        };
        let at_end = Some(self.record_in_journal(&wanted));
        let made = Execution::new(&wanted.request, session, places, stopper.clone(), at_end);
        let (evaluation, stage) = match made {
            Ok(made) => made,
            Err(error) => return send_result(connection, Err(error.into())).await,
        };
        let feed = match wanted.wait_mode {
            // Whose code it is gets everything, also if it is a little slower than the code.
            WaitMode::Stream { .. } => Some(evaluation.follow(Overflow::Spill)),
            _ => None,
        };
        let name = wanted.session.as_deref().unwrap_or_default();
        let (questions, asker) = InputRequests::new();
        let asker = (wanted.interaction == Interaction::RunIdAndInput).then_some(asker);
        let job = wanted
            .request
            .job(&wanted.owner, (stopper.clone(), stop), stage, asker);
        let launch =
            wanted
                .kernel
                .clone()
                .into_launcher(&self.engine, &self.bridge, name, &wanted.cwd);
        let notice = if let Some(session) = &wanted.session {
            self.submit(session, &wanted, launch, job)
        } else {
            self.spawn_local(launch, job);
            None
        };
        let evaluated = evaluation.clone();
        let label = wanted.request.label();
        let run = self
            .runs
            .add(name, &wanted.owner, label, evaluated, stopper.clone());
        evaluation.with_report(|answer| {
            answer.notices.extend(notice);
            // Whoever waits for the end will not ask for it again.
            let waits = matches!(
                wanted.wait_mode,
                WaitMode::Stream { wait: None, .. } | WaitMode::Report { wait: None }
            );
            answer.run = (!waits).then(|| run.clone());
        });
        let (wait, document) = match wanted.wait_mode {
            WaitMode::Detached => {
                let answer = json!({"run": run, "session": wanted.session, "status": "running"});
                return send_result(connection, Ok(answer)).await;
            }
            WaitMode::Stream { wait, document } => (wait, document),
            WaitMode::Report { wait } => (wait, true),
        };
        let Some(found) = self.runs.get(&run) else {
            return send_result(connection, Err(run_not_found(&run, &[]))).await;
        };
        if wanted.interaction != Interaction::OutputOnly {
            connection.send(&json!({"run": run})).await?;
        }
        let waited = self
            .stream_run(&found, feed, wait, connection, Some(questions))
            .await;
        match waited {
            Ok(WaitEnd::Done) => {
                let told = send_finished(&found, document, connection).await;
                self.runs.remove(&run);
                told
            }
            Ok(WaitEnd::StillRunning) => {
                let answer = json!({"run": run, "session": wanted.session, "status": "running"});
                send_result(connection, Ok(answer)).await
            }
            // A client that goes while it is sent something is an error of the connection.
            Ok(WaitEnd::ClientGone) | Err(_) => {
                // Nobody is there for whom it could go on, and nobody knows its name.
                stopper.stop(StopReason::Cancelled);
                self.runs.remove(&run);
                waited.map(|_| ())
            }
        }
    }

    /// Hands a job to a session; gives what the caller should know about that.
    fn submit(
        &self,
        session: &str,
        wanted: &ExecuteParams,
        launch: Arc<dyn KernelLauncher>,
        job: Job,
    ) -> Option<UserNotice> {
        let (key, notice) = self.session_key(session, wanted);
        let its_own = key.kernel == wanted.kernel.id;
        let other = self.launches.get(&key).filter(|_| !its_own);
        let call = SessionCall {
            key,
            owner: wanted.owner.clone(),
            launcher: other.unwrap_or(launch),
            reset: wanted.reset,
        };
        let accepted = self.sessions.submit(&call, job)?;
        if its_own {
            self.launches.insert(&call.key, &call.launcher);
        }
        if !accepted.created {
            return None;
        }
        self.save_sessions();
        let words = format!(
            "session `{}` in {} on {}",
            call.key.name,
            call.key.cwd.display(),
            call.key.kernel
        );
        self.log.write(Level::Info, &words);
        notice
    }

    pub(super) async fn wait_run(
        &self,
        name: &str,
        wait: Option<Duration>,
        document: bool,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(name) else {
            return send_result(connection, Err(run_not_found(name, &self.runs.ids()))).await;
        };
        match self.stream_run(&run, None, wait, connection, None).await? {
            WaitEnd::Done => {
                if !document {
                    let texts = run.execution.with_report(|answer| {
                        let texts = answer.cells.iter().map(|cell| cell.text.clone());
                        texts.collect::<Vec<_>>()
                    });
                    for text in texts {
                        send_item(&FeedItem::CellStart, connection).await?;
                        send_item(&FeedItem::Display(Stream::Stdout, text), connection).await?;
                    }
                }
                send_finished(&run, document, connection).await?;
                self.runs.mark_collected(name);
                Ok(())
            }
            WaitEnd::StillRunning => {
                let answer = json!({"run": name, "session": run.session, "status": "running"});
                send_result(connection, Ok(answer)).await
            }
            // Waiting is no owning: the run goes on.
            WaitEnd::ClientGone => Ok(()),
        }
    }

    pub(super) async fn tail_run(
        &self,
        name: &str,
        follow: bool,
        document: bool,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(name) else {
            return send_result(connection, Err(run_not_found(name, &self.runs.ids()))).await;
        };
        let (feed, glance) = if follow {
            let (feed, glance) = run.execution.snapshot_and_follow(Overflow::Drop);
            (Some(feed), glance)
        } else {
            (None, run.execution.snapshot())
        };
        let so_far = match (&glance.text, run.status().is_final()) {
            (Some(text), _) => text.clone(),
            (None, true) => run.execution.with_report(|answer| {
                let last = answer.cells.iter().rev().find(|cell| !cell.text.is_empty());
                last.map(|cell| cell.text.clone()).unwrap_or_default()
            }),
            (None, false) => String::new(),
        };
        if !so_far.is_empty() && !document {
            send_item(
                &FeedItem::Display(Stream::Stdout, so_far.clone()),
                connection,
            )
            .await?;
        }
        if let Some(feed) = feed
            && let WaitEnd::ClientGone = self
                .stream_run(&run, Some(feed), None, connection, None)
                .await?
        {
            return Ok(());
        }
        let glance = run.execution.snapshot();
        let answer = json!({
            "run": name,
            "session": run.session,
            "status": glance.status,
            "cell": glance.cell,
            "cells": glance.cells,
            "elapsed_s": glance.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            "text": document.then_some(so_far),
        });
        send_result(connection, Ok(answer)).await
    }

    pub(super) fn cancel_run(&self, name: &str) -> Result<Value, Failure> {
        let run = self.runs.get(name);
        let run = run.ok_or_else(|| run_not_found(name, &self.runs.ids()))?;
        let ended = run.status().is_final();
        if !ended {
            run.stopper.stop(StopReason::Cancelled);
        }
        Ok(
            json!({"run": name, "session": run.session, "status": run.status(), "cancelled": !ended}),
        )
    }

    /// Passes on what a run says, until its end or until the time is up.
    async fn stream_run(
        &self,
        run: &Run,
        feed: Option<OutputFeed>,
        wait: Option<Duration>,
        connection: &mut Connection,
        questions: Option<InputRequests>,
    ) -> Result<WaitEnd, FrameError> {
        let mut questions = questions.unwrap_or_default();
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            tokio::select! {
                // What is said comes last: code that never stops talking can be cancelled and left.
                biased;
                frame = connection.next() => match frame? {
                    None => return Ok(WaitEnd::ClientGone),
                    Some(frame) => match frame.parse()? {
                        ClientMessage::Cancel { at_once: false } => {
                            run.stopper.stop(StopReason::Cancelled);
                        }
                        ClientMessage::Cancel { at_once: true } => {
                            run.stopper.force_stop(StopReason::Cancelled);
                        }
                        ClientMessage::Input { text } => questions.answer(text),
                    },
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() && !questions.is_waiting() => {
                    return Ok(WaitEnd::StillRunning);
                }
                prompt = questions.next() => {
                    let input = json!({"prompt": prompt.text, "secret": prompt.secret});
                    connection.send(&json!({"input": input})).await?;
                }
                chunk = next_item(feed.as_ref(), &run.execution) => match chunk {
                    Some(chunk) => send_item(&chunk, connection).await?,
                    None => return Ok(WaitEnd::Done),
                },
            }
        }
    }

    /// Which session is meant: one that lives, or a new one.
    fn session_key(
        &self,
        session: &str,
        wanted: &ExecuteParams,
    ) -> (SessionKey, Option<UserNotice>) {
        let kernel = &wanted.kernel.id;
        let sessions = self.sessions.list();
        let named = || sessions.iter().filter(|report| report.key.name == session);
        let fitting = named()
            .filter(|report| report.key.cwd == wanted.cwd)
            .filter(|report| wanted.kernel.accepts.matches(kernel, &report.key.kernel))
            // Whoever does not care which kernel it is wants the one there is.
            .min_by_key(|report| (report.key.kernel != *kernel, report.idle));
        if let Some(report) = fitting {
            return (report.key.clone(), None);
        }
        if wanted.any_cwd {
            let holds =
                |report: &&SessionReport| wanted.kernel.accepts.matches(kernel, &report.key.kernel);
            let mut elsewhere = named().filter(holds);
            if let (Some(only), None) = (elsewhere.next(), elsewhere.next()) {
                return (only.key.clone(), None);
            }
        }
        let notice = named().next().map(|other| {
            let cwd = other.key.cwd.display();
            UserNotice::new(
                NoticeKind::SessionOtherCwd,
                format!(
                    "this is a new session; another session `{session}` exists in {cwd} on {}",
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
    fn record_in_journal(&self, wanted: &ExecuteParams) -> OnFinish {
        let journals = Arc::clone(&self.journals);
        let codes: Vec<String> = wanted
            .request
            .cells
            .iter()
            .map(|cell| cell.code.clone())
            .collect();
        let notebooks = Arc::clone(&self.notebooks);
        let order = wanted.request.notebook.clone();
        Box::new(move |session, answer| {
            if let Some(session) = session {
                journals.write(session, &codes, answer);
                if let Some(order) = &order {
                    notebooks.record(session, order, answer);
                }
            }
        })
    }
}

/// The next thing that a run says; `None` when it has ended and everything is said. Cancel-safe.
async fn next_item(feed: Option<&OutputFeed>, evaluation: &Execution) -> Option<FeedItem> {
    if let Some(feed) = feed
        && let Some(chunk) = feed.next().await
    {
        return Some(chunk);
    }
    evaluation.done().await;
    None
}

/// Passes something on.
async fn send_item(chunk: &FeedItem, connection: &mut Connection) -> Result<(), FrameError> {
    match chunk {
        FeedItem::CellStart => connection.send(&json!({"cell": true})).await,
        FeedItem::Text(stream, bytes) => {
            let head = json!({"text": stream.name(), "n": bytes.len()});
            connection.send_with(&head, bytes).await
        }
        FeedItem::Display(stream, text) => {
            let head = json!({"piece": stream.name(), "n": text.len()});
            connection.send_with(&head, text.as_bytes()).await
        }
        FeedItem::Dropped(bytes) => connection.send(&json!({"lost": bytes})).await,
        FeedItem::CellEvent(mark) => connection.send(&json!({"mark": mark})).await,
    }
}

/// Tells the end of a run.
async fn send_finished(
    run: &Run,
    document: bool,
    connection: &mut Connection,
) -> Result<(), FrameError> {
    let verdict = run.execution.summarize();
    if !document {
        let head = json!({"end": true, "verdict": verdict});
        return connection.send(&head).await;
    }
    let document = run
        .execution
        .with_report(|answer| serde_json::to_vec(answer));
    let document = document.map_err(FrameError::InvalidJson)?;
    let head = json!({"end": true, "verdict": verdict, "n": document.len()});
    connection.send_with(&head, &document).await
}

fn run_not_found(name: &str, ids: &[String]) -> Failure {
    let failure = Failure::new(Kind::BadArguments, format!("There is no run `{name}`"));
    let failure = failure.hint(
        "ends are kept until they are told, for a day at most, and go with the host if that is killed",
    );
    if ids.is_empty() {
        return failure;
    }
    let latest = &ids[ids.len().saturating_sub(RUNS_LISTED_MAX)..];
    let more = if latest.len() < ids.len() {
        "…, "
    } else {
        ""
    };
    failure.hint(format!("there are: {more}{}", latest.join(", ")))
}
