//! The operations on one cell, as they are typed.

use std::path::{Path, PathBuf};

use cellwright_notebook::edit::{Address, Operation, Place};
use cellwright_notebook::{CellKind, Cells, file};
use cellwright_run::Edit;
use clap::Args;

use crate::engine::Engine;
use crate::failure::{Failure, Kind, capitalised};
use crate::verbs::answer::ChangeAnswer;
use crate::verbs::input;
use crate::verbs::write::{RevisionArg, hint_create};

/// Reads `3` or `id:ab12`.
fn address(text: &str) -> Result<Address, String> {
    Address::read(text)
        .ok_or_else(|| "a cell is named by its index, as in `3`, or its id, as in `id:ab12`".into())
}

/// Reads the name of a kind.
fn kind(text: &str) -> Result<CellKind, String> {
    CellKind::from_name(text).ok_or_else(|| "one of code, markdown, raw".into())
}

/// The text of a cell.
#[derive(Debug, Args)]
pub(super) struct SourceArg {
    /// The text of the cell
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "source_file")]
    source: Option<String>,
    /// Take the text from a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    source_file: Option<String>,
}

impl SourceArg {
    fn given(&self, action: &str) -> Result<String, Failure> {
        match (&self.source, &self.source_file) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(file)) => input::text_from(file),
            (None, None) => Err(Failure::new(
                Kind::BadArguments,
                format!("Content is required for {action} action"),
            )
            .hint("give it with --source TEXT, or --source-file FILE (- for stdin)")),
        }
    }
}

/// Where a cell goes, relative to another.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct PlaceArg {
    /// Behind this cell
    #[arg(long, value_name = "CELL", value_parser = address)]
    after: Option<Address>,
    /// Before this cell
    #[arg(long, value_name = "CELL", value_parser = address)]
    before: Option<Address>,
}

impl PlaceArg {
    fn place(&self) -> Option<Place> {
        let after = self.after.clone().map(Place::After);
        after.or_else(|| self.before.clone().map(Place::Before))
    }
}

/// Replace the source of a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook edit a.ipynb 3 --source 'x = 1'
  cellwright notebook edit a.ipynb id:ab12 --source-file cell.py")]
pub(super) struct EditCell {
    /// The notebook
    path: PathBuf,
    /// The cell: its index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    #[command(flatten)]
    source: SourceArg,
    #[command(flatten)]
    revision: RevisionArg,
}

impl EditCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let operation = Operation::Edit {
            cell: self.cell.clone(),
            source: self.source.given("edit")?,
        };
        carry_out("edit", &self.path, &operation, &self.revision, engine)
    }
}

/// Put in a new cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook insert a.ipynb --source 'print(x)'
  cellwright notebook insert a.ipynb 0 --type markdown --source '# Title'
  cellwright notebook insert new.ipynb --create --source-file first.py")]
pub(super) struct InsertCell {
    /// The notebook
    path: PathBuf,
    /// The index the new cell shall have
    #[arg(value_name = "INDEX", conflicts_with_all = ["after", "before"])]
    cell: Option<usize>,
    #[command(flatten)]
    place: PlaceArg,
    /// code, markdown or raw
    #[arg(long = "type", value_name = "TYPE", default_value = "code", value_parser = kind)]
    kind: CellKind,
    #[command(flatten)]
    source: SourceArg,
    /// Start from an empty notebook if there is no such file
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    revision: RevisionArg,
}

impl InsertCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let place = self.cell.map(Place::At).or_else(|| self.place.place());
        let operation = Operation::Insert {
            place: place.unwrap_or(Place::End),
            kind: self.kind,
            source: self.source.given("insert")?,
            tags: Vec::new(),
        };
        let request = self.revision.request(engine, self.create);
        let changed = file::change(&self.path, request, &|cells| operation.draft(cells))
            .map_err(|error| hint_create(Failure::of_change(error), &self.path, self.create))?;
        Ok(ChangeAnswer::new("insert", &self.path, changed))
    }
}

/// Take a cell out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook delete a.ipynb 7
  cellwright notebook delete a.ipynb id:ab12 --rev 3f2a9c01d4")]
pub(super) struct DeleteCell {
    /// The notebook
    path: PathBuf,
    /// The cell: its index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    #[command(flatten)]
    revision: RevisionArg,
}

