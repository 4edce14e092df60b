//! What somebody has trusted: files of projects, by their content. Whatever a project brings along and
//! that would be run or obeyed without being asked for must be trusted first, and again when it changes.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bridge::hex;
use crate::env;
use crate::settings::place;

/// The folder in a project that is ours.
pub(crate) const PROJECT_FOLDER: &str = place::FOLDER;

/// What is known about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Trusted as it is.
    Trusted,
    /// Trusted once, but it was another text then.
    Changed,
    /// Never trusted.
    Unknown,
}

/// The files that are trusted.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    files: BTreeMap<PathBuf, Entry>,
}

/// A trusted file, as it was then.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

#[derive(Default, Deserialize, Serialize)]
struct Record {
    version: u32,
    files: BTreeMap<PathBuf, Entry>,
}

impl Trust {
    /// Reads what was recorded in the state folder. What others could have written is not believed.
    pub(crate) fn read(state: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = state else {
            return Ok(Self::default());
        };
        let path = folder.join("trust.json");
        let files = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
            Ok(found) if found.mode() & 0o022 != 0 => {
                return Err(io::Error::other("others may write to it"));
            }
            Ok(_) => {
                let record: Record = serde_json::from_slice(&fs::read(&path)?)?;
                record.files
            }
        };
        Ok(Self { files })
    }

    /// Whether a file with this content may be run or obeyed.
    pub(crate) fn is_trusted(&self, path: &Path, content: &[u8]) -> bool {
        self.standing(path, content) == Standing::Trusted
    }

    /// What is known about a file with this content.
    pub(crate) fn standing(&self, path: &Path, content: &[u8]) -> Standing {
        match self.files.get(&real(path)) {
            None => Standing::Unknown,
            Some(entry) if entry.sha256 == hash(content) => Standing::Trusted,
            Some(_) => Standing::Changed,
        }
    }

    /// All that is trusted, as it was.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.files
            .iter()
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// Trusts files with this content, and records it.
    pub(crate) fn add(state: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
        Self::change(state, |recorded| {
            for (path, content) in files {
                let entry = Entry {
                    sha256: hash(content),
                    bytes: content.len() as u64,
                };
                recorded.insert(real(path), entry);
            }
        })
    }

    /// Forgets files; says which were trusted.
    pub(crate) fn remove(state: &Path, files: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        Self::change(state, |recorded| {
            recorded.retain(|path, _| {
                let goes = files(path);
                if goes {
                    removed.push(path.clone());
                }
                !goes
            });
        })?;
        Ok(removed)
    }

    /// Changes the record under a lock, so that nobody ever sees half of it, or loses a part.
    fn change(state: &Path, change: impl FnOnce(&mut BTreeMap<PathBuf, Entry>)) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state)?;
        let open = |path: &Path| {
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(path)
        };
        let lock = open(&state.join("trust.lock"))?;
        lock.lock()?;
        let mut trust = Self::read(Some(state))?;
        change(&mut trust.files);
        let record = Record {
            version: 1,
            files: trust.files,
        };
        let new = state.join("trust.json.new");
        // Left behind by somebody who was ended: its mode may be another.
        fs::remove_file(&new).ok();
        let mut file = open(&new)?;
        serde_json::to_writer_pretty(&mut file, &record)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, state.join("trust.json"))
    }
}

/// A file's name, whatever way led to it.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The project's own folder for what Cellwright reads, found where settings are.
pub(crate) fn project_folder(cwd: &Path) -> Option<PathBuf> {
    let home = env::value(env::HOME).map(PathBuf::from);
    let folders = place::reach(cwd, home.as_deref());
    let mut places = folders
        .into_iter()
        .map(|folder| folder.join(PROJECT_FOLDER));
    places.find(|folder| folder.is_dir())
}

fn hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn content_is_trusted_and_not_names() {
        let folder = tempfile::tempdir().unwrap();
        let (state, file) = (folder.path().join("state"), folder.path().join("a.py"));
        fs::write(&file, "one").unwrap();
        assert_eq!(
            Trust::read(Some(&state)).unwrap().standing(&file, b"one"),
            Standing::Unknown
        );
        Trust::add(&state, &[(file.clone(), b"one".to_vec())]).unwrap();
        let trust = Trust::read(Some(&state)).unwrap();
        assert!(trust.is_trusted(&file, b"one"));
        assert!(!trust.is_trusted(&folder.path().join("b.py"), b"one"));
        assert_eq!(trust.standing(&file, b"two"), Standing::Changed);
        assert_eq!(trust.entries().next().unwrap().1.bytes, 3);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(&state.join("trust.json")), 0o600);
        assert_eq!(mode(&state), 0o700);
        let removed = Trust::remove(&state, &|path| path.ends_with("a.py")).unwrap();
        assert_eq!(removed, [real(&file)]);
        assert!(!Trust::read(Some(&state)).unwrap().is_trusted(&file, b"one"));
    }

    #[test]
    fn a_record_that_others_may_write_to_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.py");
        Trust::add(folder.path(), &[(file, b"one".to_vec())]).unwrap();
        let record = folder.path().join("trust.json");
        fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(Trust::read(Some(folder.path())).is_err());
        fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&record, "nonsense").unwrap();
        assert!(Trust::read(Some(folder.path())).is_err());
    }

    #[test]
    fn several_can_trust_at_once_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (state, file) = (folder.path(), folder.path().join(format!("{number}.py")));
                scope.spawn(move || Trust::add(state, &[(file, b"x".to_vec())]).unwrap());
            }
        });
        assert_eq!(
            Trust::read(Some(folder.path())).unwrap().entries().count(),
            8
        );
    }
}
