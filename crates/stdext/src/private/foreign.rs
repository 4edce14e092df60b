//! [`OwnerRule`]: which files and directories of a project, or of the user's settings, can have been put there by another user.
//!
//! Code, settings and markers that Cellwright finds by searching count only if this user or root owns them: in a directory such as
//! `/tmp`, any other user can create them next to the files of this user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::owner::effective_user;

/// The mode bit with which every user can write.
const WRITABLE_BY_ALL: u32 = 0o002;

/// The mode bit of a directory in which only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;

/// A path that another user can decide about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignPath {
    /// Another user owns it.
    #[error("{} belongs to user {owner}", path.display())]
    Owner {
        /// The path.
        path: PathBuf,
        /// The id of the owner.
        owner: u32,
    },
    /// Every user can write to it.
    #[error("every user can write to {}", path.display())]
    Writable {
        /// The path.
        path: PathBuf,
    },
}

impl ForeignPath {
    /// The file or directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Owner { path, .. } | Self::Writable { path } => path,
        }
    }
}

/// Decides whether a file or directory counts as one of this user.
#[derive(Clone, Debug, Default)]
pub struct OwnerRule {
    exceptions: Vec<PathBuf>,
}

impl OwnerRule {
    /// A rule that accepts everything beneath these directories, with any owner. The paths are canonical.
    pub fn with_exceptions(exceptions: Vec<PathBuf>) -> Self {
        Self { exceptions }
    }

    /// Checks that the path, and what it leads to if it is a link, belongs to this user or to root, and that not every user can
    /// write to it. A sticky directory is accepted: its entries are checked themselves. So is a path that does not exist.
    pub fn check(&self, path: &Path) -> Result<(), ForeignPath> {
        let Ok(entry) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        let target = fs::metadata(path).ok();
        let owners = [Some(entry.uid()), target.as_ref().map(MetadataExt::uid)];
        let foreign = owners
            .into_iter()
            .flatten()
            .find(|owner| *owner != effective_user() && *owner != 0);
        let is_writable = target.is_some_and(|target| {
            let is_sticky = target.is_dir() && target.mode() & STICKY != 0;
            target.mode() & WRITABLE_BY_ALL != 0 && !is_sticky
        });
        let path = || path.to_owned();
        match foreign {
            _ if self.is_exception(&path()) => Ok(()),
            Some(owner) => Err(ForeignPath::Owner {
                path: path(),
                owner,
            }),
            None if is_writable => Err(ForeignPath::Writable { path: path() }),
            None => Ok(()),
        }
    }

    /// Checks the paths in order.
    pub fn check_all<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<(), ForeignPath> {
        paths
            .into_iter()
            .try_for_each(|path| self.check(path.as_ref()))
    }

    fn is_exception(&self, path: &Path) -> bool {
        // The place of the path decides, not where a link in it leads.
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let is_beneath = |dir: &PathBuf| {
            path.starts_with(dir)
                || parent
                    .as_ref()
                    .is_some_and(|parent| parent.starts_with(dir))
        };
        self.exceptions.iter().any(is_beneath)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn paths_that_every_user_can_write_are_foreign_unless_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (rule, sub, file) = (OwnerRule::default(), root.join("sub"), root.join("file"));
        fs::create_dir(&sub).unwrap();
        fs::write(&file, "").unwrap();
        for (path, mode, is_own) in [
            (&sub, 0o755, true),
            (&sub, 0o775, true),
            (&sub, 0o777, false),
            (&sub, 0o1777, true),
            (&file, 0o664, true),
            (&file, 0o666, false),
            (&file, 0o1666, false),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(rule.check(path).is_ok(), is_own, "{mode:o} {path:?}");
        }
        symlink(&file, root.join("link")).unwrap();
        let foreign = rule.check(&root.join("link")).unwrap_err();
        assert!(
            foreign.to_string().contains("every user can write to"),
            "{foreign}"
        );
        assert!(rule.check(&root.join("missing")).is_ok());
        let accepting = OwnerRule::with_exceptions(vec![root.clone()]);
        assert!(accepting.check(&file).is_ok());
        let other = OwnerRule::with_exceptions(vec![root.join("sub")]);
        assert!(other.check(&file).is_err());
    }
}
