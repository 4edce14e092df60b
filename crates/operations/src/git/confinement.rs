//! [`Confinement`]: keeps git in the directories of a caller that sees only these.
//!
//! Files in a working tree can lead git elsewhere: `.git` as a file or a link, a common directory, links among the objects, and
//! alternates. Such a repository is accepted if everything that it leads to is in the allowed directories. A linked working tree is
//! also accepted if its main repository, which is elsewhere, names this working tree. A repository above the allowed
//! directories is accepted: nothing in them decides about it.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};

/// Maximum size in bytes of the files that name other directories.
const FILE_SIZE_LIMIT: u64 = 64 << 10;

/// Maximum number of repositories that name each other as alternates.
const ALTERNATES_DEPTH_MAX: usize = 5;

/// Maximum number of entries of the directory of objects.
const ENTRIES_MAX: usize = 100_000;

/// The directories that git may read.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// Canonical paths.
    dirs: Vec<PathBuf>,
}

impl Confinement {
    /// Confines git to these directories; the paths are canonical.
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        Self { dirs }
    }

    /// Checks every repository that git could find from `dir` upwards.
    pub(super) fn check(&self, dir: &Path) -> Result<(), Failure> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        for dir in dir.ancestors().take_while(|dir| self.contains(dir)) {
            let marker = dir.join(".git");
            if let Ok(metadata) = marker.symlink_metadata() {
                let checked = if metadata.is_file() {
                    self.check_git_file(&marker)
                } else {
                    self.check_git_dir(&marker)
                };
                checked.map_err(|leads_to| refused(&marker, &leads_to))?;
            }
        }
        Ok(())
    }

    fn contains(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir))
    }

    /// Checks a file that names the directory of a repository. Returns the path outside that it leads to.
    fn check_git_file(&self, marker: &Path) -> Result<(), PathBuf> {
        let text = read_text(marker).ok_or_else(|| marker.to_owned())?;
        let Some(named) = text.trim_end().strip_prefix("gitdir: ") else {
            // Git rejects such a file.
            return Ok(());
        };
        let git_dir = marker.parent().unwrap_or(marker).join(named);
        if self.is_linked_from(&git_dir, marker) {
            return Ok(());
        }
        self.check_git_dir(&git_dir)
    }

    /// Whether the main repository of a linked working tree names it.
    fn is_linked_from(&self, git_dir: &Path, marker: &Path) -> bool {
        let Ok(git_dir) = git_dir.canonicalize() else {
            return false;
        };
        let is_worktree = git_dir
            .parent()
            .is_some_and(|dir| dir.ends_with("worktrees"));
        let back = read_text(&git_dir.join("gitdir"));
        let names_marker = back.is_some_and(|text| {
            let named = git_dir.join(text.trim_end());
            named.canonicalize().ok() == marker.canonicalize().ok()
        });
        // A repository in the allowed directories is checked as a whole.
        is_worktree && names_marker && !self.contains(&git_dir)
    }

    fn check_git_dir(&self, git_dir: &Path) -> Result<(), PathBuf> {
        let Ok(git_dir) = git_dir.canonicalize() else {
            return Ok(());
        };
        if !self.contains(&git_dir) {
            return Err(git_dir);
        }
        let common_file = git_dir.join("commondir");
        let common = if common_file.symlink_metadata().is_ok() {
            let text = read_text(&common_file).ok_or(common_file)?;
            git_dir.join(text.trim_end())
        } else {
            git_dir.clone()
        };
        self.check_objects(&common.join("objects"), ALTERNATES_DEPTH_MAX)
    }

    fn check_objects(&self, objects: &Path, depth: usize) -> Result<(), PathBuf> {
        let Ok(objects) = objects.canonicalize() else {
            return Ok(());
        };
        if !self.contains(&objects) || depth == 0 {
            return Err(objects);
        }
        for dir in [objects.clone(), objects.join("pack"), objects.join("info")] {
            let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
            for (number, entry) in entries.enumerate() {
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let target = || entry.path().canonicalize().unwrap_or_default();
                if (is_link && !self.contains(&target())) || number >= ENTRIES_MAX {
                    return Err(entry.path());
                }
            }
        }
        let file = objects.join("info/alternates");
        if file.symlink_metadata().is_err() {
            return Ok(());
        }
        let text = read_text(&file).ok_or(file)?;
        let names = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for name in names {
            if name.starts_with('"') {
                // A quoted name contains escapes.
                return Err(PathBuf::from(name));
            }
            self.check_objects(&objects.join(name), depth - 1)?;
        }
        Ok(())
    }
}

