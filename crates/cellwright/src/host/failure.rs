//! Describes host errors to users.

use super::error::HostError;
use super::hello::PROTOCOL;
use crate::failure::{Failure, Kind, capitalize, command, flag_value, hint};
use crate::runtime_dir::RuntimeDirError;

impl Failure {
    /// The host did not stop the code.
    pub(crate) fn cancel_unanswered(pid: u32) -> Self {
        if pid == std::process::id() {
            return Self::new(Kind::Kernel, "The code could not be stopped in time");
        }
        let message =
            format!("Cancelled; the host (pid {pid}) does not answer, so the code may still run");
        Self::new(Kind::Cancelled, message).hint(hint![
            command("host status"),
            " checks it; ",
            command("host stop"),
            " stops it and its sessions",
        ])
    }

    /// The request needs a host, and there is none.
    pub(crate) fn host_not_running() -> Self {
        let failure = Self::new(
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
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let mut failure = Self::new(Kind::Host, capitalize(&error.to_string()));
        failure.add_causes(&error);
        match &error {
            HostError::RuntimeDir(error) => explain_runtime_dir(error, failure),
            HostError::File { .. } => {
                failure.hint("mend it, or name another folder in CELLWRIGHT_HOST_DIR")
            }
            HostError::ForeignListener { .. } => {
                failure.hint("name another folder in CELLWRIGHT_HOST_DIR")
            }
            HostError::Unresponsive { .. } => failure.hint(hint![
                command("host stop"),
                " stops it, by force if necessary; its sessions are lost",
            ]),
            HostError::ProtocolMismatch { .. } => {
                failure
                    .causes
                    .push(format!("this command speaks protocol {PROTOCOL}"));
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
            HostError::NotStarted { words } => {
                failure.causes.push(words.clone());
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
            HostError::NotTheHost { pid } => {
                failure.hint(format!("it was left alone; `ps -p {pid}` shows what it is"))
            }
            HostError::NotKilled { pid } => failure.hint(format!(
                "`ps -p {pid} -o stat,wchan` shows what it waits for"
            )),
            HostError::Refused { .. } => failure,
        }
    }
}

impl From<RuntimeDirError> for Failure {
    fn from(error: RuntimeDirError) -> Self {
        HostError::from(error).into()
    }
}

fn explain_runtime_dir(error: &RuntimeDirError, failure: Failure) -> Failure {
    match error {
        RuntimeDirError::NotADirectory { path, .. } => failure.hint(format!(
            "remove it (`rm {}`), or name another folder in CELLWRIGHT_HOST_DIR",
            path.display()
        )),
        RuntimeDirError::WrongOwner { .. } => {
            failure.hint("name a folder of your own in CELLWRIGHT_HOST_DIR")
        }
        RuntimeDirError::TooPermissive { path, .. } => failure.hint(format!(
            "if no other user put files there: `chmod 700 {}`; or name another folder in \
             CELLWRIGHT_HOST_DIR",
            path.display()
        )),
        RuntimeDirError::SocketPathTooLong { .. } => {
            failure.hint("name a folder with a shorter path in CELLWRIGHT_HOST_DIR")
        }
        RuntimeDirError::Io { .. } => {
            failure.hint("mend it, or name another folder in CELLWRIGHT_HOST_DIR")
        }
    }
}
