//! [`Trust`]: files of projects that the user trusts, by their content. Cellwright runs a project's modules and obeys its
//! settings without a command that names them. So the user must trust them first, and again after each change. The record
//! also has the interpreters of projects that the user trusts or has run code with, by path.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cellwright_stdext::hex;
use cellwright_stdext::private::{OwnerRule, effective_user};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::env;
use crate::settings::paths::{self, ProjectSearch};

/// Name of the directory in a project that holds its settings and modules.
pub const PROJECT_DIR_NAME: &str = paths::PROJECT_DIR_NAME;

/// Whether a file is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// Trusted with its current content.
    Trusted,
    /// Trusted with other content.
    Changed,
    /// Never trusted.
    Unknown,
}

/// The trusted files, and the known interpreters of projects.
#[derive(Debug, Default)]
pub struct Trust {
    files: BTreeMap<PathBuf, TrustedFile>,
    interpreters: BTreeMap<PathBuf, InterpreterTrust>,
}

/// Why the interpreter of a project is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterpreterTrust {
    /// The user ran code with it.
    Used,
    /// The user trusts it.
    Trusted,
}

/// The content of a file at the time it was trusted.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TrustedFile {
    /// Hash of the content, in hexadecimal digits.
    pub sha256: String,
    /// Size of the content.
    pub bytes: u64,
}

#[derive(Default, Deserialize, Serialize)]
struct TrustRecord {
    version: u32,
    files: BTreeMap<PathBuf, TrustedFile>,
    /// Directories of environments, by canonical path.
    #[serde(default)]
    interpreters: BTreeMap<PathBuf, InterpreterTrust>,
}

impl Trust {
    /// Reads the record in the state directory. A record that other users can write is an error.
    pub fn read(state: Option<&Path>) -> io::Result<Self> {
        let Some(dir) = state else {
            return Ok(Self::default());
        };
        let path = dir.join("trust.json");
        let record = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => TrustRecord::default(),
            Err(error) => return Err(error),
            Ok(metadata) if ![effective_user(), 0].contains(&metadata.uid()) => {
                return Err(io::Error::other("it belongs to another user"));
            }
            Ok(metadata) if metadata.mode() & 0o022 != 0 => {
                return Err(io::Error::other("other users can write to it"));
            }
            Ok(_) => serde_json::from_slice(&fs::read(&path)?)?,
        };
        Ok(Self {
            files: record.files,
            interpreters: record.interpreters,
        })
    }

    /// Whether a file with this content is trusted.
    pub fn is_trusted(&self, path: &Path, content: &[u8]) -> bool {
        self.state(path, content) == TrustState::Trusted
    }

    /// Returns the state of a file with this content.
    pub fn state(&self, path: &Path, content: &[u8]) -> TrustState {
        match self.files.get(&canonical_path(path)) {
            None => TrustState::Unknown,
            Some(entry) if entry.sha256 == hash(content) => TrustState::Trusted,
            Some(_) => TrustState::Changed,
        }
    }

    /// All trusted files.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, &TrustedFile)> {
        self.files
            .iter()
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// Why the interpreter in this environment is known; `None` if it is not. The path is canonical.
    pub fn interpreter(&self, environment: &Path) -> Option<InterpreterTrust> {
        self.interpreters.get(environment).copied()
    }

    /// The environments of all known interpreters.
    pub fn interpreters(&self) -> impl Iterator<Item = (&Path, InterpreterTrust)> {
        self.interpreters
            .iter()
            .map(|(path, trust)| (path.as_path(), *trust))
    }

    /// Records the interpreter in this environment, unless it has at least this trust. The path is canonical.
    pub fn add_interpreter(
        state: &Path,
        environment: PathBuf,
        trust: InterpreterTrust,
    ) -> io::Result<()> {
        Self::update(state, |recorded| {
            let entry = recorded.interpreters.entry(environment).or_insert(trust);
            *entry = trust.max(*entry);
        })
    }

    /// Records files with this content as trusted.
    pub fn add(state: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
        Self::update(state, |recorded| {
            for (path, content) in files {
                let entry = TrustedFile {
                    sha256: hash(content),
                    bytes: content.len() as u64,
                };
                recorded.files.insert(canonical_path(path), entry);
            }
        })
    }

    /// Removes the files and interpreters for which `selects` returns true. Returns their paths.
    pub fn remove(state: &Path, selects: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        let mut keeps = |path: &Path| {
            let is_removed = selects(path);
            if is_removed {
                removed.push(path.to_owned());
            }
            !is_removed
        };
        Self::update(state, |recorded| {
            recorded.files.retain(|path, _| keeps(path));
            recorded.interpreters.retain(|path, _| keeps(path));
        })?;
        Ok(removed)
    }

    /// Changes the record under a lock and replaces its file as a whole: no reader sees half of it, and no concurrent
    /// change is lost.
    fn update(state: &Path, change: impl FnOnce(&mut Self)) -> io::Result<()> {
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
        change(&mut trust);
        let record = TrustRecord {
            version: 1,
            files: trust.files,
            interpreters: trust.interpreters,
        };
        let new = state.join("trust.json.new");
        // A killed process may have left this file, with another mode.
        fs::remove_file(&new).ok();
        let mut file = open(&new)?;
        serde_json::to_writer_pretty(&mut file, &record)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&new, state.join("trust.json"))
    }
}

