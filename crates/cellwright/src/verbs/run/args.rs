//! What can be typed after `run`.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_run::Edit;
use clap::Args;

use crate::kernels::{Backend, Flags};
use crate::verbs::eval::{interpreter, seconds};

/// Arguments of `run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Runs the code cells of a notebook in order on its kernel and writes what they put out back into the
file: outputs, counts, and nothing else. It is saved about once a second while it runs and once more
at the end; whatever stops it, what ran is in the file, and a cell that did not come to its end says so
there.

The kernel is the one that the notebook asks for, where that can be started; else, for Python, a runner
of our own that needs nothing but python3. It starts in the notebook's folder and ends with the
command, unless --session keeps it: then a cell can be edited and run again on the same variables.

Cells are named by index, as in `3`, or by id, as in `id:ab12`. What is said about them narrows it
down: `--from 3 --tag plot` are the cells from 3 on that have the tag. A cell with the tag
`skip-execution` is left out, and one with `raises-exception` may fail.

Exit codes: 0 done; 1 a cell raised; 2 bad notebook, or the kernel died or could not be started;
3 cells were changed by somebody else meanwhile; 124 timed out; 130 cancelled.

Examples:
  cellwright run analysis.ipynb
  cellwright run analysis.ipynb -o done.ipynb -p year=2026
  cellwright run analysis.ipynb --session work --cells 3-5
  cellwright run analysis.ipynb --session work --edit-cell 3 --source 'x = 2' --and-below
  cellwright run analysis.ipynb --session work --stale
  cellwright run analysis.ipynb --background --timeout 3600")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct RunArgs {
    /// The notebook
    pub(crate) path: PathBuf,
    /// Which cells: a list of indexes, ranges and ids, as in `3-5,8,id:ab12`
    #[arg(long, value_name = "LIST", help_heading = "Which cells")]
    pub(crate) cells: Option<String>,
    /// This cell and those behind it
    #[arg(long, value_name = "CELL", help_heading = "Which cells")]
    pub(crate) from: Option<String>,
    /// This cell and those before it
    #[arg(long, value_name = "CELL", help_heading = "Which cells")]
    pub(crate) to: Option<String>,
    /// The cells before this one
    #[arg(long, value_name = "CELL", help_heading = "Which cells")]
    pub(crate) above: Option<String>,
    /// The cells behind this one
    #[arg(long, value_name = "CELL", help_heading = "Which cells")]
    pub(crate) below: Option<String>,
    /// Cells with this tag; can be repeated
    #[arg(long = "tag", value_name = "TAG", help_heading = "Which cells")]
    pub(crate) tags: Vec<String>,
    /// Cells that are not fresh in this session: changed, never run there, or behind such a cell
    #[arg(long, help_heading = "Which cells", conflicts_with = "changed")]
    pub(crate) stale: bool,
    /// Cells that were changed or added since they ran in this session
    #[arg(long, help_heading = "Which cells")]
    pub(crate) changed: bool,
    /// Give this cell a new source first; then it runs, unless more is said
    #[arg(long, value_name = "CELL", help_heading = "Edit first")]
    pub(crate) edit_cell: Option<String>,
    /// The new source
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Edit first"
    )]
    #[arg(requires = "edit_cell", conflicts_with = "source_file")]
    pub(crate) source: Option<String>,
    /// Take the new source from a file, or `-` for stdin
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Edit first",
        requires = "edit_cell"
    )]
    pub(crate) source_file: Option<String>,
    /// Several edits: a file with a JSON list such as `[{\"action\": \"edit\", \"cell\": \"3\", \"source\":
    /// \"…\"}]`, or `-` for stdin
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Edit first",
        conflicts_with = "edit_cell"
    )]
    pub(crate) edits: Option<String>,
    /// Run the cells behind the edited ones, too
    #[arg(long, help_heading = "Edit first")]
    pub(crate) and_below: bool,
    /// The revision that the edits are for; if the file has another one, they are merged or refused
    #[arg(long, value_name = "REV", help_heading = "Edit first")]
    pub(crate) rev: Option<String>,
    /// Write the notebook to another file and leave this one as it is
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A value for the notebook, as in `year=2026`; YAML. Goes into a cell behind the one tagged
    /// `parameters`
    #[arg(
        long = "parameter",
        short,
        value_name = "NAME=VALUE",
        help_heading = "Parameters"
    )]
    pub(crate) parameters: Vec<String>,
    /// The same, but the value is text whatever it looks like
    #[arg(
        long = "raw-parameter",
        short,
        value_name = "NAME=TEXT",
        help_heading = "Parameters"
    )]
    pub(crate) raw_parameters: Vec<String>,
    /// Values from a file: YAML or JSON, names and values
    #[arg(
        long = "parameters-file",
        short = 'f',
        value_name = "FILE",
        help_heading = "Parameters"
    )]
    pub(crate) parameters_files: Vec<PathBuf>,
    /// Seconds that each cell may take; 0 for no limit [default: the setting run.timeout, which is 0 unless
    /// changed]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Seconds that all of it may take, the start of the kernel included
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) total_timeout: Option<Duration>,
    /// Go on after a cell that failed
    #[arg(long, short)]
    pub(crate) keep_going: bool,
    /// Where the cells run [default: the notebook's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The interpreter: a path, an environment's folder, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter, help_heading = "Which kernel")]
    pub(crate) python: Option<PathBuf>,
    /// The kernel, by the name of its kernelspec (see `cellwright kernels specs`)
    #[arg(long, value_name = "NAME", help_heading = "Which kernel")]
    pub(crate) kernel: Option<String>,
    /// What runs the code
    #[arg(long, value_name = "BACKEND", help_heading = "Which kernel")]
    pub(crate) backend: Option<Backend>,
    /// Run it on a kernel that runs already: its connection file, or the name of that in Jupyter's runtime
    /// folder
    #[arg(long, value_name = "FILE", help_heading = "Which kernel")]
    #[arg(conflicts_with_all = ["kernel", "python", "restart"])]
    pub(crate) existing: Option<PathBuf>,
    /// Keep the kernel, for other commands in this folder to use by this name
    #[arg(long, short, value_name = "NAME", help_heading = "Which kernel")]
    pub(crate) session: Option<String>,
    /// Begin with a fresh kernel in the session
    #[arg(long, requires = "session", help_heading = "Which kernel")]
    pub(crate) restart: bool,
    /// On whose behalf: owners share a session until one of them resets it [default: the setting eval.owner]
    #[arg(long, value_name = "NAME", help_heading = "Which kernel")]
    pub(crate) owner: Option<String>,
    /// What the next `input()` gets; can be repeated. Without an answer it raises at once
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    /// Do not wait: print the name of the run (see `cellwright runs`)
    #[arg(long, conflicts_with_all = ["wait", "full", "events"])]
    pub(crate) background: bool,
    /// Wait so long at the most; the run goes on after that (see `cellwright runs`)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "events")]
    pub(crate) wait: Option<Duration>,
    /// Show everything that the cells say, also where output would be cut
    #[arg(long)]
    pub(crate) full: bool,
    /// Print a JSON document for everything that happens, each on a line of its own
    #[arg(long)]
    pub(crate) events: bool,
    /// Several edits that are given as data, not as a file.
    #[arg(skip)]
    pub(crate) given_edits: Vec<Edit>,
    /// Whether cells find what they would in Jupyter and no more, also on a session that stays.
    #[arg(skip)]
    pub(crate) like_jupyter: bool,
}

impl RunArgs {
    /// What is said about the kernel.
    pub(crate) fn kernel(&self) -> Flags<'_> {
        Flags {
            python: self.python.as_deref(),
            backend: self.backend,
            kernel: self.kernel.as_deref(),
            existing: self.existing.as_deref(),
        }
    }
}
