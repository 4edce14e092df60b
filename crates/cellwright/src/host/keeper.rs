//! [`HostService`]: owns sessions and runs, and serves the requests of clients.

mod input_requests;
mod journal;
mod launchers;
mod notebook_history;
mod runs;
mod runs_service;
mod session_json;
mod session_list;

use std::path::Path;
use std::sync::{Arc, Mutex};

use cellwright_kernel::session::{
    Job, KernelLauncher, KernelLoss, Policy, SessionCall, SessionKey, SessionReport, Sessions,
    SpareKernels, run_once,
};
use cellwright_kernel::{BoxFuture, KernelError, StopReason, StopSignal};
use cellwright_stdext::LockExt;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::frame::FrameError;
use super::log::{Level, Log};
use super::protocol::{HostRequest, SessionSelector};
use super::service::{Service, ServiceRequest};
use crate::engine::Engine;
use crate::failure::{Failure, Kind, command, flag_value, hint};
use crate::kernel_setup::SharedBridge;
use crate::kernels::NoLauncher;
use crate::runtime_dir::RuntimeDir;
use crate::settings::Settings;
use journal::Journals;
use launchers::LauncherCache;
use notebook_history::NotebookHistories;
use runs::Runs;
use session_list::SessionList;

/// Keeps sessions and runs.
pub(super) struct HostService {
    engine: Arc<Engine>,
    /// The way back from cells.
    bridge: SharedBridge,
    policy: Policy,
    sessions: Sessions,
    launches: LauncherCache,
    runs: Runs,
    journals: Arc<Journals>,
    notebooks: Arc<NotebookHistories>,
    ledger: SessionList,
    log: Arc<Log>,
    /// Jobs on kernels of their own.
    local_jobs: Mutex<JoinSet<()>>,
    /// Ends sessions that have been idle too long.
    _sweeper: JoinSet<()>,
}

impl HostService {
    /// For a host that lives in `folder`. Must be called within a runtime.
    pub(super) fn new(engine: Engine, folder: &RuntimeDir, log: &Arc<Log>) -> Self {
        let engine = Arc::new(engine);
        // What belongs to a project is told by its commands.
        let settings = engine.settings(Path::new("/")).unwrap_or_else(|error| {
            let words = format!(
                "the settings are not used: {}",
                Failure::from(error).message
            );
            log.write(Level::Error, &words);
            Settings::default()
        });
        let policy = policy(&settings);
        let spares = if settings.kernel.spare {
            SpareKernels::new()
        } else {
            SpareKernels::disabled()
        };
        let sessions = Sessions::new(policy.clone(), spares);
        let ledger = SessionList::new(folder.file_path("sessions.json"));
        let lost = ledger.recover_lost(&sessions);
        if lost > 0 {
            let words = format!("the host before this one left {lost} sessions behind");
            log.write(Level::Warn, &words);
        }
        let mut sweeping = JoinSet::new();
        let swept = sessions.clone();
        sweeping.spawn(async move { swept.evict_idle().await });
        Self {
            engine,
            bridge: SharedBridge::default(),
            runs: Runs::new(folder.file_path("runs.next"), &settings),
            journals: Arc::new(Journals::new(folder.file_path("journal"))),
            notebooks: Arc::default(),
            ledger,
            policy,
            sessions,
            launches: LauncherCache::default(),
            log: Arc::clone(log),
            local_jobs: Mutex::default(),
            _sweeper: sweeping,
        }
    }

    async fn serve(
        &self,
        request: ServiceRequest,
        connection: &mut Connection,
    ) -> Result<(), FrameError> {
        // By itself, because to find out which it is by a name inside means to read everything twice.
        let parsed = if request.name == HostRequest::EXECUTE {
            let wanted = request.frame.parse();
            wanted.map(|wanted| HostRequest::Execute(Box::new(wanted)))
        } else {
            request.frame.parse()
        };
        let wanted = match parsed {
            Ok(wanted) => wanted,
            Err(error) => {
                let words = format!("`{}` was not understood: {error}", request.name);
                let code = if HostRequest::NAMES.contains(&request.name.as_str()) {
                    "not_understood"
                } else {
                    "unknown_request"
                };
                return connection.send_refusal(code, &words).await;
            }
        };
        self.sessions.discard_never_started();
        let answer = match wanted {
            HostRequest::Execute(wanted) => return self.execute(*wanted, connection).await,
            HostRequest::WaitRun {
                run,
                wait,
                document,
            } => return self.wait_run(&run, wait, document, connection).await,
            HostRequest::TailRun {
                run,
                follow,
                document,
            } => {
                return self.tail_run(&run, follow, document, connection).await;
            }
            HostRequest::ListRuns => Ok(json!({"runs": self.runs.list()})),
            HostRequest::CancelRun { run } => self.cancel_run(&run),
            HostRequest::ListSessions => Ok(
                json!({"kernels": session_json::sessions_json(&self.sessions.list_with_memory())}),
            ),
            HostRequest::Freshness { path } => {
                Ok(json!({"notebooks": self.notebooks.find(&path, &self.sessions.list())}))
            }
            HostRequest::Interrupt { session } => self.interrupt(&session).await,
            HostRequest::Reset { session } => self.reset(&session).await,
            HostRequest::EndSession { session, owner } => {
                self.end_session(&session, owner.as_deref()).await
            }
            HostRequest::Query {
                session,
                question,
                patience,
            } => match self.find_session(&session) {
                Ok(found) => {
                    let stop = StopSignal::never().with_timeout(patience);
                    let asked = self.sessions.query(found.id, question.into(), &stop).await;
                    asked
                        .map(|value| json!({"answer": value}))
                        .map_err(|error| self.query_failure(error, &found))
                }
                Err(failure) => Err(failure),
            },
            HostRequest::Journal { session } => match self.find_session(&session) {
                Ok(found) => {
                    self.journals.flush().await;
                    let path = self.journals.path(found.id);
                    let lost = self.journals.lost(found.id);
                    Ok(
                        json!({"journal": path, "lost": lost, "kernel": session_json::session_json(&found)}),
                    )
                }
                Err(failure) => Err(failure),
            },
        };
        send_result(connection, answer).await
    }

