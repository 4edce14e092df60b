//! Describes problems of the runtime directory to users.

use cellwright_diagnostics::failure::{Failure, Kind, capitalize};

use super::RuntimeDirError;

impl From<RuntimeDirError> for Failure {
    fn from(error: RuntimeDirError) -> Self {
        let mut failure = Self::new(Kind::Host, capitalize(&error.to_string()));
        failure.add_causes(&error);
        match &error {
            RuntimeDirError::NotADirectory { path, .. } => failure.hint(format!(
                "remove it (`rm {}`), or name another directory in CELLWRIGHT_HOST_DIR",
                path.display()
            )),
            RuntimeDirError::WrongOwner { .. } => {
                failure.hint("name a directory that belongs to you in CELLWRIGHT_HOST_DIR")
            }
            RuntimeDirError::TooPermissive { path, .. } => failure.hint(format!(
                "if no other user put files there: `chmod 700 {}`; or name another directory in \
                 CELLWRIGHT_HOST_DIR",
                path.display()
            )),
            RuntimeDirError::SocketPathTooLong { .. } => {
                failure.hint("name a directory with a shorter path in CELLWRIGHT_HOST_DIR")
            }
            RuntimeDirError::Io { .. } => {
                failure.hint("fix it, or name another directory in CELLWRIGHT_HOST_DIR")
            }
        }
    }
}
