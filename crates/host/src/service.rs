//! [`HostService`]: owns sessions and runs, and serves the requests of clients.

mod input_requests;
mod journal;
mod kernel_starts;
mod launchers;
mod notebook_history;
mod runs;
mod runs_service;
mod session_list;
mod sessions_service;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernel_setup::SharedBridge;
use cellwright_engine::runtime_dir::RuntimeDir;
use cellwright_engine::settings::Settings;
use cellwright_kernel::session::{
    Activity, Job, KernelLauncher, Policy, SessionReport, Sessions, SpareKernels, run_once,
};
use cellwright_kernel::{StopReason, StopSignal};
use cellwright_stdext::LockExt;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::channel::ReplyChannel;
use super::frame::FrameError;
use super::log::{Level, Log};
use super::protocol::HostRequest;
use super::reply::{Answer, HostReply, JournalInfo, SessionInfo};
use journal::Journals;
use kernel_starts::KernelStarts;
use launchers::LauncherCache;
use notebook_history::NotebookHistories;
use runs::Runs;
use session_list::SessionList;

/// Owns sessions and runs.
pub(super) struct HostService {
    engine: Arc<Engine>,
    /// Serves the calls of cells to verbs.
    bridge: SharedBridge,
    policy: Policy,
    sessions: Sessions,
    launchers: LauncherCache,
    kernel_starts: Arc<KernelStarts>,
    runs: Runs,
    journals: Arc<Journals>,
    histories: Arc<NotebookHistories>,
    session_list: SessionList,
    log: Arc<Log>,
    /// Jobs on kernels without a session.
    local_jobs: Mutex<JoinSet<()>>,
    /// Ends sessions that have been idle too long.
    _sweeper: JoinSet<()>,
}

impl HostService {
    /// Creates the service of a host in `dir`. Must be called within a runtime. The sessions share their limit with those
    /// of `sibling`.
    pub(super) fn new(
        engine: Engine,
        dir: &RuntimeDir,
        log: &Arc<Log>,
        sibling: Option<&Self>,
    ) -> Self {
        let engine = Arc::new(engine);
        // Clients send the settings of their projects.
        let settings = engine.settings(Path::new("/")).unwrap_or_else(|error| {
            let text = format!("the settings are ignored: {}", Failure::from(error).message);
            log.write(Level::Error, &text);
            Settings::default()
        });
        let policy = policy(&settings);
        let new_pool = || {
            let spares = if settings.kernel.spare {
                SpareKernels::new()
            } else {
                SpareKernels::disabled()
            };
            Sessions::new(policy.clone(), spares)
        };
        let sessions = sibling.map_or_else(new_pool, |sibling| sibling.sessions.sibling());
        let session_list = SessionList::new(dir.file_path("sessions.json"));
        let lost = session_list.recover_lost(&sessions);
        if lost > 0 {
            let text = format!("the previous host was killed with {lost} sessions");
            log.write(Level::Warn, &text);
        }
        let mut sweeper = JoinSet::new();
        let swept = sessions.clone();
        sweeper.spawn(async move { swept.evict_idle().await });
        Self {
            engine,
            bridge: SharedBridge::default(),
            runs: Runs::new(dir.file_path("runs.next"), &settings),
            journals: Arc::new(Journals::new(dir.file_path("journal"))),
            histories: Arc::default(),
            session_list,
            policy,
            sessions,
            launchers: LauncherCache::default(),
            kernel_starts: Arc::default(),
            log: Arc::clone(log),
            local_jobs: Mutex::default(),
            _sweeper: sweeper,
        }
    }

