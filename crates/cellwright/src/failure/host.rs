//! Words for what goes wrong with the host.

use std::error::Error as _;

use super::kernel::capitalised;
use super::{Failure, Kind};
use crate::host::error::HostError;
use crate::host::hello::PROTOCOL;

impl Failure {
    /// A host that was asked to stop code, and neither did nor answered.
    pub(crate) fn deaf_host(pid: u32) -> Self {
        let message =
            format!("Cancelled; the host (pid {pid}) does not answer, so the code may go on");
        Self::new(Kind::Cancelled, message)
            .hint("`cellwright host status` looks after it; `cellwright host stop` ends it with its sessions")
    }

    /// Something is wanted of a host, and there is none.
    pub(crate) fn no_host() -> Self {
        let failure = Self::new(
            Kind::Host,
            "No host runs, so there are no sessions and no runs",
        );
        failure.hint("`cellwright eval --session NAME CODE` starts one")
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let mut failure = Self::new(Kind::Host, capitalised(&error.to_string()));
        let mut cause = error.source();
        while let Some(inner) = cause {
            failure.causes.push(inner.to_string());
            cause = inner.source();
        }
        match &error {
            HostError::NotAFolder { path, .. } => failure.hint(format!(
                "remove it (`rm {}`), or name another folder in CELLWRIGHT_HOST_DIR",
                path.display()
            )),
            HostError::NotOurs { .. } => {
                failure.hint("name a folder of your own in CELLWRIGHT_HOST_DIR")
            }
            HostError::TooOpen { path, .. } => failure.hint(format!(
                "if nobody else put anything there: `chmod 700 {}`; or name another folder in \
                 CELLWRIGHT_HOST_DIR",
                path.display()
            )),
            HostError::TooLong { .. } => {
                failure.hint("name a folder with a shorter path in CELLWRIGHT_HOST_DIR")
            }
            HostError::File { .. } => {
                failure.hint("mend it, or name another folder in CELLWRIGHT_HOST_DIR")
            }
            HostError::Stranger { .. } => {
                failure.hint("name another folder in CELLWRIGHT_HOST_DIR")
            }
            HostError::Hung { .. } => failure.hint(
                "`cellwright host stop` ends it, by force if it must; its sessions are lost then",
            ),
            HostError::OtherProtocol { .. } => {
                failure
                    .causes
                    .push(format!("this command speaks protocol {PROTOCOL}"));
                failure.hint("`cellwright host stop` ends it with its sessions; the next command starts a new one")
            }
            HostError::TooLarge => failure.hint(
                "put the code into a file and run it from there (`%run FILE`); nothing was run",
            ),
            HostError::Garbled(_) => failure.hint("`cellwright host stop` ends it"),
            HostError::Gone => failure.hint("`cellwright host log` may say why"),
            HostError::NotStarted { words } => {
                failure.causes.push(words.clone());
                failure.hint(
                    "`cellwright host log` may say more; `cellwright doctor` checks its folder",
                )
            }
            HostError::NotReady { .. } => {
                failure.hint("try again; `cellwright host log` may say what it waits for")
            }
            HostError::NotProven { pid } => {
                failure.hint(format!("it was left alone; `ps -p {pid}` shows what it is"))
            }
            HostError::Immortal { pid } => failure.hint(format!(
                "`ps -p {pid} -o stat,wchan` shows what it waits for"
            )),
            HostError::Refused { .. } => failure,
        }
    }
}
