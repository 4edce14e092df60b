//! Failures of kernels.

use std::time::Duration;

use cellwright_jupyter::connection::ConnectionError;
use cellwright_jupyter::kernelspec::KernelspecError;
use cellwright_kernel::{KernelError, KernelState, StopReason, TimeLimit};
use cellwright_output::ByteSize;

use super::{Failure, Hint, Kind, capitalize, command, flag, flag_value, hint};
use crate::suggest::nearest;

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        if let KernelError::OverIpc { source } = error {
            let hint = tcp_hint("if this kernel does not support Unix sockets");
            return Self::from(*source).hint(hint);
        }
        if let KernelError::Server { error, .. } = error {
            return error.into();
        }
        let mut failure = Self::new(Kind::Kernel, capitalize(&error.to_string()));
        failure.add_causes(&error);
        match &error {
            KernelError::NoPython { rejected } => {
                for rejected in rejected {
                    let path = rejected.path.display();
                    failure.causes.push(format!("{path}: {}", rejected.reason));
                }
                failure.hint(hint!["install Python 3.8 or newer, or name one with ", flag("python")])
            }
            KernelError::TooOld { .. } => failure.hint(hint![
                "name a newer one with ",
                flag("python"),
                "; ",
                command("doctor"),
                " lists the interpreters",
            ]),
            KernelError::NoKernelspec { .. }
            | KernelError::BrokenKernelspec { .. }
            | KernelError::NoIpykernel { .. }
            | KernelError::Connection { .. }
            | KernelError::NoSockets { .. }
            | KernelError::Unreachable { .. } => failure.with_jupyter_hints(&error),
            KernelError::NoLocalGateway {
                log,
                install_command,
                ..
            } => {
                failure.causes.extend(log.iter().cloned());
                match install_command {
                    Some(command) => failure.hint(format!("install it: `{command}`")),
                    None => failure,
                }
            }
            KernelError::BadDirectory { .. } => failure.hint(hint!["name another one with ", flag("cwd")]),
            KernelError::FailedToStart { stderr, .. } => {
                failure.causes.extend(last_lines(stderr, 8));
                failure.hint(interpreter_hint())
            }
            KernelError::NotReady { stderr, .. } => {
                failure.causes.extend(last_lines(stderr, 8));
                failure.hint(start_limit_hint()).hint(interpreter_hint())
            }
            KernelError::Launch { .. } => {
                failure.hint(interpreter_hint())
            }
            KernelError::Staging { .. } => failure.hint(
                "the directory must be private to you and have free space; CELLWRIGHT_CACHE_DIR names another one",
            ),
            KernelError::Module { message, .. } => {
                failure.causes.push(message.clone());
                failure.hint("fix or remove the module; nothing was run")
            }
            KernelError::SharedReset { .. } => failure
                .hint("reset it before the first cell: this owner then gets a separate kernel"),
            KernelError::RestartedTooOften => failure.hint(hint![
                flag("reset"),
                " or ",
                command("kernels reset NAME"),
                " starts a new kernel",
            ]),
            KernelError::TooManySessions { .. } => failure.hint(hint![
                command("kernels list"),
                " lists them, ",
                command("kernels stop NAME"),
                " stops one; the setting `sessions.max` is the limit",
            ]),
            KernelError::QueueFull { .. } => {
                failure.hint("wait, or use another session; the setting `sessions.queue` is the limit")
            }
            KernelError::Exhausted { .. } => failure.hint(
                "close files or programs, or raise the limit (a host has the limit of the command that started it)",
            ),
            KernelError::Protocol { .. } => failure.hint(
                "the code may have written to file descriptors of the kernel; its state is lost",
            ),
            _ => failure,
        }
    }
}

impl Failure {
    fn with_jupyter_hints(mut self, error: &KernelError) -> Self {
        let listed = hint![command("kernels specs"), " lists the installed kernels"];
        match error {
            KernelError::NoKernelspec {
                name,
                available,
                searched,
            } => {
                if available.is_empty() {
                    let searched = searched.iter();
                    let causes = searched.map(|dir| format!("searched {}", dir.display()));
                    self.causes.extend(causes);
                    return self.hint(hint![
                        "no kernel is installed; ",
                        command("doctor"),
                        " shows how to install one",
                    ]);
                }
                let suggestion = nearest(name, available.iter().map(String::as_str));
                let failure = match suggestion {
                    Some(suggestion) => self.hint(format!("did you mean `{suggestion}`?")),
                    None => self,
                };
                failure.hint(listed)
            }
            KernelError::BrokenKernelspec { source, .. } => match source {
                KernelspecError::NoProgram { .. } => self.hint(hint![
                    "install the program, or fix the kernel.json; ",
                    command("kernels specs"),
                    " shows its path",
                ]),
                _ => self.hint(hint![
                    "fix the kernelspec; ",
                    command("kernels specs"),
                    " shows its path",
                ]),
            },
            KernelError::NoIpykernel {
                python,
                install_command,
            } => self
                .hint(match install_command {
                    Some(command) => format!("install it: `{command}`"),
                    None => format!("install it for {}", python.display()),
                })
                .hint(hint![
                    "or name another Python with ",
                    flag("python"),
                    "; ",
                    flag_value("backend", "runner"),
                    " does not need ipykernel",
                ]),
            KernelError::Connection { source } => match source {
                ConnectionError::File { .. } => {
                    self.hint("a kernel removes its connection file when it exits")
                }
                _ => self.hint("`%connect_info` in the kernel prints what it should contain"),
            },
            KernelError::NoSockets { .. } => self
                .hint("name a directory of yours with a short path in CELLWRIGHT_HOST_DIR")
                .hint(tcp_hint("to use no directory")),
            KernelError::Unreachable { .. } => {
                self.hint("it may have exited without removing its connection file")
            }
            _ => self,
        }
    }

