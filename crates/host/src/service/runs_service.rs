//! Starts runs, streams them to clients, waits for them and cancels them.

use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::Stores;
use cellwright_execution::feed::{FeedItem, OutputFeed, Overflow};
use cellwright_execution::{Execution, ExecutionStatus, FinishCallback};
use cellwright_kernel::session::{Job, KernelLauncher, SessionCall, SessionKey, SessionReport};
use cellwright_kernel::{StopReason, StopSignal};
use tokio::time::{Instant, sleep_until};

use super::super::channel::ReplyChannel;
use super::super::frame::FrameError;
use super::super::log::Level;
use super::super::protocol::{
    ClientMessage, ExecuteParams, ReplyDetail, SessionSelector, WaitMode, WaitOptions,
};
use super::super::reply::{Answer, CancelResult, HostReply, InputPrompt, RunState, RunTail};
use super::input_requests::InputRequests;
use super::runs::Run;
use super::sessions_service::check_replaceable;
use super::{HostService, final_reply};

/// Number of runs that an error lists.
const RUNS_LISTED_MAX: usize = 10;

/// The session that a request names.
struct NamedSession {
    key: SessionKey,
    /// About another session with the same name, if this one is new.
    notice: Option<UserNotice>,
}

/// How a wait for a run ended.
enum WaitEnd {
    Done,
    TimedOut,
    ClientGone,
}

impl HostService {
    pub(super) async fn execute(
        &self,
        mut params: ExecuteParams,
        channel: &mut ReplyChannel<'_>,
    ) -> Result<(), FrameError> {
        let (stop_handle, stop) = StopSignal::new();
        let named = match open_directories(&mut params).and_then(|()| self.check(&params)) {
            Ok(named) => named,
            Err(failure) => return channel.send(final_reply(Err(failure))).await,
        };
        let session = named.as_ref().map(|named| named.key.name.clone());
        let stores = Stores {
            artifacts: params
                .artifacts
                .as_ref()
                .map(|store| store.artifacts().for_code_in(params.cwd.path())),
            baselines: self.engine.baselines.clone(),
            durations: self.engine.durations.clone(),
            guard: params.request.notebook.as_ref().map(|spec| {
                let runtime_dir = spec.jupyter_runtime_dir.clone();
                self.engine.open_notebooks.guard(runtime_dir)
            }),
        };
        let created = Execution::new(
            &params.request,
            session.clone(),
            stores,
            stop_handle.clone(),
            Some(self.record_in_journal(&params)),
        );
        let (execution, observer) = match created {
            Ok(created) => created,
            Err(error) => return channel.send(final_reply(Err(error.into()))).await,
        };
        let feed = match params.wait_mode {
            // The owner receives everything, even if it reads more slowly than the code writes.
            WaitMode::Stream { .. } => Some(execution.follow(Overflow::Spill)),
            _ => None,
        };
        let (input_requests, provider) = InputRequests::new();
        let provider = (params.interaction == ReplyDetail::RunIdAndInput).then_some(provider);
        let signal = (stop_handle.clone(), stop);
        let job = params
            .request
            .job(&params.owner, signal, observer, provider);
        let name = session.as_deref().unwrap_or_default();
        let launcher =
            params
                .kernel
                .clone()
                .into_launcher(&self.engine, &self.bridge, name, &params.cwd);
        let key = named.as_ref().map(|named| named.key.cwd.clone());
        let run_dir = key.unwrap_or_else(|| params.cwd.path().to_owned());
        let notices = if let Some(named) = named {
            self.submit(named, &params, launcher, job)
        } else {
            self.spawn_local(launcher, job);
            Vec::new()
        };
        let label = params.request.label();
        let id = self.runs.add(
            (name, run_dir),
            &params.owner,
            label,
            execution.clone(),
            stop_handle.clone(),
        );
        // A client that waits for the end does not request the run again.
        let waits = matches!(
            params.wait_mode,
            WaitMode::Stream { wait: None, .. } | WaitMode::Report { wait: None, .. }
        );
        execution.annotate((!waits).then(|| id.clone()), notices.clone());
        let still_running = || {
            HostReply::StillRunning(RunState {
                run: id.clone(),
                session: session.clone(),
                status: ExecutionStatus::Running,
            })
        };
        let (wait, outputs) = match params.wait_mode {
            WaitMode::Detached => return channel.send(still_running()).await,
            WaitMode::Stream { wait, outputs } | WaitMode::Report { wait, outputs } => {
                (wait, outputs)
            }
        };
        let Some(run) = self.runs.get(&id) else {
            return channel
                .send(final_reply(Err(run_not_found(&id, &[]))))
                .await;
        };
        let shows_notices =
            matches!(params.wait_mode, WaitMode::Stream { .. }) && !notices.is_empty();
        if params.interaction != ReplyDetail::OutputOnly || shows_notices {
            let run = id.clone();
            channel.send(HostReply::Started { run, notices }).await?;
        }
        let waited = self
            .stream_run(&run, feed, wait, channel, input_requests)
            .await;
        match waited {
            Ok(WaitEnd::Done) => {
                let sent = channel.send(finished(&run, outputs)).await;
                self.runs.remove(&id);
                sent
            }
            Ok(WaitEnd::TimedOut) => channel.send(still_running()).await,
            // A client that closes its end while it receives a reply is an error of the channel.
            Ok(WaitEnd::ClientGone) | Err(_) => {
                // No other client has the id of the run.
                stop_handle.stop(StopReason::Cancelled);
                self.runs.remove(&id);
                waited.map(|_| ())
            }
        }
    }

