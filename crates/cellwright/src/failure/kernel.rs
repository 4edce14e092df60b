//! Words for what goes wrong with kernels.

use std::error::Error as _;
use std::time::Duration;

use cellwright_jupyter::connection::ConnectionError;
use cellwright_jupyter::kernelspec::Fault;
use cellwright_kernel::{KernelError, State, StopReason};
use cellwright_output::Bytes;

use super::{Failure, Kind};
use crate::kernels::ipykernel::install_command;
use crate::settings::nearest;

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        let mut failure = Self::new(Kind::Kernel, capitalised(&error.to_string()));
        let mut cause = error.source();
        while let Some(inner) = cause {
            failure.causes.push(inner.to_string());
            cause = inner.source();
        }
        match &error {
            KernelError::NoPython { rejected } => {
                for rejected in rejected {
                    let place = rejected.place.display();
                    failure.causes.push(format!("{place}: {}", rejected.why));
                }
                failure.hint("install Python 3.8 or newer, or name one with --python")
            }
            KernelError::TooOld { .. } => failure
                .hint("name a newer one with --python; `cellwright doctor` shows what there is"),
            KernelError::NoKernelspec { .. }
            | KernelError::BrokenKernelspec { .. }
            | KernelError::NoIpykernel { .. }
            | KernelError::Connection { .. }
            | KernelError::NoSockets { .. }
            | KernelError::Unreachable { .. } => failure.explain_jupyter(&error),
            KernelError::BadDirectory { .. } => failure.hint("name another one with --cwd"),
            KernelError::FailedToStart { stderr, .. } | KernelError::NotReady { stderr, .. } => {
                failure.causes.extend(last_lines(stderr, 8));
                failure.hint("`cellwright doctor` checks the interpreter; --python names another")
            }
            KernelError::Launch { .. } => {
                failure.hint("`cellwright doctor` checks the interpreter; --python names another")
            }
            KernelError::Staging { .. } => failure.hint(
                "the folder must be yours alone and have room; CELLWRIGHT_CACHE_DIR names another",
            ),
            KernelError::Module { what, .. } => {
                failure.causes.push(what.clone());
                failure.hint("mend it, or take it out of the folder; nothing was run")
            }
            KernelError::SharedReset { .. } => failure
                .hint("reset it before the first cell: this owner then gets a kernel of its own"),
            KernelError::RestartedTooOften => failure.hint(
                "--reset (or `cellwright kernels reset NAME`) tries again from the beginning",
            ),
            KernelError::TooManySessions { .. } => failure.hint(
                "`cellwright kernels list` shows them, `cellwright kernels stop NAME` ends one; \
                 sessions.max is the setting",
            ),
            KernelError::QueueFull { .. } => {
                failure.hint("wait for them, or use another session; sessions.queue is the setting")
            }
            KernelError::Exhausted { .. } => failure.hint(
                "close something, or raise the limit (a host keeps that of the command that started it)",
            ),
            KernelError::Protocol { .. } => failure.hint(
                "the code may have written to descriptors that are not its own; its state is lost",
            ),
            _ => failure,
        }
    }
}

impl Failure {
    fn explain_jupyter(mut self, error: &KernelError) -> Self {
        let listed = "`cellwright kernels specs` lists the kernels there are";
        match error {
            KernelError::NoKernelspec {
                name,
                available,
                searched,
            } => {
                if available.is_empty() {
                    let looked = searched.iter();
                    let looked = looked.map(|folder| format!("looked in {}", folder.display()));
                    self.causes.extend(looked);
                    return self.hint("none is installed; `cellwright doctor` says how to get one");
                }
                let near = nearest(name, available.iter().map(String::as_str));
                let failure = match near {
                    Some(near) => self.hint(format!("did you mean `{near}`?")),
                    None => self,
                };
                failure.hint(listed)
            }
            KernelError::BrokenKernelspec { fault, .. } => match fault {
                Fault::NoProgram { .. } => self.hint(
                    "install it, or mend the kernel.json; `cellwright kernels specs` says where that is",
                ),
                _ => self.hint("mend it; `cellwright kernels specs` says where it is"),
            },
            KernelError::NoIpykernel { python } => self
                .hint(format!("install it: `{}`", install_command(python)))
                .hint("or name another Python with --python; --backend runner needs none of it"),
            KernelError::Connection { source } => match source {
                ConnectionError::File { .. } => self.hint("it goes when its kernel ends"),
                _ => self.hint("`%connect_info` in the kernel prints what it should contain"),
            },
            KernelError::NoSockets { .. } => self.hint(
                "CELLWRIGHT_HOST_DIR names a folder; `kernel.transport = \"tcp\"` needs none",
            ),
            KernelError::Unreachable { .. } => {
                self.hint("it may have ended without taking its connection file away")
            }
            _ => self,
        }
    }

    /// A kernel that failed while it ran a cell.
    pub(crate) fn in_cell(error: KernelError, cell: usize) -> Self {
        let died = matches!(error, KernelError::Died { .. });
        let mut failure = Self::from(error);
        failure.message = format!("{} in cell {cell}", failure.message);
        if died {
            failure = failure.hint("what it had printed is above; its variables are lost");
        }
        failure
    }

    /// A run that was stopped; `state` is that of the kernel, if the code had begun.
    pub(crate) fn stopped(reason: StopReason, state: Option<State>) -> Self {
        let (kind, mut message) = match reason {
            StopReason::TimedOut(after) => (
                Kind::TimedOut,
                format!("Timed out after {}", seconds(after)),
            ),
            StopReason::Cancelled => (Kind::Cancelled, "Cancelled".to_owned()),
            // Nobody waited for the code to react, and nothing is left of its state.
            StopReason::ShuttingDown | StopReason::Reset => {
                let who = if reason == StopReason::Reset {
                    "the kernel was reset"
                } else {
                    "the session was ended"
                };
                let begun =
                    state.map_or(" before the code had begun", |_| "; its variables are gone");
                let message = format!("Cancelled: {who}{begun}");
                return Self::new(Kind::Cancelled, message);
            }
            StopReason::MemoryLimit { used, limit } => (
                Kind::Cancelled,
                format!(
                    "Stopped: the kernel used {} of the {} that it may use",
                    Bytes(used),
                    Bytes(limit)
                ),
            ),
        };
        message.push_str(match state {
            None => " before the code had begun",
            Some(State::Kept) => "; the code was interrupted",
            Some(State::Lost) => "; the code did not react to being interrupted and was killed",
        });
        let failure = Self::new(kind, message);
        match reason {
            StopReason::TimedOut(_) => {
                failure.hint("--timeout SECONDS gives it more time, 0 means no limit")
            }
            _ => failure,
        }
    }
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!("{seconds} s")
}

pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if first.is_ascii_lowercase() => {
            first.to_ascii_uppercase().to_string() + characters.as_str()
        }
        _ => text.to_owned(),
    }
}

fn last_lines(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_kernels_were_looked_for_is_told_if_there_are_none() {
        let error = KernelError::NoKernelspec {
            name: "ir".to_owned(),
            available: Vec::new(),
            searched: vec!["/usr/share/jupyter/kernels".into()],
        };
        let failure = Failure::from(error);
        assert_eq!(failure.causes, ["looked in /usr/share/jupyter/kernels"]);
    }
}
