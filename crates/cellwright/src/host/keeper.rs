//! [`Keeper`]: the service of a host. It keeps sessions and runs, and does with them what commands
//! want.

mod eval;
mod journal;
mod launches;
mod ledger;
mod look;
mod notebooks;
mod questions;
mod runs;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use cellwright_kernel::session::{
    Call, Job, Launch, Loss, Policy, SessionKey, SessionReport, Sessions, Spares, run_once,
};
use cellwright_kernel::{BoxFuture, KernelError, Stop, StopReason};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::folder::Folder;
use super::frame::FrameError;
use super::log::{Level, Log};
use super::service::{Request, Service};
use super::wanted::{Wanted, Who};
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::inside::SharedBridge;
use crate::kernels::{EXISTING, Unlaunchable};
use crate::settings::Settings;
use journal::Journals;
use launches::Launches;
use ledger::Ledger;
use notebooks::Notebooks;
use runs::Runs;

/// Keeps sessions and runs.
pub(super) struct Keeper {
    engine: Arc<Engine>,
    /// The way back from cells.
    bridge: SharedBridge,
    policy: Policy,
    sessions: Sessions,
    launches: Launches,
    runs: Runs,
    journals: Arc<Journals>,
    notebooks: Arc<Notebooks>,
    ledger: Ledger,
    log: Arc<Log>,
    /// Jobs on kernels of their own.
    alone: Mutex<JoinSet<()>>,
    /// Ends sessions that have been idle too long.
    _sweeping: JoinSet<()>,
}

impl Keeper {
    /// For a host that lives in `folder`. Must be called within a runtime.
    pub(super) fn new(folder: &Folder, log: &Arc<Log>) -> Self {
        let engine = Arc::new(Engine::from_env());
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
            Spares::new()
        } else {
            Spares::none()
        };
        let sessions = Sessions::new(policy.clone(), spares);
        let ledger = Ledger::new(folder.file("sessions.json"));
        let lost = ledger.take_lost(&sessions);
        if lost > 0 {
            let words = format!("the host before this one left {lost} sessions behind");
            log.write(Level::Warn, &words);
        }
        let mut sweeping = JoinSet::new();
        let swept = sessions.clone();
        sweeping.spawn(async move { swept.sweep().await });
        Self {
            engine,
            bridge: SharedBridge::default(),
            runs: Runs::new(folder.file("runs.next"), &settings),
            journals: Arc::new(Journals::new(folder.file("journal"))),
            notebooks: Arc::default(),
            ledger,
            policy,
            sessions,
            launches: Launches::default(),
            log: Arc::clone(log),
            alone: Mutex::default(),
            _sweeping: sweeping,
        }
    }

    async fn serve(&self, request: Request, connection: &mut Connection) -> Result<(), FrameError> {
        // By itself, because to find out which it is by a name inside means to read everything twice.
        let parsed = if request.name == Wanted::EVAL {
            let wanted = request.frame.parse();
            wanted.map(|wanted| Wanted::Eval(Box::new(wanted)))
        } else {
            request.frame.parse()
        };
        let wanted = match parsed {
            Ok(wanted) => wanted,
            Err(error) => {
                let words = format!("`{}` was not understood: {error}", request.name);
                let code = if Wanted::NAMES.contains(&request.name.as_str()) {
                    "not_understood"
                } else {
                    "unknown_request"
                };
                return connection.refuse(code, &words).await;
            }
        };
        self.sessions.discard_unborn();
        let answer = match wanted {
            Wanted::Eval(wanted) => return self.eval(*wanted, connection).await,
            Wanted::RunWait {
                run,
                wait,
                document,
            } => return self.run_wait(&run, wait, document, connection).await,
            Wanted::RunTail {
                run,
                follow,
                document,
            } => {
                return self.run_tail(&run, follow, document, connection).await;
            }
            Wanted::Runs => Ok(json!({"runs": self.runs.list()})),
            Wanted::RunCancel { run } => self.run_cancel(&run),
            Wanted::Kernels => {
                Ok(json!({"kernels": look::reports(&self.sessions.list_with_memory())}))
            }
            Wanted::Freshness { path } => {
                Ok(json!({"notebooks": self.notebooks.of(&path, &self.sessions.list())}))
            }
            Wanted::Interrupt { session } => self.interrupt(&session).await,
            Wanted::Reset { session } => self.reset(&session).await,
            Wanted::EndSession { session, owner } => self.stop(&session, owner.as_deref()).await,
            Wanted::Ask {
                session,
                question,
                patience,
            } => match self.find(&session) {
                Ok(found) => {
                    let stop = Stop::never().with_timeout(patience);
                    let asked = self.sessions.ask(found.id, question.into(), &stop).await;
                    asked
                        .map(|value| json!({"answer": value}))
                        .map_err(|error| self.unanswered(error, &found))
                }
                Err(failure) => Err(failure),
            },
            Wanted::Journal { session } => match self.find(&session) {
                Ok(found) => {
                    self.journals.settled().await;
                    let path = self.journals.path(found.id);
                    let lost = self.journals.lost(found.id);
                    Ok(json!({"journal": path, "lost": lost, "kernel": look::report(&found)}))
                }
                Err(failure) => Err(failure),
            },
        };
        end(connection, answer).await
    }

    /// The session that somebody means.
    fn find(&self, who: &Who) -> Result<SessionReport, Failure> {
        let mut all = self.sessions.list();
        if let Some(number) = who.name.strip_prefix('@') {
            let found = all.iter().find(|report| report.id.to_string() == number);
            return found.cloned().ok_or_else(|| no_session(&who.name, &all));
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
            [] => Err(no_session(&who.name, &all)),
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

    async fn interrupt(&self, who: &Who) -> Result<Value, Failure> {
        let found = self.find(who)?;
        let interrupted = self.sessions.interrupt(found.id).await?;
        Ok(json!({"session": found.key.name, "interrupted": interrupted}))
    }

    async fn reset(&self, who: &Who) -> Result<Value, Failure> {
        let found = self.find(who)?;
        refuse_to_replace(&found.key)?;
        let call = Call {
            key: found.key.clone(),
            owner: who.owner.clone(),
            // Only for a session of one's own beside a shared one; the next call starts its kernel.
            launch: Arc::new(Unlaunchable),
            reset: true,
        };
        let renewed = self.sessions.reset(&call).await?;
        self.note_sessions();
        Ok(json!({
            "session": found.key.name,
            "generation": renewed.generation,
            "private": renewed.private,
        }))
    }

    async fn stop(&self, who: &Who, owner: Option<&str>) -> Result<Value, Failure> {
        let found = self.find(who)?;
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
                self.sessions.remember_loss(key, private_to, Loss::Ended);
            }
            true
        };
        self.note_sessions();
        if ended {
            self.journals.forget(found.id);
            let words = format!("session `{}` was ended", found.key.name);
            self.log.write(Level::Info, &words);
        }
        Ok(json!({"session": found.key.name, "ended": ended}))
    }

    /// Runs a job on a kernel that is gone afterwards.
    fn run_alone(&self, launch: Arc<dyn Launch>, job: Job) {
        let mut alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        while alone.try_join_next().is_some() {}
        alone.spawn(run_once(launch, self.policy.clone(), job));
    }

    fn unanswered(&self, error: KernelError, session: &SessionReport) -> Failure {
        let early = matches!(error, KernelError::StoppedEarly { .. });
        let none = matches!(error, KernelError::NoSession);
        let mut failure = Failure::from(error);
        if early {
            failure = Failure::new(Kind::TimedOut, "The kernel did not answer in time");
            failure.causes.extend(look::busy(session));
            failure = failure.hint(format!(
                "`cellwright kernels interrupt {}` stops what it runs",
                session.key.name
            ));
        } else if none {
            failure = Failure::new(Kind::Kernel, "The session has no kernel at the moment");
            failure = failure.hint("the next `eval --session` starts one");
        }
        failure
    }

    /// Writes down which sessions there are, for whoever comes after us.
    fn note_sessions(&self) {
        let sessions = self.ledger.write(&self.sessions);
        self.journals.keep(sessions.iter().map(|report| report.id));
        self.launches.keep(&sessions);
    }
}

