//! [`RunSpec`]: which cells of a notebook run, and where their outputs are written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_notebook::NotebookError;
use serde::{Deserialize, Serialize};

use crate::cell_request::OnError;
use crate::edits::Edit;
use crate::file_path::FilePath;
use crate::planned_cells::PlannedCells;
use crate::shared_list;

/// A planned run of a notebook.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunSpec {
    /// Path of the notebook.
    pub path: FilePath,
    /// Path of the notebook with outputs; `None` to write in place.
    pub output: Option<FilePath>,
    /// Revision from which the cells were read.
    pub revision: String,
    /// Edits, applied when the kernel is ready and before the first cell runs.
    pub edits: Vec<Edit>,
    /// Cells to run, in order, as they are after the edits.
    pub cells: PlannedCells,
    /// Time limit of each cell; `None` for no limit.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// What an exception means for the execution, if no tag states that the cell raises one.
    #[serde(default)]
    pub on_error: OnError,
    /// Indexes of the earlier cells that have not run on the kernel.
    #[serde(default)]
    pub missing_cells: Vec<usize>,
    /// Ids of all cells of the notebook after the edits, if the cells run on a session.
    #[serde(default, with = "shared_list")]
    pub cell_ids: Arc<[String]>,
    /// Whether to store start and end times in the metadata of each cell.
    pub timing: bool,
    /// Whether the user named the kernel; the notebook then gets its kernelspec.
    pub kernel_named: bool,
    /// Size in bytes above which the outputs of a cell are stored in an artifact.
    #[serde(rename = "largest")]
    pub outputs_limit: Option<u64>,
    /// Jupyter's runtime directory of the caller: it has the records of servers that may have the notebook open.
    #[serde(default)]
    pub jupyter_runtime_dir: Option<PathBuf>,
    /// Whether to write although a collaboration room has the notebook.
    #[serde(default)]
    pub force: bool,
}

impl RunSpec {
    /// The notebook with outputs.
    pub fn written_file(&self) -> &FilePath {
        self.output.as_ref().unwrap_or(&self.path)
    }

    /// Converts an error about one of its files.
    pub(crate) fn change_failure(&self, error: NotebookError) -> Failure {
        let error = self.with_display_path(error);
        let files = || std::iter::once(&self.path).chain(&self.output);
        let open_dir = |dir: &Path| {
            if !files().any(FilePath::is_held) {
                return Some(dir.to_owned());
            }
            let mut held = files().filter(|file| file.is_held());
            held.find_map(|file| file.open_dir(dir))
        };
        Failure::from_notebook_error(error, &open_dir).after_edit()
    }

    /// Names a file of the run by the path to show.
    pub(crate) fn with_display_path(&self, error: NotebookError) -> NotebookError {
        let error = self.path.with_display_path(error);
        match &self.output {
            Some(output) => output.with_display_path(error),
            None => error,
        }
    }

    /// Opens the directories of a run that another process has sent. The error names the directory.
    pub fn open_directories(&mut self) -> Result<(), (PathBuf, io::Error)> {
        for file in std::iter::once(&mut self.path).chain(&mut self.output) {
            let opened = file.open_directory();
            opened.map_err(|error| (file.directory().path().to_owned(), error))?;
        }
        Ok(())
    }
}
