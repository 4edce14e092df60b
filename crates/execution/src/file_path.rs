//! [`FilePath`]: the path that opens a file, and the path that messages show.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::NotebookError;
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};

/// A file. The two paths differ if its directory is held open: then the file is opened through the descriptor, so that a
/// link which appears later leads nowhere else, and messages show the path that users know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SerializedPath", into = "SerializedPath")]
pub struct FilePath {
    open_path: PathBuf,
    display_path: PathBuf,
    /// The directory, if it is held; it stays open as long as this value exists.
    directory: Option<Directory>,
}

/// A [`FilePath`], as sent to the host.
#[derive(Serialize, Deserialize)]
struct SerializedPath {
    path: PathBuf,
    /// The path to open, if it is another one and the directory is not held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open_path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<Directory>,
}

impl FilePath {
    /// A file with a separate path for messages.
    pub fn new(open_path: impl Into<PathBuf>, display_path: impl Into<PathBuf>) -> Self {
        Self {
            open_path: open_path.into(),
            display_path: display_path.into(),
            directory: None,
        }
    }

    /// The file with this name in a directory.
    pub fn in_directory(directory: Directory, name: &OsStr) -> Self {
        Self {
            open_path: directory.open_path().join(name),
            display_path: directory.path().join(name),
            directory: Some(directory).filter(Directory::is_held),
        }
    }

    /// The path to open.
    pub fn open_path(&self) -> &Path {
        &self.open_path
    }

    /// The path to show and to record.
    pub fn display_path(&self) -> &Path {
        &self.display_path
    }

    /// The path to show, as text.
    pub fn to_text(&self) -> String {
        self.display_path.display().to_string()
    }

    /// The same file, whatever the current directory is. A separate name for messages stays.
    pub fn absolute(&self) -> io::Result<Self> {
        let open_path = std::path::absolute(&self.open_path)?;
        let display_path = if self.display_path == self.open_path {
            open_path.clone()
        } else {
            self.display_path.clone()
        };
        Ok(Self {
            open_path,
            display_path,
            directory: self.directory.clone(),
        })
    }

    /// The directory of the file.
    pub fn directory(&self) -> Directory {
        match &self.directory {
            Some(directory) => directory.clone(),
            None => self.open_path.parent().unwrap_or(Path::new("/")).into(),
        }
    }

    /// Whether the directory is held: the path to show has no links then.
    pub fn is_held(&self) -> bool {
        self.directory.is_some()
    }

    /// Opens the directory of a file that another process has sent.
    pub fn open_directory(&mut self) -> io::Result<()> {
        if let Some(directory) = &mut self.directory {
            directory.open()?;
            let name = self.display_path.file_name().unwrap_or_default();
            self.open_path = directory.open_path().join(name);
        }
        Ok(())
    }

    /// The path of the file now, if its directory is held and was moved.
    pub fn moved_to(&self) -> Option<PathBuf> {
        let now = self.directory.as_ref()?.current_path()?;
        let path = now.join(self.display_path.file_name()?);
        (path != self.display_path).then_some(path)
    }

    /// Converts an error about this file.
    pub fn failure(&self, error: NotebookError) -> Failure {
        let error = self.with_display_path(error);
        Failure::from_notebook_error(error, &|dir| self.open_dir(dir))
    }

    /// Converts an error of a change of this file.
    pub fn change_failure(&self, error: NotebookError) -> Failure {
        self.failure(error).after_edit()
    }

    /// The path that opens the directory that messages name `dir`. Next to a file in a held directory, only that directory can be
    /// opened.
    pub(crate) fn open_dir(&self, dir: &Path) -> Option<PathBuf> {
        match &self.directory {
            Some(held) => (dir == held.path()).then(|| held.open_path()),
            None => Some(dir.to_owned()),
        }
    }

    /// Names the file, or its directory, by the path to show.
    pub fn with_display_path(&self, error: NotebookError) -> NotebookError {
        error.map_path(|path| {
            let (Some(open_dir), Some(dir)) = (self.open_path.parent(), self.display_path.parent())
            else {
                return path;
            };
            match path.strip_prefix(open_dir) {
                Ok(rest) if rest.as_os_str().is_empty() => dir.to_owned(),
                Ok(rest) => dir.join(rest),
                Err(_) => path,
            }
        })
    }
}

impl From<PathBuf> for FilePath {
    fn from(path: PathBuf) -> Self {
        Self::new(path.clone(), path)
    }
}

impl From<&Path> for FilePath {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&str> for FilePath {
    fn from(path: &str) -> Self {
        PathBuf::from(path).into()
    }
}

impl From<SerializedPath> for FilePath {
    fn from(serialized: SerializedPath) -> Self {
        let SerializedPath {
            path,
            open_path,
            directory,
        } = serialized;
        match directory {
            Some(directory) => Self::in_directory(directory, path.file_name().unwrap_or_default()),
            None => Self::new(open_path.unwrap_or_else(|| path.clone()), path),
        }
    }
}

impl From<FilePath> for SerializedPath {
    fn from(path: FilePath) -> Self {
        let is_plain = path.directory.is_none() && path.open_path != path.display_path;
        Self {
            open_path: is_plain.then_some(path.open_path),
            path: path.display_path,
            directory: path.directory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display_path(path: &FilePath, failed: &str) -> String {
        let error = NotebookError::NotFound {
            path: failed.into(),
        };
        path.with_display_path(error).to_string()
    }

    #[test]
    fn errors_name_the_file_and_its_directory_by_the_path_to_show() {
        let path = FilePath::new("/proc/self/fd/7/a.ipynb", "/data/project/a.ipynb");
        let shown = |failed| display_path(&path, failed);
        let expected = |path: &str| format!("File not found: {path}");
        assert_eq!(
            shown("/proc/self/fd/7/a.ipynb"),
            expected("/data/project/a.ipynb")
        );
        assert_eq!(shown("/proc/self/fd/7"), expected("/data/project"));
        assert_eq!(shown("/proc/self/fd/70/x"), expected("/proc/self/fd/70/x"));
        let plain = FilePath::from(Path::new("a.ipynb"));
        assert_eq!(display_path(&plain, "a.ipynb"), expected("a.ipynb"));
    }

    #[test]
    fn a_file_in_a_held_directory_is_opened_there_by_the_process_that_receives_it() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("one")).unwrap();
        let descriptor = std::fs::File::open(base.join("one")).unwrap().into();
        let directory = Directory::hold(descriptor, base.join("one")).unwrap();
        let path = FilePath::in_directory(directory, OsStr::new("a.ipynb"));
        let sent = serde_json::to_string(&path).unwrap();
        assert!(!sent.contains("/proc/"), "{sent}");
        let mut received: FilePath = serde_json::from_str(&sent).unwrap();
        assert_eq!(received.display_path(), base.join("one/a.ipynb"));
        std::fs::write(received.open_path(), "x").unwrap_err();
        received.open_directory().unwrap();
        std::fs::rename(base.join("one"), base.join("two")).unwrap();
        std::fs::write(received.open_path(), "x").unwrap();
        assert!(base.join("two/a.ipynb").exists());
        assert_eq!(received.moved_to(), Some(base.join("two/a.ipynb")));
        let plain = FilePath::new("/tmp/1.ipynb", "-");
        let sent = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<FilePath>(&sent).unwrap(), plain);
        assert_eq!(plain.moved_to(), None);
    }
}
