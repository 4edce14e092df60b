//! Describes problems of the runtime directory to users.

use std::fs;
use std::os::unix::fs::MetadataExt;

use cellwright_diagnostics::failure::{Failure, Kind, capitalize};
use cellwright_stdext::private::{PrivateDirError, effective_user};

use super::RuntimeDirError;

impl From<RuntimeDirError> for Failure {
    fn from(error: RuntimeDirError) -> Self {
        let mut failure = Self::new(Kind::Host, capitalize(&error.to_string()));
        failure.add_causes(&error);
        match &error {
            RuntimeDirError::Dir(PrivateDirError::NotADirectory { path, .. })
                if fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() != effective_user()) =>
            {
                failure.hint("it belongs to another user: name another directory in CELLWRIGHT_HOST_DIR")
            }
            RuntimeDirError::Dir(PrivateDirError::NotADirectory { path, .. }) => {
                failure.hint(format!(
                    "remove it (`rm {}`), or name another directory in CELLWRIGHT_HOST_DIR",
                    path.display()
                ))
            }
            RuntimeDirError::Dir(
                PrivateDirError::WrongOwner { .. } | PrivateDirError::ParentOwner { .. },
            ) => failure.hint("name a directory that belongs to you in CELLWRIGHT_HOST_DIR"),
            RuntimeDirError::Dir(PrivateDirError::TooPermissive { path, .. }) => {
                failure.hint(format!(
                    "if no other user put files there: `chmod 700 {}`; or name another directory in \
                     CELLWRIGHT_HOST_DIR",
                    path.display()
                ))
            }
            RuntimeDirError::Dir(PrivateDirError::ParentWritable { path, .. }) => {
                failure.hint(format!(
                    "remove the access of other users (`chmod go-w {}`), or name another directory in \
                     CELLWRIGHT_HOST_DIR",
                    path.display()
                ))
            }
            RuntimeDirError::SocketPathTooLong { .. } => {
                failure.hint("name a directory with a shorter path in CELLWRIGHT_HOST_DIR")
            }
            RuntimeDirError::Io { .. } | RuntimeDirError::Dir(_) => {
                failure.hint("fix it, or name another directory in CELLWRIGHT_HOST_DIR")
            }
        }
    }
}
