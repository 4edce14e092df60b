//! Describes host errors to users.

use cellwright_diagnostics::failure::{Failure, Kind, capitalize, command, flag_value, hint};

use cellwright_kernel::process::daemon;

use super::error::HostError;
use super::hello::PROTOCOL;

/// The failure of a cancellation that the host did not confirm.
pub fn cancel_timeout_failure(pid: u32) -> Failure {
    if pid == std::process::id() {
        return Failure::new(Kind::Kernel, "The code could not be stopped in time");
    }
    let message =
        format!("Cancelled; the host (pid {pid}) does not answer, so the code may still run");
    let failure = Failure::new(Kind::Cancelled, message).hint(hint![
        command("host status"),
        " checks it; ",
        command("host stop"),
        " stops it and its sessions",
    ]);
    hint_at_suspension(failure, pid)
}

/// Adds how to continue a host that a signal has suspended.
fn hint_at_suspension(failure: Failure, pid: u32) -> Failure {
    if daemon::is_suspended(pid) {
        return failure.hint(format!(
            "a signal has suspended it; `kill -CONT {pid}` continues it"
        ));
    }
    failure
}

/// The failure of a request that needs a host when there is none.
pub fn host_not_running() -> Failure {
    let failure = Failure::new(
        Kind::Host,
        "No host runs, so there are no sessions and no runs",
    );
    failure.hint(hint![
        command("eval"),
        " with ",
        flag_value("session", "NAME"),
        " starts one",
    ])
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let error = match error {
            HostError::RuntimeDir(error) => return error.into(),
            error => error,
        };
        let mut failure = Self::new(Kind::Host, capitalize(&error.to_string()));
        failure.add_causes(&error);
        match &error {
            HostError::File { .. } => {
                failure.hint("fix it, or name another directory in CELLWRIGHT_HOST_DIR")
            }
            HostError::ForeignListener { .. } => {
                failure.hint("name another directory in CELLWRIGHT_HOST_DIR")
            }
            HostError::Unresponsive { pid } => {
                let failure = failure.hint(hint![
                    command("host stop"),
                    " stops it, by force if necessary; its sessions are lost",
                ]);
                hint_at_suspension(failure, *pid)
            }
            HostError::ProtocolMismatch { .. } => {
                failure
                    .causes
                    .push(format!("this command uses protocol {PROTOCOL}"));
                failure.hint(hint![
                    command("host stop"),
                    " stops it and its sessions; the next command starts a new one",
                ])
            }
            HostError::TooLarge => failure.hint(
                "put the code into a file and run it from there (`%run FILE`); nothing was run",
            ),
            HostError::InvalidReply(_) | HostError::UnexpectedReply => {
                failure.hint(hint![command("host stop"), " stops it"])
            }
            HostError::Disconnected => failure.hint(hint![command("host log"), " may show why"]),
            HostError::NotStarted { reason } => {
                failure.causes.push(reason.clone());
                failure.hint(hint![
                    command("host log"),
                    " may show more; ",
                    command("doctor"),
                    " checks its directory",
                ])
            }
            HostError::NotReady { .. } => failure.hint(hint![
                "try again; ",
                command("host log"),
                " may show what it waits for",
            ]),
            HostError::NotTheHost { pid } => failure.hint(format!(
                "it was not stopped; `ps -p {pid}` shows what it is"
            )),
            HostError::NotKilled { pid } => failure.hint(format!(
                "`ps -p {pid} -o stat,wchan` shows what it waits for"
            )),
            HostError::Refused { .. } | HostError::RuntimeDir(_) => failure,
        }
    }
}