/// A kernel that somebody else has started stays as it is.
fn refuse_to_replace(key: &SessionKey) -> Result<(), Failure> {
    if !key.kernel.starts_with(EXISTING) {
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
        most_sessions: sessions.max,
        idle: (!sessions.idle.is_zero()).then_some(sessions.idle),
        restarts: sessions.restarts,
        queue: sessions.queue,
        memory_limit: (kernel.memory_limit > 0).then_some(kernel.memory_limit),
        memory_warning: kernel.memory_warning,
        ..Policy::default()
    }
}

/// The end of an answer.
async fn end(
    connection: &mut Connection,
    answer: Result<Value, Failure>,
) -> Result<(), FrameError> {
    #[derive(Serialize)]
    struct End {
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
        .send(&End {
            end,
            failure,
            value,
        })
        .await
}

fn no_session(name: &str, all: &[SessionReport]) -> Failure {
    let failure = Failure::new(
        Kind::BadArguments,
        format!("There is no session named `{name}`"),
    );
    if all.is_empty() {
        return failure.hint("`cellwright eval --session NAME CODE` makes one");
    }
    let mut names: Vec<&str> = all.iter().map(|report| report.key.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    failure.hint(format!("there are: {}", names.join(", ")))
}

impl Service for Keeper {
    fn handle<'a>(
        &'a self,
        request: Request,
        connection: &'a mut Connection,
    ) -> BoxFuture<'a, Result<(), FrameError>> {
        Box::pin(self.serve(request, connection))
    }

    fn counts(&self) -> Map<String, Value> {
        let sessions = self.sessions.list();
        let busy = sessions
            .iter()
            .filter(|report| look::is_busy(report))
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

    fn end(&self) -> BoxFuture<'_, Map<String, Value>> {
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
                let mut guard = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *guard)
            };
            alone.join_all().await;
            self.ledger.remove();
            self.journals.settled().await;
            self.journals.remove();
            ended
        })
    }
}

/// Makes a folder that only we can look into.
fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
