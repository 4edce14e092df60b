//! The command line: what can be typed. Meaning is in [`verbs`](crate::verbs).

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::verbs::artifact::ArtifactArgs;
use crate::verbs::check::CheckArgs;
use crate::verbs::config::ConfigArgs;
use crate::verbs::diff::DiffArgs;
use crate::verbs::doctor::DoctorArgs;
use crate::verbs::edit::EditArgs;
use crate::verbs::eval::EvalArgs;
use crate::verbs::git::GitArgs;
use crate::verbs::helpers::HelpersArgs;
use crate::verbs::host::HostArgs;
use crate::verbs::kernels::KernelsArgs;
use crate::verbs::mcp::McpArgs;
use crate::verbs::notebook::NotebookArgs;
use crate::verbs::read::ReadArgs;
use crate::verbs::run::RunArgs;
use crate::verbs::runs::RunsArgs;
use crate::verbs::trust::TrustArgs;
use crate::verbs::write::WriteArgs;

/// Work with Jupyter notebooks as text, losing nothing, and run code.
#[derive(Debug, Parser)]
#[command(
    name = "cellwright",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CELLWRIGHT_COMMIT"), ")"),
    after_help = EXIT_CODES,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the code raised, or notebooks differ; 2 bad arguments, bad notebook, trouble with a file or a \
kernel; 3 conflict, nothing written; 124 timed out; 130 cancelled; 70 our bug.";

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print one JSON document on stdout, and nothing else there
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// Print no remarks on stderr; notices and errors are still printed
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Print a notebook as text with cell markers
    Read(ReadArgs),
    /// Replace a notebook by edited text, keeping everything the text does not show
    Write(WriteArgs),
    /// Replace a piece of a notebook's text
    Edit(EditArgs),
    /// Change, add, remove or list cells
    Notebook(NotebookArgs),
    /// Compare two notebooks, cell by cell
    Diff(DiffArgs),
    /// Let git show, merge and store notebooks well
    Git(GitArgs),
    /// Run code
    Eval(EvalArgs),
    /// Run a notebook's cells and write what they put out back
    Run(Box<RunArgs>),
    /// Run a notebook anew and compare what comes out with what is stored
    Check(CheckArgs),
    /// Look after runs that go on in the background
    Runs(RunsArgs),
    /// Look after sessions, and into them
    Kernels(KernelsArgs),
    /// List or print full outputs that were kept
    Artifact(ArtifactArgs),
    /// Serve all of this to AI agents over MCP
    Mcp(McpArgs),
    /// List the functions that code finds, your own included
    Helpers(HelpersArgs),
    /// Let a project's own modules and settings be used
    Trust(TrustArgs),
    /// Check the interpreter, the runner and the folders that are needed
    Doctor(DoctorArgs),
    /// Look after the background process that keeps kernels
    Host(HostArgs),
    /// List settings, and where each value comes from
    Config(ConfigArgs),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  cellwright completions bash > ~/.local/share/bash-completion/completions/cellwright
  cellwright completions zsh > ~/.zfunc/_cellwright
  cellwright completions fish > ~/.config/fish/completions/cellwright.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// The completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cellwright", &mut script);
    script
}

/// Whether the arguments ask for JSON, for errors that come before they are understood.
pub(crate) fn wants_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}
