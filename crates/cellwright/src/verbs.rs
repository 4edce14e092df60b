//! The verbs: arguments in, an answer out. One file each.

pub(crate) mod answer;
pub(crate) mod artifact;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod eval;
pub(crate) mod git;
pub(crate) mod helpers;
pub(crate) mod host;
pub(crate) mod input;
pub(crate) mod kernels;
pub(crate) mod mcp;
pub(crate) mod notebook;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod trust;
pub(crate) mod write;

use crate::cli::{self, Verb};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::screen::Screen;

/// Runs a verb and shows its answer; says the exit code.
pub(crate) fn run(verb: &Verb, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    match verb {
        Verb::Doctor(args) => return doctor::doctor(args, engine, screen),
        Verb::Diff(args) => return diff::diff(args)?.show(screen),
        Verb::Git(args) => return git::git(args, screen),
        Verb::Eval(args) => return eval::eval(args, engine, screen),
        Verb::Run(args) => return run::run(args, engine, screen),
        Verb::Check(args) => return check::check(args, engine, screen),
        Verb::Runs(args) => return runs::runs(args, screen),
        Verb::Kernels(args) => kernels::kernels(args, engine, screen),
        Verb::Read(args) => read::read(args, engine)?.show(engine, screen),
        Verb::Write(args) => write::write(args, engine)?.show(screen),
        Verb::Edit(args) => edit::edit(args, engine)?.show(screen),
        Verb::Notebook(args) => notebook::notebook(args, engine, screen),
        Verb::Artifact(args) => artifact::artifact(args, engine, screen),
        Verb::Mcp(args) => mcp::mcp(args, engine, screen),
        Verb::Host(args) => host::host(args, engine, screen),
        Verb::Config(args) => config::config(args, engine, screen),
        Verb::Helpers(args) => helpers::helpers(args, engine)?.show(screen),
        Verb::Trust(args) => trust::trust(args, engine)?.show(screen),
        Verb::Completions { shell } => {
            let script = cli::completions(*shell);
            if screen.json {
                screen.document(&serde_json::json!({
                    "shell": shell.to_string(),
                    "script": String::from_utf8_lossy(&script),
                }))
            } else {
                screen.bytes(&script)
            }
        }
    }?;
    Ok(0)
}
