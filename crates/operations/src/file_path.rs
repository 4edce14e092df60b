//! [`FilePath`]: the path that opens a file, and the path that messages show.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::NotebookError;

/// A file. The two paths differ if the caller holds its directory open: then the file is opened through the
/// descriptor, so that a link which appears later leads nowhere else, and messages show the path that users know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    open_path: PathBuf,
    display_path: PathBuf,
}

impl FilePath {
    /// A file with a separate path for messages.
    pub fn new(open_path: impl Into<PathBuf>, display_path: impl Into<PathBuf>) -> Self {
        Self {
            open_path: open_path.into(),
            display_path: display_path.into(),
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
    pub(crate) fn to_text(&self) -> String {
        self.display_path.display().to_string()
    }

    /// Converts an error about this file.
    pub(crate) fn failure(&self, error: NotebookError) -> Failure {
        self.with_display_path(error).into()
    }

    /// Converts an error of a change of this file.
    pub(crate) fn change_failure(&self, error: NotebookError) -> Failure {
        Failure::from_change_error(self.with_display_path(error))
    }

    /// Names the file, or its directory, by the path to show.
    fn with_display_path(&self, error: NotebookError) -> NotebookError {
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
}
