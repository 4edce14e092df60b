//! Arguments of `run`.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind, flag_value, hint};
use cellwright_execution::{CellSelection, Edit};
use cellwright_operations::parameters;
use cellwright_operations::run::RunRequest;
use cellwright_operations::seconds::parse_seconds;
use clap::Args;

use crate::verbs::env_args::EnvArgs;
use crate::verbs::kernel_args::{ExistingArg, KernelArgs};
use crate::verbs::report_args::ReportArgs;
use crate::verbs::text_source;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs the code cells of a notebook in order and saves outputs and execution counts in the file; nothing else in \
the file changes. The file is saved about once a second during the run and once at the end. If the run is stopped, \
the file holds the results so far, and a cell that did not finish is marked with an error.

The kernel is the one that the notebook names, and `python3` for a Python notebook that names none. If it cannot \
be started, Python notebooks use the built-in runner, which needs only python3. The last lines name kernel, backend \
and interpreter. The kernel starts in the directory of the notebook and ends with the command. \
With `--session` it stays, so that a cell can be edited and run again with the same variables.

A cell is named by its index, as in `3`, or by its id, as in `id:ab12`. Several conditions select the cells that \
meet all of them: `--from 3 --tag plot` selects the cells with the tag from cell 3 on. Cells with the tag \
`skip-execution` do not run. Cells with the tag `raises-exception` may fail.

Exit codes: 0 done; 1 a cell raised an exception; 2 bad notebook, or the kernel died or could not be started; \
3 another program changed the cells during the run; 124 timed out; 130 cancelled.

Examples:
  cellwright run analysis.ipynb
  cellwright run analysis.ipynb -o done.ipynb -p year=2026
  git show HEAD:analysis.ipynb | cellwright run - -o - > done.ipynb
  cellwright run analysis.ipynb --session work --cells 3-5
  cellwright run analysis.ipynb --session work --edit-cell 3 --source 'x = 2' --and-below
  cellwright run analysis.ipynb --session work --stale
  cellwright run analysis.ipynb --background --timeout 3600")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct RunArgs {
    /// Notebook, or `-` to read it from stdin (with `--output`)
    pub(super) path: PathBuf,
    /// Indexes, ranges and ids, as in `3-5,8,id:ab12`
    #[arg(long, value_name = "LIST", help_heading = "Cells")]
    pub(super) cells: Option<String>,
    /// This cell and all following cells
    #[arg(long, value_name = "CELL", help_heading = "Cells")]
    pub(super) from: Option<String>,
    /// This cell and all preceding cells
    #[arg(long, value_name = "CELL", help_heading = "Cells")]
    pub(super) to: Option<String>,
    /// All cells before this one
    #[arg(long, value_name = "CELL", help_heading = "Cells")]
    pub(super) above: Option<String>,
    /// All cells after this one
    #[arg(long, value_name = "CELL", help_heading = "Cells")]
    pub(super) below: Option<String>,
    /// Cells with this tag; can be repeated
    #[arg(long = "tag", value_name = "TAG", help_heading = "Cells")]
    pub(super) tags: Vec<String>,
    /// Cells that are not fresh in this session: changed, never run there, or after such a cell
    #[arg(long, help_heading = "Cells", conflicts_with = "changed")]
    pub(super) stale: bool,
    /// Cells that were changed or added since they ran in this session
    #[arg(long, help_heading = "Cells")]
    pub(super) changed: bool,
    /// Replace the source of this cell, then run it
    #[arg(long, value_name = "CELL", help_heading = "Edit first")]
    pub(super) edit_cell: Option<String>,
    /// New source
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Edit first"
    )]
    #[arg(requires = "edit_cell", conflicts_with = "source_file")]
    pub(super) source: Option<String>,
    /// Read the new source from a file, or from stdin with `-`
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Edit first",
        requires = "edit_cell"
    )]
    pub(super) source_file: Option<String>,
    /// File with several edits, or `-` for stdin: a JSON list such as `[{"action": "edit", "cell": "3", "source": "…"}]`
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Edit first",
        conflicts_with = "edit_cell"
    )]
    pub(super) edits: Option<String>,
    /// Also run all cells after the edited ones
    #[arg(long, help_heading = "Edit first")]
    pub(super) and_below: bool,
    /// Revision that the edits are based on; newer changes are merged, or the edits are rejected
    #[arg(long, value_name = "REV", help_heading = "Edit first")]
    pub(super) rev: Option<String>,
    /// Write although JupyterLab has the notebook in a collaboration room; text that is being typed there is lost
    #[arg(long)]
    pub(super) force: bool,
    /// Write the result to another file and leave the notebook unchanged; `-` for stdout
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Parameter with a YAML value, as in `year=2026`; goes into a cell after the one tagged `parameters`
    #[arg(
        long = "parameter",
        short,
        value_name = "NAME=VALUE",
        help_heading = "Parameters"
    )]
    pub(super) parameters: Vec<String>,
    /// Parameter with a text value
    #[arg(
        long = "raw-parameter",
        short,
        value_name = "NAME=TEXT",
        help_heading = "Parameters"
    )]
    pub(super) raw_parameters: Vec<String>,
    /// File with parameters, as a YAML or JSON mapping
    #[arg(
        long = "parameters-file",
        short = 'f',
        value_name = "FILE",
        help_heading = "Parameters"
    )]
    pub(super) parameters_files: Vec<PathBuf>,
    /// Time limit of each cell in seconds; 0 for none [default: the setting run.timeout, initially 0]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) timeout: Option<Duration>,
    /// Time limit of the whole run in seconds, including the start of the kernel
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) total_timeout: Option<Duration>,
    /// Continue after a cell that failed
    #[arg(long, short)]
    pub(super) keep_going: bool,
    /// Working directory of the kernel [default: the directory of the notebook]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Run the cells in a session: a kernel that stays and that commands in this project share by name, or `@N`
    #[arg(long, short, value_name = "NAME", help_heading = "Kernel")]
    pub(super) session: Option<String>,
    /// Replace the kernel of the session first
    #[arg(
        long = "reset",
        alias = "restart",
        requires = "session",
        conflicts_with = "existing",
        help_heading = "Kernel"
    )]
    pub(super) restart: bool,
    /// Owner of the run; owners share a session until one of them resets it [default: the setting eval.owner]
    #[arg(long, value_name = "NAME", help_heading = "Kernel")]
    pub(super) owner: Option<String>,
    /// Reply to the next `input()`; can be repeated. Without one, `input()` raises an exception
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) answers: Vec<String>,
    /// Start the run in the background and print its id (see `cellwright runs`)
    #[arg(long, conflicts_with_all = ["wait", "full", "events"], help_heading = "Background")]
    pub(super) background: bool,
    /// Wait at most SECONDS, then leave the run in the background (see `cellwright runs`)
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        help_heading = "Background"
    )]
    pub(super) wait: Option<Duration>,
    /// Print all output of the cells, even to a pipe
    #[arg(long)]
    pub(super) full: bool,
    /// Print one JSON document per event, each on one line
    #[arg(long)]
    pub(super) events: bool,
    #[command(flatten)]
    pub(super) report: ReportArgs,
    #[command(flatten, next_help_heading = "Environment")]
    pub(super) env: EnvArgs,
    #[command(flatten, next_help_heading = "Kernel")]
    pub(super) kernel: KernelArgs,
    #[command(flatten, next_help_heading = "Kernel")]
    pub(super) existing: ExistingArg,
}

