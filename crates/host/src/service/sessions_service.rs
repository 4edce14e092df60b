//! Finds, interrupts, resets and ends sessions.

use std::sync::Arc;

use cellwright_diagnostics::failure::{Failure, Kind, command, flag_value, hint};
use cellwright_engine::kernels::FailingLauncher;
use cellwright_kernel::KernelError;
use cellwright_kernel::session::{Activity, KernelLoss, SessionCall, SessionKey, SessionReport};

use super::super::log::Level;
use super::super::protocol::SessionSelector;
use super::super::reply::{EndResult, InterruptResult, ResetResult};
use super::HostService;

impl HostService {
    /// Finds the session that a client selects.
    pub(super) fn find_session(
        &self,
        selector: &SessionSelector,
    ) -> Result<SessionReport, Failure> {
        let mut all = self.sessions.list();
        if let Some(id) = selector.name.strip_prefix('@') {
            let found = all.iter().find(|report| report.id.to_string() == id);
            return found
                .cloned()
                .ok_or_else(|| session_not_found(&selector.name, &all));
        }
        // Private sessions of other owners cannot be selected by name.
        all.retain(|report| {
            report.private_to.is_none() || report.private_to.as_deref() == Some(&selector.owner)
        });
        let mut named: Vec<&SessionReport> = all
            .iter()
            .filter(|report| report.key.name == selector.name)
            .collect();
        let prefer = |named: &mut Vec<&SessionReport>, matches: &dyn Fn(&SessionReport) -> bool| {
            if named.iter().any(|report| matches(report)) {
                named.retain(|report| matches(report));
            }
        };
        if let Some(cwd) = &selector.cwd {
            named.retain(|report| report.key.cwd == *cwd);
        } else if let Some(here) = &selector.here {
            prefer(&mut named, &|report| report.key.cwd == *here);
        }
        // An owner with a private session means that one.
        prefer(&mut named, &|report| report.private_to.is_some());
        match named.as_slice() {
            [found] => Ok((*found).clone()),
            [] => Err(session_not_found(&selector.name, &all)),
            several => {
                let message = format!(
                    "There are {} sessions named `{}`",
                    several.len(),
                    selector.name
                );
                let mut failure = Failure::new(Kind::BadArguments, message);
                for report in several {
                    let cwd = report.key.cwd.display();
                    let (kernel, id) = (&report.key.kernel, report.id);
                    failure.causes.push(format!("@{id} in {cwd} on {kernel}"));
                }
                Err(failure.hint("choose one by id, for example `@1`"))
            }
        }
    }

    pub(super) async fn interrupt(
        &self,
        selector: &SessionSelector,
    ) -> Result<InterruptResult, Failure> {
        let found = self.find_session(selector)?;
        let interrupted = self.sessions.interrupt(found.id).await?;
        Ok(InterruptResult {
            session: found.key.name,
            interrupted,
        })
    }

    pub(super) async fn reset(&self, selector: &SessionSelector) -> Result<ResetResult, Failure> {
        let found = self.find_session(selector)?;
        check_replaceable(&found.key)?;
        let call = SessionCall {
            key: found.key.clone(),
            owner: selector.owner.clone(),
            // Used only for a new private session; the next call starts its kernel.
            launcher: Arc::new(FailingLauncher),
            reset: true,
        };
        let outcome = self.sessions.reset(&call).await?;
        self.save_sessions();
        Ok(ResetResult {
            session: found.key.name,
            generation: outcome.generation,
            private: outcome.private,
        })
    }

    pub(super) async fn end_session(
        &self,
        selector: &SessionSelector,
        owner: Option<&str>,
    ) -> Result<EndResult, Failure> {
        let found = self.find_session(selector)?;
        let ended = if let Some(owner) = owner {
            if !found.owners.iter().any(|other| other == owner) {
                let message = format!("`{owner}` does not use session `{}`", found.key.name);
                let failure = Failure::new(Kind::BadArguments, message);
                return Err(failure.hint(format!("its owners are {}", found.owners.join(", "))));
            }
            self.sessions.leave(found.id, owner).await?
        } else {
            self.sessions.end(found.id).await?;
            // The next call of another owner reports the loss.
            let is_other = |owner: &String| *owner != selector.owner;
            if found.executions > 0 && found.owners.iter().any(is_other) {
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
            let text = format!("session `{}` was ended", found.key.name);
            self.log.write(Level::Info, &text);
        }
        Ok(EndResult {
            session: found.key.name,
            ended,
        })
    }
}

/// Checks that the kernel of a session is not an attached one, which only its owner can restart.
pub(super) fn check_replaceable(key: &SessionKey) -> Result<(), Failure> {
    if !key.kernel.is_attached() {
        return Ok(());
    }
    let message = format!(
        "The kernel of session `{}` was started by another program and cannot be replaced",
        key.name
    );
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint("restart it where it was started"))
}

/// Describes a failed query.
pub(super) fn query_failure(error: KernelError, session: &SessionReport) -> Failure {
    match error {
        KernelError::StoppedEarly { .. } => {
            let mut failure = Failure::new(Kind::TimedOut, "The kernel did not answer in time");
            failure.causes.extend(describe_activity(session));
            failure.hint(hint![
                command(format!("kernels interrupt {}", session.key.name)),
                " interrupts the running cell",
            ])
        }
        KernelError::NoSession => {
            let failure = Failure::new(Kind::Kernel, "The session has no kernel at the moment");
            failure.hint(hint![
                "the next ",
                command("eval"),
                " in the session starts one",
            ])
        }
        error => error.into(),
    }
}

/// Describes why a session cannot answer.
fn describe_activity(report: &SessionReport) -> Option<String> {
    match &report.activity {
        Activity::Busy {
            owner,
            label,
            since,
        } => Some(format!(
            "it has been busy for {} s with `{label}` (owner {owner})",
            since.elapsed().unwrap_or_default().as_secs()
        )),
        Activity::Starting => Some("it is starting".to_owned()),
        _ => None,
    }
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
    failure.hint(format!("existing sessions: {}", names.join(", ")))
}
