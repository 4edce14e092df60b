//! `notebook upgrade`: to nbformat 4.5.

use std::path::PathBuf;

use cellwright_notebook::file;
use clap::Args;
use serde::Serialize;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::verbs::write::RevisionArg;

/// Arguments of `notebook upgrade`.
#[derive(Debug, Args)]
#[command(after_help = "\
Notebooks in nbformat 3 (with worksheets) are rewritten in nbformat 4.5. In nbformat 4 only the minor
number and missing cell ids are put in; everything else keeps its bytes.

Examples:
  cellwright notebook upgrade old.ipynb")]
pub(super) struct UpgradeArgs {
    /// The notebook
    path: PathBuf,
    #[command(flatten)]
    revision: RevisionArg,
}

/// What the upgrade did.
#[derive(Debug, Serialize)]
pub(super) struct UpgradeAnswer {
    action: &'static str,
    path: String,
    changed: bool,
    from: Option<String>,
    ids_added: usize,
    revision: String,
}

/// Upgrades a notebook.
pub(super) fn upgrade(args: &UpgradeArgs, engine: &Engine) -> Result<UpgradeAnswer, Failure> {
    let (upgraded, revision) = file::upgrade(&args.path, args.revision.request(engine, false))
        .map_err(Failure::of_change)?;
    Ok(UpgradeAnswer {
        action: "upgrade",
        path: args.path.display().to_string(),
        changed: upgraded.is_some(),
        from: upgraded.map(|done| format!("{}.{}", done.from.0, done.from.1)),
        ids_added: upgraded.map_or(0, |done| done.ids_added),
        revision: revision.to_string(),
    })
}

impl UpgradeAnswer {
    pub(super) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        let written = self.changed.then_some(self.revision.as_str());
        self.print(screen)
            .map_err(|failure| failure.after_change(written))
    }

    fn print(&self, screen: &Screen) -> Result<(), Failure> {
        if screen.json {
            return screen.document(self);
        }
        let plural = if self.ids_added == 1 { "" } else { "s" };
        let ids = format!("{} cell id{plural} added", self.ids_added);
        let text = match self.from.as_deref() {
            Some("4.5") => format!("Already nbformat 4.5; {ids}.\n"),
            Some(from) => format!("Upgraded from nbformat {from} to 4.5, {ids}.\n"),
            None => {
                "Already nbformat 4.5 or later with all cell ids; nothing written.\n".to_owned()
            }
        };
        screen.data(&text)?;
        screen.data(&format!("revision: {}\n", self.revision))
    }
}
