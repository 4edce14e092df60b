//! The command line. Each verb is a module of [`verbs`](crate::verbs).

pub(crate) mod bridge_command;
pub(crate) mod complete;
pub(crate) mod mcp;
mod one_verb;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use clap::builder::Styles;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use self::mcp::McpArgs;
use crate::console::Console;
use crate::verbs::artifact::ArtifactArgs;
use crate::verbs::check::CheckArgs;
use crate::verbs::config::ConfigArgs;
use crate::verbs::diff::DiffArgs;
use crate::verbs::doctor::DoctorArgs;
use crate::verbs::edit::EditArgs;
use crate::verbs::eval::EvalArgs;
use crate::verbs::gateway::GatewayArgs;
use crate::verbs::git::GitArgs;
use crate::verbs::helpers::HelpersArgs;
use crate::verbs::host::HostArgs;
use crate::verbs::kernels::KernelsArgs;
use crate::verbs::notebook::NotebookArgs;
use crate::verbs::read::ReadArgs;
use crate::verbs::run::RunArgs;
use crate::verbs::runs::RunsArgs;
use crate::verbs::schema::SchemaArgs;
use crate::verbs::trust::TrustArgs;
use crate::verbs::write::WriteArgs;
use crate::verbs::{
    artifact, check, config, diff, doctor, edit, eval, gateway, git, helpers, host, kernels,
    notebook, read, run as run_verb, runs, schema, trust, write,
};

/// Read, edit and run Jupyter notebooks, and run code on live kernels.
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
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the code raised an exception, or notebooks differ; 2 bad arguments, bad notebook, file or kernel \
failure; 3 conflict, nothing written; 124 timed out; 130 cancelled; 70 bug in Cellwright.";

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Print one JSON document on stdout and nothing else
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,
    /// Hide remarks on stderr, but not notices and errors
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Print a notebook as text with cell markers
    Read(ReadArgs),
    /// Replace the text of a notebook and keep everything that the text does not show
    Write(WriteArgs),
    /// Replace a part of the text of a notebook
    Edit(EditArgs),
    /// Change, add, delete or list cells
    Notebook(NotebookArgs),
    /// Compare two notebooks cell by cell
    Diff(DiffArgs),
    /// Set up git to show, merge and store notebooks
    Git(GitArgs),
    /// Run code
    Eval(EvalArgs),
    /// Run a notebook's cells and save the outputs
    Run(Box<RunArgs>),
    /// Re-run a notebook and compare with its stored outputs
    Check(CheckArgs),
    /// Manage background runs
    Runs(RunsArgs),
    /// List, inspect and control sessions
    Kernels(KernelsArgs),
    /// List or print full outputs
    Artifact(ArtifactArgs),
    /// Serve notebooks and kernels to AI agents over MCP
    Mcp(McpArgs),
    /// List the functions that code can use, including your own
    Helpers(HelpersArgs),
    /// Approve the modules and settings of a project
    Trust(TrustArgs),
    /// Check interpreter, runner, kernels and directories
    Doctor(DoctorArgs),
    /// Show or stop the background process that owns sessions
    Host(HostArgs),
    /// Start, show or stop the shared gateway
    Gateway(GatewayArgs),
    /// List settings and the origin of each value
    Config(ConfigArgs),
    /// Print the JSON Schema of what a verb prints with `--json`
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    #[command(after_help = "\
In bash, zsh and fish, the script completes verbs, flags, sessions, kernels, runs and the cells of a notebook.

Examples:
  cellwright completions bash > ~/.local/share/bash-completion/completions/cellwright
  cellwright completions zsh > ~/.zfunc/_cellwright
  cellwright completions fish > ~/.config/fish/completions/cellwright.fish")]
    Completions {
        /// Shell
        shell: Shell,
    },
}

/// A completion script.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CompletionScript {
    /// Name of the shell.
    shell: String,
    /// The script.
    script: String,
}

/// Returns the completion script for a shell. The first three call [`complete`]; the others list flags only.
pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    match shell {
        Shell::Bash => include_bytes!("cli/completions/cellwright.bash").into(),
        Shell::Zsh => include_bytes!("cli/completions/cellwright.zsh").into(),
        Shell::Fish => include_bytes!("cli/completions/cellwright.fish").into(),
        _ => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "cellwright", &mut script);
            script
        }
    }
}

/// Parses the arguments of this process.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    match one_verb::parse(&arguments) {
        Some(cli) => Ok(cli),
        None => Cli::try_parse_from(arguments),
    }
}

/// Whether the arguments contain `--json`, for errors in parsing them.
pub(crate) fn wants_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

/// The text of an error in the arguments, without colours: sequences in it are those of the arguments.
pub(crate) fn usage_text(error: &clap::Error) -> String {
    let command = Cli::command().styles(Styles::plain());
    match command.try_get_matches_from(std::env::args_os()) {
        // `to_string` would remove sequences, and text with them.
        Err(plain) => plain.render().ansi().to_string(),
        Ok(_) => error.render().to_string(),
    }
}

/// Runs a verb and prints its result. Returns the exit code.
pub(crate) fn run(verb: &Verb, engine: &Engine, console: &Console) -> Result<u8, Failure> {
    match verb {
        Verb::Doctor(args) => return doctor::doctor(args, engine, console),
        Verb::Diff(args) => return diff::diff(args, console),
        Verb::Git(args) => return git::git(args, console),
        Verb::Eval(args) => return eval::eval(args, engine, console),
        Verb::Run(args) => return run_verb::run(args, engine, console),
        Verb::Check(args) => return check::check(args, engine, console),
        Verb::Runs(args) => return runs::runs(args, console),
        Verb::Gateway(args) => gateway::gateway(args, engine, console),
        Verb::Kernels(args) => kernels::kernels(args, engine, console),
        Verb::Read(args) => read::read(args, engine, console),
        Verb::Write(args) => write::write(args, engine, console),
        Verb::Edit(args) => edit::edit(args, engine, console),
        Verb::Notebook(args) => notebook::notebook(args, engine, console),
        Verb::Artifact(args) => artifact::artifact(args, engine, console),
        Verb::Mcp(args) => mcp::mcp(args, engine, console),
        Verb::Host(args) => host::host(args, engine, console),
        Verb::Config(args) => config::config(args, engine, console),
        Verb::Helpers(args) => helpers::helpers(args, engine, console),
        Verb::Schema(args) => schema::schema(args, console),
        Verb::Trust(args) => trust::trust(args, engine, console),
        Verb::Completions { shell } => {
            let script = completions(*shell);
            if console.json {
                console.print_json(&CompletionScript {
                    shell: shell.to_string(),
                    script: String::from_utf8_lossy(&script).into_owned(),
                })
            } else {
                console.write_bytes(&script)
            }
        }
    }?;
    Ok(0)
}