    /// Checks a request before another session is evicted for it. Returns the session that it names.
    fn check(&self, params: &ExecuteParams) -> Result<Option<NamedSession>, Failure> {
        params.kernel.check_directory(&params.cwd)?;
        let Some(session) = &params.session else {
            return Ok(None);
        };
        let named = self.named_session(session, params)?;
        if params.reset {
            check_replaceable(&named.key)?;
        }
        Ok(Some(named))
    }

    /// Submits a job to a session. Returns notices for the caller.
    fn submit(
        &self,
        named: NamedSession,
        params: &ExecuteParams,
        launcher: Arc<dyn KernelLauncher>,
        job: Job,
    ) -> Vec<UserNotice> {
        let NamedSession { key, notice } = named;
        let same_kernel = key.kernel == params.kernel.id;
        let other = self.launchers.get(&key).filter(|_| !same_kernel);
        let call = SessionCall {
            key,
            owner: params.owner.clone(),
            launcher: other.unwrap_or(launcher),
            reset: params.reset,
        };
        let Some(submitted) = self.sessions.submit(&call, job) else {
            return Vec::new();
        };
        if same_kernel {
            self.launchers.insert(&call.key, &call.launcher);
        }
        if !submitted.created {
            if params.reset {
                return Vec::new();
            }
            return self
                .kernel_starts
                .compare(submitted.id, &call.key.name, params);
        }
        self.save_sessions();
        let text = format!(
            "session `{}` in {} on {}",
            call.key.name,
            call.key.cwd.display(),
            call.key.kernel
        );
        self.log.write(Level::Info, &text);
        Vec::from_iter(notice)
    }