/// The content of a regular file; `None` if it is another one, too large or not readable.
fn read_text(path: &Path) -> Option<String> {
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let file = fs::File::open(path).ok().filter(|_| is_file)?;
    let mut text = String::new();
    let read = file
        .take(FILE_SIZE_LIMIT + 1)
        .read_to_string(&mut text)
        .ok()?;
    (read as u64 <= FILE_SIZE_LIMIT).then_some(text)
}

fn refused(marker: &Path, leads_to: &Path) -> Failure {
    let message = format!("The repository {} leads out of the roots", marker.display());
    let mut failure = Failure::new(Kind::Refused, message);
    failure
        .causes
        .push(format!("it uses {}", leads_to.display()));
    failure.hint("name that directory as a root, too, or compare in a shell")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Creates files in the directory of a test.
    type Create<'a> = &'a dyn Fn(&Path);

    /// A directory with a repository `outside`, and the allowed directory `root`.
    fn fixture() -> (tempfile::TempDir, PathBuf, Confinement) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("outside/.git/objects/pack")).unwrap();
        fs::create_dir_all(path.join("root/sub")).unwrap();
        let confinement = Confinement::new(vec![path.join("root")]);
        (dir, path, confinement)
    }

    #[test]
    fn a_repository_that_leads_out_is_refused() {
        let outside = |path: &Path| path.join("outside/.git");
        let cases: [(&str, Create<'_>); 7] = [
            ("a file", &|path| {
                let text = format!("gitdir: {}\n", outside(path).display());
                fs::write(path.join("root/.git"), text).unwrap();
            }),
            ("a link", &|path| {
                symlink(outside(path), path.join("root/.git")).unwrap();
            }),
            ("a common directory", &|path| {
                fs::create_dir_all(path.join("root/.git")).unwrap();
                let text = format!("{}\n", outside(path).display());
                fs::write(path.join("root/.git/commondir"), text).unwrap();
            }),
            ("linked objects", &|path| {
                fs::create_dir_all(path.join("root/.git")).unwrap();
                let objects = outside(path).join("objects");
                symlink(objects, path.join("root/.git/objects")).unwrap();
            }),
            ("linked packs", &|path| {
                fs::create_dir_all(path.join("root/.git/objects")).unwrap();
                let objects = outside(path).join("objects/pack");
                symlink(objects, path.join("root/.git/objects/pack")).unwrap();
            }),
            ("alternates", &|path| {
                fs::create_dir_all(path.join("root/.git/objects/info")).unwrap();
                let text = format!("# x\n{}\n", outside(path).join("objects").display());
                fs::write(path.join("root/.git/objects/info/alternates"), text).unwrap();
            }),
            ("a file above an empty repository", &|path| {
                fs::create_dir_all(path.join("root/sub/.git")).unwrap();
                let text = format!("gitdir: {}\n", outside(path).display());
                fs::write(path.join("root/.git"), text).unwrap();
            }),
        ];
        for (name, create) in cases {
            let (_dir, path, confinement) = fixture();
            assert!(confinement.check(&path.join("root/sub")).is_ok(), "{name}");
            create(&path);
            let failure = confinement.check(&path.join("root/sub")).unwrap_err();
            assert_eq!(failure.kind, Kind::Refused, "{name}");
            let both = Confinement::new(vec![path.join("root"), path.join("outside")]);
            both.check(&path.join("root/sub")).unwrap();
        }
    }

    #[test]
    fn a_working_tree_of_a_repository_outside_is_accepted_if_that_names_it() {
        let (_dir, path, confinement) = fixture();
        let link = path.join("outside/.git/worktrees/root");
        fs::create_dir_all(&link).unwrap();
        fs::write(link.join("commondir"), "../..\n").unwrap();
        let text = format!("gitdir: {}\n", link.display());
        fs::write(path.join("root/.git"), text).unwrap();
        confinement.check(&path.join("root")).unwrap_err();
        let back = format!("{}\n", path.join("root/.git").display());
        fs::write(link.join("gitdir"), back).unwrap();
        confinement.check(&path.join("root")).unwrap();
        fs::write(link.join("gitdir"), "/elsewhere/.git\n").unwrap();
        confinement.check(&path.join("root")).unwrap_err();
    }

    #[test]
    fn a_repository_above_is_accepted() {
        let (_dir, path, _) = fixture();
        fs::create_dir(path.join("outside/sub")).unwrap();
        let confinement = Confinement::new(vec![path.join("outside/sub")]);
        confinement.check(&path.join("outside/sub")).unwrap();
    }
}