    /// The session that somebody means.
    fn find_session(&self, who: &SessionSelector) -> Result<SessionReport, Failure> {
        let mut all = self.sessions.list();
        if let Some(number) = who.name.strip_prefix('@') {
            let found = all.iter().find(|report| report.id.to_string() == number);
            return found
                .cloned()
                .ok_or_else(|| session_not_found(&who.name, &all));
        }
        // Nobody means somebody else's.
        all.retain(|report| {
            report.private_to.is_none() || report.private_to.as_deref() == Some(&who.owner)
        });
        let mut named: Vec<&SessionReport> = all
            .iter()
            .filter(|report| report.key.name == who.name)
            .collect();
        let narrow = |named: &mut Vec<&SessionReport>, wanted: &dyn Fn(&SessionReport) -> bool| {
            if named.iter().any(|report| wanted(report)) {
                named.retain(|report| wanted(report));
            }
        };
        if let Some(cwd) = &who.cwd {
            named.retain(|report| report.key.cwd == *cwd);
        } else if let Some(here) = &who.here {
            narrow(&mut named, &|report| report.key.cwd == *here);
        }
        // Whoever has one of its own means that.
        narrow(&mut named, &|report| report.private_to.is_some());
        match named.as_slice() {
            [found] => Ok((*found).clone()),
            [] => Err(session_not_found(&who.name, &all)),
            several => {
                let message = format!("There are {} sessions named `{}`", several.len(), who.name);
                let mut failure = Failure::new(Kind::BadArguments, message);
                for report in several {
                    let cwd = report.key.cwd.display();
                    let (kernel, id) = (&report.key.kernel, report.id);
                    failure.causes.push(format!("@{id} in {cwd} on {kernel}"));
                }
                Err(failure.hint("say which with the sign and the number, such as @1"))
            }
        }
    }

    async fn interrupt(&self, who: &SessionSelector) -> Result<Value, Failure> {
        let found = self.find_session(who)?;
        let interrupted = self.sessions.interrupt(found.id).await?;
        Ok(json!({"session": found.key.name, "interrupted": interrupted}))
    }

    async fn reset(&self, who: &SessionSelector) -> Result<Value, Failure> {
        let found = self.find_session(who)?;
        check_replaceable(&found.key)?;
        let call = SessionCall {
            key: found.key.clone(),
            owner: who.owner.clone(),
            // Only for a session of one's own beside a shared one; the next call starts its kernel.
            launcher: Arc::new(NoLauncher),
            reset: true,
        };
        let renewed = self.sessions.reset(&call).await?;
        self.save_sessions();
        Ok(json!({
            "session": found.key.name,
            "generation": renewed.generation,
            "private": renewed.private,
        }))
    }

    async fn end_session(
        &self,
        who: &SessionSelector,
        owner: Option<&str>,
    ) -> Result<Value, Failure> {
        let found = self.find_session(who)?;
        let ended = if let Some(owner) = owner {
            if !found.owners.iter().any(|there| there == owner) {
                let message = format!("`{owner}` does not use session `{}`", found.key.name);
                let failure = Failure::new(Kind::BadArguments, message);
                return Err(failure.hint(format!("it is used by {}", found.owners.join(", "))));
            }
            self.sessions.leave(found.id, owner).await?
        } else {
            self.sessions.end(found.id).await?;
            // Others who used it did not ask for that.
            if found.executions > 0 && found.owners.iter().any(|owner| *owner != who.owner) {
                let key = found.key.clone();
                let private_to = found.private_to.clone();
                self.sessions
                    .record_loss(key, private_to, KernelLoss::Stopped);
            }
            true
        };
        self.save_sessions();
        if ended {
            self.journals.forget(found.id);
            let words = format!("session `{}` was ended", found.key.name);
            self.log.write(Level::Info, &words);
        }
        Ok(json!({"session": found.key.name, "ended": ended}))
    }

