//! [`NotebookInput`]: a notebook that a command reads, from a file or from stdin.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_operations::file_path::FilePath;
use cellwright_stdext::private::temporary;
use tempfile::TempDir;

use crate::console::Console;

/// The name of stdin in messages and reports.
pub(crate) const STDIN_NAME: &str = "standard input";

/// A notebook to read. `-` names stdin, which is copied to a private temporary file, so that its size does not matter.
pub(crate) struct NotebookInput {
    file: FilePath,
    /// The directory of the copy; removed when dropped.
    copy: Option<TempDir>,
}

impl NotebookInput {
    /// The notebook that an argument names.
    pub(crate) fn open(path: &Path, console: &Console) -> Result<Self, Failure> {
        let stdin = Self::from_stdin_if(path.as_os_str() == "-", console)?;
        Ok(stdin.unwrap_or_else(|| Self {
            file: path.into(),
            copy: None,
        }))
    }

    /// The notebook on stdin, if one is expected there.
    pub(crate) fn from_stdin_if(
        is_expected: bool,
        console: &Console,
    ) -> Result<Option<Self>, Failure> {
        if !is_expected {
            return Ok(None);
        }
        console.note_stdin("a notebook");
        let dir = temporary::create_dir("cellwright-")?;
        let path = dir.path().join(STDIN_NAME);
        let mut file = File::create_new(&path)?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        // An old file is not read again as if another program could be writing it.
        file.set_modified(SystemTime::now() - Duration::from_hours(1))?;
        Ok(Some(Self {
            file: FilePath::new(path, STDIN_NAME),
            copy: Some(dir),
        }))
    }

    pub(crate) fn file(&self) -> &FilePath {
        &self.file
    }

    /// Whether the notebook came from stdin.
    pub(crate) fn is_stdin(&self) -> bool {
        self.copy.is_some()
    }

    /// Names stdin instead of its copy in a failure.
    pub(crate) fn describe(&self, mut failure: Failure) -> Failure {
        if self.is_stdin() {
            let copy = self.file.open_path().display().to_string();
            failure.message = failure.message.replace(&copy, STDIN_NAME);
        }
        failure
    }
}

/// Rejects `-` for a command that changes the notebook in place.
pub(crate) fn reject_stdin(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() != "-" {
        return Ok(());
    }
    let message = "A notebook from standard input cannot be changed in place";
    Err(Failure::new(Kind::BadArguments, message)
        .hint("give the path of a notebook, or `./-` for a file with this name")
        .hint("nothing was written"))
}
