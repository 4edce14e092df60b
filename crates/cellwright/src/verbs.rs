//! The verbs: arguments in, an answer out. One file each.

pub(crate) mod answer;
pub(crate) mod edit;
pub(crate) mod input;
pub(crate) mod notebook;
pub(crate) mod read;
pub(crate) mod write;

use crate::cli::{self, Verb};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::screen::Screen;

/// Runs a verb and shows its answer.
pub(crate) fn run(verb: &Verb, engine: &Engine, screen: &Screen) -> Result<(), Failure> {
    match verb {
        Verb::Read(args) => read::read(args, engine)?.show(screen),
        Verb::Write(args) => write::write(args, engine)?.show(screen),
        Verb::Edit(args) => edit::edit(args, engine)?.show(screen),
        Verb::Notebook(args) => notebook::notebook(args, engine, screen),
        Verb::Completions { shell } => {
            let script = cli::completions(*shell);
            if screen.json {
                return screen.document(&serde_json::json!({
                    "shell": shell.to_string(),
                    "script": String::from_utf8_lossy(&script),
                }));
            }
            screen.bytes(&script)
        }
    }
}