/// The canonical path of a file; the path itself if the file does not exist.
pub fn canonical_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the project's directory for settings and modules, by the search for settings files.
pub fn find_project_dir(cwd: &Path, rule: &OwnerRule) -> Option<PathBuf> {
    let home = env::value(env::HOME).map(PathBuf::from);
    ProjectSearch::new(cwd, home.as_deref(), rule).settings_dir()
}

fn hash(content: &[u8]) -> String {
    hex::encode(&Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn trust_applies_to_content_and_not_to_names() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (state, file) = (temp_dir.path().join("state"), temp_dir.path().join("a.py"));
        fs::write(&file, "one").unwrap();
        assert_eq!(
            Trust::read(Some(&state)).unwrap().state(&file, b"one"),
            TrustState::Unknown
        );
        Trust::add(&state, &[(file.clone(), b"one".to_vec())]).unwrap();
        let trust = Trust::read(Some(&state)).unwrap();
        assert!(trust.is_trusted(&file, b"one"));
        assert!(!trust.is_trusted(&temp_dir.path().join("b.py"), b"one"));
        assert_eq!(trust.state(&file, b"two"), TrustState::Changed);
        assert_eq!(trust.entries().next().unwrap().1.bytes, 3);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(&state.join("trust.json")), 0o600);
        assert_eq!(mode(&state), 0o700);
        let removed = Trust::remove(&state, &|path| path.ends_with("a.py")).unwrap();
        assert_eq!(removed, [canonical_path(&file)]);
        assert!(!Trust::read(Some(&state)).unwrap().is_trusted(&file, b"one"));
    }

    #[test]
    fn interpreters_are_recorded_by_path_and_never_lose_trust() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (state, file) = (temp_dir.path().join("state"), temp_dir.path().join("a.py"));
        let environment = temp_dir.path().join("p/.venv");
        let known = || {
            let trust = Trust::read(Some(&state)).unwrap();
            trust.interpreter(&environment)
        };
        assert_eq!(known(), None);
        for (trust, expected) in [
            (InterpreterTrust::Used, InterpreterTrust::Used),
            (InterpreterTrust::Trusted, InterpreterTrust::Trusted),
            (InterpreterTrust::Used, InterpreterTrust::Trusted),
        ] {
            Trust::add_interpreter(&state, environment.clone(), trust).unwrap();
            assert_eq!(known(), Some(expected));
        }
        // Files and interpreters do not replace each other.
        Trust::add(&state, &[(file.clone(), b"one".to_vec())]).unwrap();
        assert_eq!(known(), Some(InterpreterTrust::Trusted));
        let removed = Trust::remove(&state, &|path| path.ends_with(".venv")).unwrap();
        assert_eq!((removed, known()), (vec![environment.clone()], None));
        assert_eq!(Trust::read(Some(&state)).unwrap().entries().count(), 1);
    }

    #[test]
    fn a_record_that_others_can_write_is_rejected() {
        let temp_dir = tempfile::tempdir().unwrap();
        let file = temp_dir.path().join("a.py");
        Trust::add(temp_dir.path(), &[(file, b"one".to_vec())]).unwrap();
        let record = temp_dir.path().join("trust.json");
        let read_with_mode = |mode| {
            fs::set_permissions(&record, fs::Permissions::from_mode(mode)).unwrap();
            Trust::read(Some(temp_dir.path()))
        };
        assert!(read_with_mode(0o644).is_ok());
        // Writable by the group, by all others, or by both.
        for mode in [0o620, 0o660, 0o602, 0o666] {
            assert!(read_with_mode(mode).is_err(), "mode {mode:o}");
        }
        fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&record, "nonsense").unwrap();
        assert!(Trust::read(Some(temp_dir.path())).is_err());
    }

    #[test]
    fn concurrent_additions_are_all_recorded() {
        let temp_dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (state, file) = (
                    temp_dir.path(),
                    temp_dir.path().join(format!("{number}.py")),
                );
                scope.spawn(move || Trust::add(state, &[(file, b"x".to_vec())]).unwrap());
            }
        });
        assert_eq!(
            Trust::read(Some(temp_dir.path()))
                .unwrap()
                .entries()
                .count(),
            8
        );
    }
}