    /// The kernel failed while it ran a cell.
    pub fn from_cell_error(error: KernelError, cell: usize) -> Self {
        let died = matches!(error, KernelError::Died { .. });
        let mut failure = Self::from(error);
        failure.message = format!("{} in cell {cell}", failure.message);
        if died {
            failure = failure.hint("its output so far is above; its variables are lost");
        }
        failure
    }

    /// An execution was stopped. `state` is that of the kernel, `None` if the code had not started. `cell` is the cell of
    /// a notebook in which it stopped.
    pub fn from_stop(reason: StopReason, state: Option<KernelState>, cell: Option<usize>) -> Self {
        let (kind, event) = match reason {
            StopReason::TimedOut { limit, after } => (
                Kind::TimedOut,
                match limit {
                    TimeLimit::Total => {
                        format!("The run timed out after {}", format_seconds(after))
                    }
                    _ => format!("Timed out after {}", format_seconds(after)),
                },
            ),
            StopReason::Cancelled => (Kind::Cancelled, "Cancelled".to_owned()),
            StopReason::ShuttingDown => (
                Kind::Cancelled,
                "Cancelled: the session was stopped".to_owned(),
            ),
            StopReason::Reset => (
                Kind::Cancelled,
                "Cancelled: the kernel was reset".to_owned(),
            ),
            StopReason::MemoryLimit { used, limit } => (
                Kind::Cancelled,
                format!(
                    "Stopped: the kernel used {}, and its limit is {}",
                    ByteSize(used),
                    ByteSize(limit)
                ),
            ),
        };
        // With a reset or a shutdown the kernel is gone, whether or not the code reacted.
        let is_kernel_gone = matches!(reason, StopReason::ShuttingDown | StopReason::Reset);
        let effect = match state {
            None => {
                let code =
                    cell.map_or_else(|| "the code".to_owned(), |cell| format!("cell {cell}"));
                let message = format!("{event} before {code} started");
                return Self::new(kind, message).with_stop_hint(reason);
            }
            Some(_) if is_kernel_gone => "its variables are lost",
            Some(KernelState::Preserved) => "the code was interrupted",
            Some(KernelState::Lost) => "the code did not react to the interrupt and was killed",
        };
        let location = cell.map_or_else(String::new, |cell| format!(" in cell {cell}"));
        Self::new(kind, format!("{event}{location}; {effect}")).with_stop_hint(reason)
    }

    fn with_stop_hint(self, reason: StopReason) -> Self {
        match reason {
            StopReason::TimedOut { limit, .. } => self.hint(match limit {
                TimeLimit::Cell => hint![
                    flag_value("timeout", "SECONDS"),
                    " sets the limit of a cell, 0 means no limit",
                ],
                TimeLimit::Total => hint![
                    flag_value("total-timeout", "SECONDS"),
                    " sets the limit of the whole run, 0 means no limit",
                ],
                TimeLimit::Queue => hint![
                    flag_value("timeout", "SECONDS"),
                    " also limits the wait for a busy session, 0 means no limit",
                ],
            }),
            _ => self,
        }
    }
}

fn interpreter_hint() -> Hint {
    hint![
        command("doctor"),
        " checks the interpreter; ",
        flag("python"),
        " names another",
    ]
}

fn tcp_hint(purpose: &str) -> String {
    format!(
        "{purpose}, set `kernel.transport = \"tcp\"` in your settings; other users of this machine can then read the kernel's messages"
    )
}

fn start_limit_hint() -> Hint {
    hint![
        flag_value("start-timeout", "SECONDS"),
        " sets the limit of the start of a kernel and of its modules, 0 means no limit",
    ]
}

fn format_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!("{seconds} s")
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
    fn searched_directories_are_listed_if_no_kernel_is_installed() {
        let error = KernelError::NoKernelspec {
            name: "ir".to_owned(),
            available: Vec::new(),
            searched: vec!["/usr/share/jupyter/kernels".into()],
        };
        let failure = Failure::from(error);
        assert_eq!(failure.causes, ["searched /usr/share/jupyter/kernels"]);
    }
}