    pub(super) async fn wait_run(
        &self,
        id: &str,
        options: WaitOptions,
        channel: &mut ReplyChannel<'_>,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(id) else {
            let failure = run_not_found(id, &self.runs.ids());
            return channel.send(final_reply(Err(failure))).await;
        };
        let feed = options
            .follow
            .then(|| run.execution.follow_from_progress(Overflow::Drop));
        let waited = self
            .stream_run(&run, feed, options.wait, channel, InputRequests::default())
            .await?;
        match waited {
            WaitEnd::Done => {
                channel.send(finished(&run, options.outputs)).await?;
                if !options.keep {
                    self.runs.mark_collected(id);
                }
                Ok(())
            }
            WaitEnd::TimedOut => {
                let state = RunState {
                    run: id.to_owned(),
                    session: run.session_name(),
                    status: ExecutionStatus::Running,
                };
                channel.send(HostReply::StillRunning(state)).await
            }
            // A client that waits does not own the run.
            WaitEnd::ClientGone => Ok(()),
        }
    }

    pub(super) async fn tail_run(
        &self,
        id: &str,
        follow: bool,
        channel: &mut ReplyChannel<'_>,
    ) -> Result<(), FrameError> {
        let Some(run) = self.runs.get(id) else {
            let failure = run_not_found(id, &self.runs.ids());
            return channel.send(final_reply(Err(failure))).await;
        };
        let (feed, snapshot) = if follow {
            let (feed, snapshot) = run.execution.snapshot_and_follow(Overflow::Drop);
            (Some(feed), snapshot)
        } else {
            (None, run.execution.snapshot())
        };
        let mut text = match (snapshot.text, run.status().is_final()) {
            (Some(text), _) => text,
            (None, true) => run.execution.with_report(|report| {
                let last = report
                    .cells
                    .iter()
                    .rev()
                    .find(|cell| !cell.text().is_empty());
                last.map(|cell| cell.text().to_owned()).unwrap_or_default()
            }),
            (None, false) => String::new(),
        };
        if let Some(feed) = feed {
            if !text.is_empty() {
                let item = FeedItem::plain_text(std::mem::take(&mut text));
                channel.send(HostReply::Item(item)).await?;
            }
            let input_requests = InputRequests::default();
            let waited = self
                .stream_run(&run, Some(feed), None, channel, input_requests)
                .await?;
            if let WaitEnd::ClientGone = waited {
                return Ok(());
            }
        }
        let snapshot = run.execution.snapshot();
        let tail = RunTail {
            run: id.to_owned(),
            session: run.session_name(),
            status: snapshot.status,
            number: snapshot.cell + 1,
            total: snapshot.cells,
            elapsed_ms: snapshot.elapsed.map(|elapsed| elapsed.as_secs_f64() * 1e3),
            text: (!follow).then_some(text),
            kernel: run
                .execution
                .with_report(|report| report.kernel.clone().map(Box::new)),
        };
        channel.send(final_reply(Ok(Answer::Tail(tail)))).await
    }

    pub(super) fn cancel_run(&self, id: &str) -> Result<CancelResult, Failure> {
        let run = self.runs.get(id);
        let run = run.ok_or_else(|| run_not_found(id, &self.runs.ids()))?;
        let ended = run.status().is_final();
        if !ended {
            run.stop_handle.stop(StopReason::Cancelled);
        }
        Ok(CancelResult {
            run: id.to_owned(),
            session: run.session_name(),
            status: run.status(),
            cancelled: !ended,
        })
    }

    /// Sends the items of a run until its end, until the time limit, or until the client is gone.
    async fn stream_run(
        &self,
        run: &Run,
        feed: Option<OutputFeed>,
        wait: Option<Duration>,
        channel: &mut ReplyChannel<'_>,
        mut input_requests: InputRequests,
    ) -> Result<WaitEnd, FrameError> {
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            let timed_out = sleep_until(until.unwrap_or_else(Instant::now));
            tokio::select! {
                // Items come last, so that code which prints without end can be cancelled.
                biased;
                message = channel.next() => match message? {
                    None => return Ok(WaitEnd::ClientGone),
                    Some(ClientMessage::Cancel { forced: false }) => {
                        run.stop_handle.stop(StopReason::Cancelled);
                    }
                    Some(ClientMessage::Cancel { forced: true }) => {
                        run.stop_handle.force_stop(StopReason::Cancelled);
                    }
                    Some(ClientMessage::Input { text }) => input_requests.answer(text),
                },
                () = timed_out, if until.is_some() && !input_requests.is_waiting() => {
                    return Ok(WaitEnd::TimedOut);
                }
                prompt = input_requests.next() => {
                    let prompt = InputPrompt {
                        prompt: prompt.text,
                        secret: prompt.secret,
                    };
                    channel.send(HostReply::InputRequested(prompt)).await?;
                }
                item = next_item(feed.as_ref(), &run.execution) => match item {
                    Some(item) => channel.send(HostReply::Item(item)).await?,
                    None => return Ok(WaitEnd::Done),
                },
            }
        }
    }

    /// The session that a request names: an existing session, or a new one.
    fn named_session(
        &self,
        session: &str,
        params: &ExecuteParams,
    ) -> Result<NamedSession, Failure> {
        let kernel = &params.kernel.id;
        let existing = |report: &SessionReport| NamedSession {
            key: report.key.clone(),
            notice: None,
        };
        if session.starts_with('@') {
            let found = self.find_session(&SessionSelector {
                name: session.to_owned(),
                cwd: None,
                here: None,
                owner: params.owner.clone(),
            })?;
            check_accepted(&found, params)?;
            return Ok(existing(&found));
        }
        let dir = params.session_dir.as_deref().unwrap_or(params.cwd.path());
        let sessions = self.sessions.list();
        let named = || sessions.iter().filter(|report| report.key.name == session);
        let accepts =
            |report: &&SessionReport| params.kernel.accepts.matches(kernel, &report.key.kernel);
        let here = named()
            .filter(|report| report.key.cwd == dir)
            .filter(accepts)
            // A request without a kernel uses the existing one.
            .min_by_key(|report| (report.key.kernel != *kernel, report.idle));
        if let Some(report) = here {
            return Ok(existing(report));
        }
        if params.any_cwd {
            let mut elsewhere = named().filter(accepts);
            if let (Some(only), None) = (elsewhere.next(), elsewhere.next()) {
                return Ok(existing(only));
            }
        }
        let notice = named().next().map(|other| {
            let cwd = other.key.cwd.display();
            UserNotice::new(
                NoticeKind::SessionOtherCwd,
                format!(
                    "this is a new session; another session `{session}` exists in {cwd} on {} (@{})",
                    other.key.kernel, other.id
                ),
            )
        });
        let key = SessionKey {
            name: session.to_owned(),
            cwd: dir.to_owned(),
            kernel: kernel.clone(),
        };
        Ok(NamedSession { key, notice })
    }

    /// Writes the cells that ran to the journal of their session, before the client receives the report.
    fn record_in_journal(&self, params: &ExecuteParams) -> FinishCallback {
        let journals = Arc::clone(&self.journals);
        let requests = params.request.cell_requests();
        let histories = Arc::clone(&self.histories);
        let spec = params.request.notebook.clone();
        let starts = Arc::clone(&self.kernel_starts);
        let (kernel, cwd) = (params.kernel.clone(), params.cwd.path().to_owned());
        Box::new(move |session, report| {
            if let Some(session) = session {
                if report.kernel.as_ref().is_some_and(|kernel| kernel.is_new) {
                    starts.record(session, kernel, cwd);
                }
                journals.write(session, &requests, report);
                if let Some(spec) = &spec {
                    histories.record(session, spec, report);
                }
            }
        })
    }
}

