//! `notebook`: one-cell operations, the outline and the upgrade.

pub(crate) mod operation;
pub(crate) mod outline;
mod upgrade;

use clap::{Args, Subcommand};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::screen::Screen;

pub(crate) use outline::OutlineAnswer;

/// Arguments of `notebook`.
#[derive(Debug, Args)]
#[command(after_help = "\
A cell is named by its index (from 0) or by its id or the beginning of it: `3`, `id:ab12`.

Examples:
  cellwright notebook outline a.ipynb
  cellwright notebook edit a.ipynb 3 --source 'x = 1'
  cellwright notebook insert a.ipynb --after id:ab12 --type markdown --source '## Results'
  cellwright notebook delete a.ipynb 7
  cellwright notebook move a.ipynb 7 --to 0
  cellwright notebook type a.ipynb 2 markdown
  cellwright notebook clear a.ipynb")]
pub(crate) struct NotebookArgs {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Action {
    /// Replace the source of a cell; kind, outputs and everything else stay
    Edit(operation::EditCell),
    /// Put in a new cell; at the end unless told where
    Insert(operation::InsertCell),
    /// Take a cell out and print what it held
    Delete(operation::DeleteCell),
    /// Move a cell
    Move(operation::MoveCell),
    /// Change the kind of a cell
    Type(operation::TypeCell),
    /// Empty the outputs of one code cell, or of all
    Clear(operation::ClearCell),
    /// List the cells, one line each
    Outline(outline::OutlineArgs),
    /// Convert to nbformat 4.5: from nbformat 3, or by adding missing cell ids
    Upgrade(upgrade::UpgradeArgs),
}

/// Does it and shows the answer.
pub(crate) fn notebook(
    args: &NotebookArgs,
    engine: &Engine,
    screen: &Screen,
) -> Result<(), Failure> {
    match &args.action {
        Action::Edit(args) => args.carry_out(engine)?.show(screen),
        Action::Insert(args) => args.carry_out(engine)?.show(screen),
        Action::Delete(args) => args.carry_out(engine)?.show(screen),
        Action::Move(args) => args.carry_out(engine)?.show(screen),
        Action::Type(args) => args.carry_out(engine)?.show(screen),
        Action::Clear(args) => args.carry_out(engine)?.show(screen),
        Action::Outline(args) => outline::outline(args, engine)?.show(screen),
        Action::Upgrade(args) => upgrade::upgrade(args, engine)?.show(screen),
    }
}