    /// Runs a job on a kernel that is gone afterwards.
    fn spawn_local(&self, launch: Arc<dyn KernelLauncher>, job: Job) {
        let mut alone = self.local_jobs.lock_ignoring_poison();
        while alone.try_join_next().is_some() {}
        alone.spawn(run_once(launch, self.policy.clone(), job));
    }

    fn query_failure(&self, error: KernelError, session: &SessionReport) -> Failure {
        let early = matches!(error, KernelError::StoppedEarly { .. });
        let none = matches!(error, KernelError::NoSession);
        let mut failure = Failure::from(error);
        if early {
            failure = Failure::new(Kind::TimedOut, "The kernel did not answer in time");
            failure.causes.extend(session_json::describe_busy(session));
            failure = failure.hint(hint![
                command(format!("kernels interrupt {}", session.key.name)),
                " interrupts the running cell",
            ]);
        } else if none {
            failure = Failure::new(Kind::Kernel, "The session has no kernel at the moment");
            failure = failure.hint(hint![
                "the next ",
                command("eval"),
                " in the session starts one",
            ]);
        }
        failure
    }

    /// Writes down which sessions there are, for whoever comes after us.
    fn save_sessions(&self) {
        let sessions = self.ledger.write(&self.sessions);
        self.journals
            .retain(sessions.iter().map(|report| report.id));
        self.launches.retain(&sessions);
    }
}

/// A kernel that somebody else has started stays as it is.
fn check_replaceable(key: &SessionKey) -> Result<(), Failure> {
    if !key.kernel.is_attached() {
        return Ok(());
    }
    let message = format!(
        "The kernel of session `{}` is somebody else's: it cannot be replaced by a fresh one",
        key.name
    );
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint("restart it where it was started"))
}

/// What the settings say about sessions.
fn policy(settings: &Settings) -> Policy {
    let (sessions, kernel) = (&settings.sessions, &settings.kernel);
    Policy {
        max_sessions: sessions.max,
        idle_timeout: (!sessions.idle.is_zero()).then_some(sessions.idle),
        max_restarts: sessions.restarts,
        queue_limit: sessions.queue,
        memory_limit: (kernel.memory_limit > 0).then_some(kernel.memory_limit),
        memory_warning_percent: kernel.memory_warning,
        ..Policy::default()
    }
}

/// The end of an answer.
async fn send_result(
    connection: &mut Connection,
    answer: Result<Value, Failure>,
) -> Result<(), FrameError> {
    #[derive(Serialize)]
    struct FinalFrame {
        end: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
        #[serde(flatten)]
        value: Value,
    }
    let (failure, value) = match answer {
        Ok(value) => (None, value),
        Err(failure) => (Some(failure), json!({})),
    };
    let end = true;
    connection
        .send(&FinalFrame {
            end,
            failure,
            value,
        })
        .await
}

fn session_not_found(name: &str, all: &[SessionReport]) -> Failure {
    let failure = Failure::new(
        Kind::BadArguments,
        format!("There is no session named `{name}`"),
    );
    if all.is_empty() {
        return failure.hint(hint![
            command("eval"),
            " with ",
            flag_value("session", "NAME"),
            " creates one",
        ]);
    }
    let mut names: Vec<&str> = all.iter().map(|report| report.key.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    failure.hint(format!("there are: {}", names.join(", ")))
}

impl Service for HostService {
    fn handle<'a>(
        &'a self,
        request: ServiceRequest,
        connection: &'a mut Connection,
    ) -> BoxFuture<'a, Result<(), FrameError>> {
        Box::pin(self.serve(request, connection))
    }

    fn counts(&self) -> Map<String, Value> {
        let sessions = self.sessions.list();
        let busy = sessions
            .iter()
            .filter(|report| session_json::is_busy(report))
            .count();
        let mut counts = Map::new();
        counts.insert("sessions".to_owned(), sessions.len().into());
        counts.insert("busy".to_owned(), busy.into());
        counts.insert("runs".to_owned(), self.runs.count().into());
        counts
    }

    fn is_idle(&self) -> bool {
        self.sessions.count() == 0 && self.runs.is_idle()
    }

    fn shut_down(&self) -> BoxFuture<'_, Map<String, Value>> {
        Box::pin(async move {
            let mut ended = Map::new();
            let stopped = self.runs.stop_all(StopReason::ShuttingDown);
            for (name, count) in [("sessions", self.sessions.count()), ("runs", stopped)] {
                if count > 0 {
                    ended.insert(name.to_owned(), count.into());
                }
            }
            self.sessions.close().await;
            let alone = {
                let mut guard = self.local_jobs.lock_ignoring_poison();
                std::mem::take(&mut *guard)
            };
            alone.join_all().await;
            self.ledger.remove();
            self.journals.flush().await;
            self.journals.remove();
            ended
        })
    }
}

/// Makes a folder that only we can look into.
fn create_private_dir(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