impl RunArgs {
    pub(super) fn request(&self) -> Result<RunRequest, Failure> {
        Ok(RunRequest {
            path: self.path.clone().into(),
            selection: CellSelection {
                cells: self.cells.clone(),
                from: self.from.clone(),
                to: self.to.clone(),
                above: self.above.clone(),
                below: self.below.clone(),
                tags: self.tags.clone(),
            },
            stale: self.stale,
            changed: self.changed,
            edits: edits(self)?,
            and_below: self.and_below,
            revision: self.rev.clone(),
            force: self.force,
            output: self.output.clone().map(Into::into),
            parameters: parameters::collect_parameters(
                &self.parameters_files,
                &self.parameters,
                &self.raw_parameters,
            )?,
            timeout: self.timeout,
            total_timeout: self.total_timeout,
            keep_going: self.keep_going,
            cwd: self.cwd.clone().map(Into::into),
            project_dir: None,
            kernel: self.kernel.request(Some(&self.existing)),
            environment: self.env.request(),
            session: self.session.clone(),
            session_dir: None,
            restart: self.restart,
            owner: self.owner.clone(),
            answers: self.answers.clone(),
            like_jupyter: false,
        })
    }
}

fn edits(args: &RunArgs) -> Result<Vec<Edit>, Failure> {
    if let Some(cell) = &args.edit_cell {
        let source = match (&args.source, &args.source_file) {
            (Some(text), _) => text.clone(),
            (None, Some(file)) => text_source::read(file)?,
            (None, None) => {
                let failure = Failure::new(Kind::BadArguments, "`--edit-cell` needs a source");
                return Err(failure.hint(hint![
                    "give it with ",
                    flag_value("source", "TEXT"),
                    " or ",
                    flag_value("source-file", "FILE"),
                ]));
            }
        };
        return Ok(vec![Edit::source(cell, source)]);
    }
    let Some(file) = &args.edits else {
        return Ok(Vec::new());
    };
    let text = text_source::read(file)?;
    serde_json::from_str(&text).map_err(|error| {
        let mut failure = Failure::new(Kind::BadArguments, format!("Invalid edits in {file}"));
        failure.causes.push(error.to_string());
        failure.hint(
            "expected a list such as [{\"action\": \"edit\", \"cell\": \"3\", \"source\": \"x = 1\"}]",
        )
    })
}
