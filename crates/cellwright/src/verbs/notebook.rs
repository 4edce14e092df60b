//! `notebook`: one-cell operations, tags, metadata, the outline, parameters, figures and the upgrade.

mod cells;
mod figures;
mod location;
mod metadata;
mod outline;
mod parameters;
mod undo;
mod upgrade;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_notebook::Direction;
use clap::{Args, Subcommand};

use crate::console::Console;

pub(crate) use figures::show_figures;
pub(crate) use outline::show_outline;

/// Arguments of `notebook`.
#[derive(Debug, Args)]
#[command(after_help = "\
A cell is named by its index (from 0), or by its id or a prefix of it: `3`, `id:ab12`.

Examples:
  cellwright notebook outline a.ipynb
  cellwright notebook figures a.ipynb -o figures/
  cellwright notebook edit a.ipynb 3 --source 'x = 1'
  cellwright notebook insert a.ipynb --after id:ab12 --type markdown --source '## Results'
  cellwright notebook delete a.ipynb 7
  cellwright notebook move a.ipynb 7 --to 0
  cellwright notebook type a.ipynb 2 markdown
  cellwright notebook tag a.ipynb 0 parameters
  cellwright notebook meta a.ipynb 3 jupyter.source_hidden=true
  cellwright notebook clear a.ipynb")]
pub(crate) struct NotebookArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Replace the source of a cell; keep its type, outputs and everything else
    Edit(cells::EditCell),
    /// Insert a cell, by default at the end
    Insert(cells::InsertCell),
    /// Delete a cell and print its source
    Delete(cells::DeleteCell),
    /// Move a cell
    Move(cells::MoveCell),
    /// Change the type of a cell
    Type(cells::TypeCell),
    /// Clear the outputs of one code cell, or of all
    Clear(cells::ClearCell),
    /// List, add and remove tags of a cell
    Tag(metadata::TagArgs),
    /// Show and change the metadata of a cell or of the notebook
    Meta(metadata::MetaArgs),
    /// List the cells, one line each
    Outline(outline::OutlineArgs),
    /// List the parameters that the notebook accepts
    Parameters(parameters::ParametersArgs),
    /// List the images in outputs and attachments, or extract them
    Figures(figures::FiguresArgs),
    /// Undo the last change
    Undo(undo::UndoArgs),
    /// Redo the change that was undone last
    Redo(undo::UndoArgs),
    /// List the Jupyter servers that have the notebook open
    Where(location::WhereArgs),
    /// Convert to nbformat 4.5: from nbformat 2 or 3, or by adding missing cell ids
    Upgrade(upgrade::UpgradeArgs),
}

/// Carries out an action and prints its report.
pub(crate) fn notebook(
    args: &NotebookArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    match &args.action {
        Action::Edit(args) => args.change(engine, console),
        Action::Insert(args) => cells::change(&args.request()?, engine, console),
        Action::Delete(args) => cells::change(&args.request(), engine, console),
        Action::Move(args) => cells::change(&args.request()?, engine, console),
        Action::Type(args) => cells::change(&args.request(), engine, console),
        Action::Clear(args) => cells::change(&args.request(), engine, console),
        Action::Tag(args) => metadata::tag(args, engine, console),
        Action::Meta(args) => metadata::meta(args, engine, console),
        Action::Outline(args) => outline::outline(args, engine, console),
        Action::Parameters(args) => parameters::parameters(args, engine, console),
        Action::Figures(args) => figures::figures(args, engine, console),
        Action::Undo(args) => undo::undo(args, Direction::Undo, engine, console),
        Action::Redo(args) => undo::undo(args, Direction::Redo, engine, console),
        Action::Where(args) => location::show_location(args, engine, console),
        Action::Upgrade(args) => upgrade::upgrade(args, engine, console),
    }
}
