//! [`PipedFiles`]: a run whose notebook comes from stdin, or whose result goes to stdout.

use std::fs;
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind, flag, flag_value, hint};
use cellwright_engine::kernels::working_directory;
use cellwright_operations::file_path::FilePath;
use cellwright_operations::run::RunRequest;
use cellwright_stdext::private::temporary;
use tempfile::TempDir;

use super::RunArgs;
use crate::console::Console;
use crate::verbs::notebook_input::NotebookInput;

/// The name of the result below its temporary directory.
const RESULT: &str = "result.ipynb";

/// The name of stdout in messages and reports.
const STDOUT_NAME: &str = "standard output";

/// The files of a run; the ones for pipes are temporary.
pub(super) struct PipedFiles {
    input: NotebookInput,
    /// The directory of the result, if it goes to stdout.
    result: Option<TempDir>,
}

impl PipedFiles {
    /// Reads the notebook from stdin if the arguments name it.
    pub(super) fn open(args: &RunArgs, console: &Console) -> Result<Self, Failure> {
        let from_stdin = is_pipe(&args.path);
        let to_stdout = args.output.as_deref().is_some_and(is_pipe);
        let rejected = |message: &str| Err(Failure::new(Kind::BadArguments, message));
        if (from_stdin || to_stdout) && (args.background || args.wait.is_some()) {
            return rejected("A run that uses stdin or stdout cannot continue in the background");
        }
        if to_stdout && (console.json || args.events) {
            return rejected("stdout cannot have both the notebook and the report");
        }
        if from_stdin && args.output.is_none() {
            let message = "The result of a notebook from standard input needs a file";
            return Err(Failure::new(Kind::BadArguments, message).hint(hint![
                "name it with ",
                flag_value("output", "FILE"),
                ", or print it with ",
                flag("output"),
                " `-`",
            ]));
        }
        Ok(Self {
            input: NotebookInput::open(&args.path, console)?,
            result: to_stdout
                .then(|| temporary::create_dir("cellwright-"))
                .transpose()?,
        })
    }

    /// Whether stdout is for the notebook, not for its outputs.
    pub(super) fn is_to_stdout(&self) -> bool {
        self.result.is_some()
    }

    /// Puts the temporary files into a request.
    pub(super) fn apply(&self, request: &mut RunRequest) -> Result<(), Failure> {
        if self.input.is_stdin() {
            request.path = self.input.file().open_path().into();
            if request.cwd.is_none() {
                request.cwd = Some(working_directory(None)?.into());
            }
        }
        if let Some(dir) = &self.result {
            request.output = Some(FilePath::new(dir.path().join(RESULT), STDOUT_NAME));
        }
        Ok(())
    }

    /// Prints the result, whatever the exit code of the run.
    pub(super) fn finish(
        &self,
        ran: Result<u8, Failure>,
        console: &Console,
    ) -> Result<u8, Failure> {
        let code = ran.map_err(|failure| self.input.describe(failure))?;
        if let Some(dir) = &self.result
            && let Ok(notebook) = fs::read(dir.path().join(RESULT))
        {
            console.write_bytes(&notebook)?;
        }
        Ok(code)
    }
}

fn is_pipe(path: &Path) -> bool {
    path.as_os_str() == "-"
}