/// Checks that a session with this number can run the request.
fn check_accepted(session: &SessionReport, params: &ExecuteParams) -> Result<(), Failure> {
    let id = session.id;
    let is_private = |owner: &String| *owner != params.owner;
    let message = if session.private_to.as_ref().is_some_and(is_private) {
        format!("The session @{id} belongs to another owner")
    } else if !params
        .kernel
        .accepts
        .matches(&params.kernel.id, &session.key.kernel)
    {
        let (kernel, requested) = (&session.key.kernel, &params.kernel.id);
        format!("The session @{id} runs on {kernel}, not on {requested}")
    } else {
        return Ok(());
    };
    Err(Failure::new(Kind::BadArguments, message).hint("nothing was run"))
}

/// Opens the directories that the client has checked, and holds them as long as the run needs them.
fn open_directories(params: &mut ExecuteParams) -> Result<(), Failure> {
    let opened = params.cwd.open();
    let opened = opened.map_err(|error| (params.cwd.path().to_owned(), error));
    let opened = opened.and_then(|()| match &mut params.request.notebook {
        Some(spec) => spec.open_directories(),
        None => Ok(()),
    });
    opened.map_err(|(path, error)| {
        let message = format!("Could not open the directory {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure.hint("nothing ran and nothing was written; run it again")
    })
}

/// Returns the next item of a run; `None` when the run has ended and all items are sent. Cancel-safe.
async fn next_item(feed: Option<&OutputFeed>, execution: &Execution) -> Option<FeedItem> {
    if let Some(feed) = feed
        && let Some(item) = feed.next().await
    {
        return Some(item);
    }
    execution.done().await;
    None
}

/// The report of a run that has ended.
fn finished(run: &Run, outputs: bool) -> HostReply {
    let report = run.execution.with_report(|report| {
        if outputs {
            report.clone()
        } else {
            report.without_outputs()
        }
    });
    HostReply::Finished(Box::new(report))
}

fn run_not_found(id: &str, ids: &[String]) -> Failure {
    let failure = Failure::new(Kind::BadArguments, format!("There is no run `{id}`"));
    let failure = failure.hint(
        "results are kept until collected (at most a day) and are lost if the host is killed",
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
    failure.hint(format!("existing runs: {more}{}", latest.join(", ")))
}