    /// Serves a request. The last reply is final; the client may send messages until then. An error means that the
    /// channel is of no use any more.
    pub(super) async fn serve(
        &self,
        request: HostRequest,
        channel: &mut ReplyChannel<'_>,
    ) -> Result<(), FrameError> {
        self.sessions.discard_never_started();
        let answer = match request {
            HostRequest::Execute(params) => return self.execute(*params, channel).await,
            HostRequest::WaitRun { run, options } => {
                return self.wait_run(&run, options, channel).await;
            }
            HostRequest::TailRun { run, follow } => {
                return self.tail_run(&run, follow, channel).await;
            }
            HostRequest::ListRuns => Ok(Answer::Runs(self.runs.list())),
            HostRequest::CancelRun { run } => self.cancel_run(&run).map(Answer::Cancelled),
            HostRequest::ListSessions => {
                let sessions = self.sessions.list_with_memory();
                Ok(Answer::Sessions(
                    sessions.iter().map(SessionInfo::from).collect(),
                ))
            }
            HostRequest::Histories { path } => {
                let histories = self.histories.find(&path, &self.sessions.list());
                Ok(Answer::Histories(histories))
            }
            HostRequest::Interrupt { session } => {
                self.interrupt(&session).await.map(Answer::Interrupted)
            }
            HostRequest::Reset { session } => self.reset(&session).await.map(Answer::Reset),
            HostRequest::EndSession { session, owner } => {
                let ended = self.end_session(&session, owner.as_deref()).await;
                ended.map(Answer::Ended)
            }
            HostRequest::Query {
                session,
                query,
                timeout,
            } => match self.find_session(&session) {
                Ok(found) => {
                    let stop = StopSignal::never().with_timeout(timeout);
                    let answer = self.sessions.query(found.id, query.into(), &stop).await;
                    answer
                        .map(Answer::Query)
                        .map_err(|error| sessions_service::query_failure(error, &found))
                }
                Err(failure) => Err(failure),
            },
            HostRequest::Journal { session } => match self.find_session(&session) {
                Ok(found) => {
                    self.journals.flush().await;
                    Ok(Answer::Journal(Box::new(JournalInfo {
                        journal: self.journals.path(found.id),
                        lost: self.journals.lost(found.id),
                        kernel: SessionInfo::from(&found),
                    })))
                }
                Err(failure) => Err(failure),
            },
        };
        channel.send(final_reply(answer)).await
    }

    /// Runs a job on a kernel that ends with it.
    fn spawn_local(&self, launcher: Arc<dyn KernelLauncher>, job: Job) {
        let mut jobs = self.local_jobs();
        while jobs.try_join_next().is_some() {}
        jobs.spawn(run_once(launcher, self.policy.clone(), job));
    }

    fn local_jobs(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.local_jobs.lock_ignoring_poison()
    }

    /// Saves which sessions exist, for the next host.
    fn save_sessions(&self) {
        let sessions = self.session_list.write(&self.sessions);
        self.journals
            .retain(sessions.iter().map(|report| report.id));
        self.launchers.retain(&sessions);
        self.kernel_starts.retain(&sessions);
    }

    /// The numbers of sessions and runs, for `status`.
    pub(super) fn counts(&self) -> Map<String, Value> {
        let sessions = self.sessions.list();
        let is_busy = |report: &&SessionReport| matches!(report.activity, Activity::Busy { .. });
        let busy = sessions.iter().filter(is_busy).count();
        let mut counts = Map::new();
        counts.insert("sessions".to_owned(), sessions.len().into());
        counts.insert("busy".to_owned(), busy.into());
        counts.insert("runs".to_owned(), self.runs.count().into());
        counts
    }

    /// Whether the host owns nothing, so that it may end.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.count() == 0 && self.runs.is_idle()
    }

    /// Ends all sessions and runs, and with them the requests in progress. Returns the number of each.
    pub(super) async fn shut_down(&self) -> Map<String, Value> {
        let mut ended = Map::new();
        let stopped = self.runs.stop_all(StopReason::ShuttingDown);
        for (name, count) in [("sessions", self.sessions.count()), ("runs", stopped)] {
            if count > 0 {
                ended.insert(name.to_owned(), count.into());
            }
        }
        self.sessions.close().await;
        let jobs = std::mem::take(&mut *self.local_jobs());
        jobs.join_all().await;
        self.session_list.remove();
        self.journals.flush().await;
        self.journals.remove();
        ended
    }
}

/// The reply that ends an answer.
fn final_reply(answer: Result<Answer, Failure>) -> HostReply {
    match answer {
        Ok(answer) => HostReply::Answer(Box::new(answer)),
        Err(failure) => HostReply::Failed(Box::new(failure)),
    }
}

/// The policy that the settings define.
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

/// Creates a directory that only this user can read.
fn create_private_dir(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