impl DeleteCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let operation = Operation::Delete {
            cell: self.cell.clone(),
        };
        carry_out("delete", &self.path, &operation, &self.revision, engine)
    }
}

/// Move a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook move a.ipynb 7 --to 0
  cellwright notebook move a.ipynb id:ab12 --after id:cd34")]
pub(super) struct MoveCell {
    /// The notebook
    path: PathBuf,
    /// The cell: its index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    /// The index it shall have afterwards
    #[arg(long, value_name = "INDEX", conflicts_with_all = ["after", "before"])]
    to: Option<usize>,
    #[command(flatten)]
    place: PlaceArg,
    #[command(flatten)]
    revision: RevisionArg,
}

impl MoveCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let place = self.to.map(Place::At).or_else(|| self.place.place());
        let Some(place) = place else {
            return Err(Failure::new(Kind::BadArguments, "Where to is missing")
                .hint("give --to INDEX, --after CELL or --before CELL"));
        };
        let operation = Operation::Move {
            cell: self.cell.clone(),
            place,
        };
        carry_out("move", &self.path, &operation, &self.revision, engine)
    }
}

/// Change the kind of a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
A cell that becomes code gets an execution count and outputs, both empty, and loses attachments; one
that was code loses both.

Examples:
  cellwright notebook type a.ipynb 2 markdown
  cellwright notebook type a.ipynb id:ab12 --type raw")]
pub(super) struct TypeCell {
    /// The notebook
    path: PathBuf,
    /// The cell: its index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    /// code, markdown or raw
    #[arg(value_name = "TYPE", value_parser = kind, required_unless_present = "kind_flag")]
    kind: Option<CellKind>,
    /// The same as a flag
    #[arg(long = "type", value_name = "TYPE", value_parser = kind, conflicts_with = "kind")]
    kind_flag: Option<CellKind>,
    #[command(flatten)]
    revision: RevisionArg,
}

impl TypeCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let operation = Operation::Type {
            cell: self.cell.clone(),
            kind: self.kind.or(self.kind_flag).unwrap_or_default(),
        };
        carry_out("type", &self.path, &operation, &self.revision, engine)
    }
}

/// Empty outputs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook clear a.ipynb
  cellwright notebook clear a.ipynb 3")]
pub(super) struct ClearCell {
    /// The notebook
    path: PathBuf,
    /// The cell: its index or `id:…`; all code cells without it
    #[arg(value_parser = address)]
    cell: Option<Address>,
    #[command(flatten)]
    revision: RevisionArg,
}

impl ClearCell {
    pub(super) fn carry_out(&self, engine: &Engine) -> Result<ChangeAnswer, Failure> {
        let operation = Operation::Clear {
            cell: self.cell.clone(),
        };
        carry_out("clear", &self.path, &operation, &self.revision, engine)
    }
}

fn carry_out(
    action: &'static str,
    path: &Path,
    operation: &Operation,
    revision: &RevisionArg,
    engine: &Engine,
) -> Result<ChangeAnswer, Failure> {
    let draft = |cells: &dyn Cells| operation.draft(cells);
    let changed =
        file::change(path, revision.request(engine, false), &draft).map_err(Failure::of_change)?;
    Ok(ChangeAnswer::new(action, path, changed))
}

/// Makes an edit that is given as data, not typed.
pub(crate) fn perform(
    path: &Path,
    edit: &Edit,
    revision: &RevisionArg,
    create: bool,
    engine: &Engine,
) -> Result<ChangeAnswer, Failure> {
    let operation = edit.operation().map_err(|error| {
        let failure = Failure::new(Kind::BadArguments, capitalised(&error.to_string()));
        failure.hint("nothing was written")
    })?;
    let draft = |cells: &dyn Cells| operation.draft(cells);
    let changed = file::change(path, revision.request(engine, create), &draft)
        .map_err(|error| hint_create(Failure::of_change(error), path, create))?;
    let action = match operation {
        Operation::Insert { .. } => "insert",
        Operation::Delete { .. } => "delete",
        Operation::Move { .. } => "move",
        Operation::Type { .. } => "type",
        Operation::Clear { .. } => "clear",
        Operation::Edit { .. } => "edit",
    };
    Ok(ChangeAnswer::new(action, path, changed))
}
