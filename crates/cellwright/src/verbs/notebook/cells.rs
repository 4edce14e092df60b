//! Arguments of the operations on one cell.

use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind, flag_value, hint};
use cellwright_engine::engine::Engine;
use cellwright_notebook::CellKind;
use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_operations::cells::{CellRequest, change_cell};
use cellwright_operations::change::BaseRevision;
use cellwright_operations::editable::cell_text;
use clap::Args;

use crate::console::Console;
use crate::verbs::change::show_change;
use crate::verbs::editor;
use crate::verbs::notebook_input::reject_stdin;
use crate::verbs::text_source;
use crate::verbs::write::RevisionArg;

/// Parses `3` or `id:ab12`.
pub(super) fn address(text: &str) -> Result<Address, String> {
    Address::parse(text)
        .ok_or_else(|| "a cell is named by its index, as in `3`, or its id, as in `id:ab12`".into())
}

/// Parses a cell type.
fn kind(text: &str) -> Result<CellKind, String> {
    CellKind::from_name(text).ok_or_else(|| "one of code, markdown, raw".into())
}

/// The source of a cell.
#[derive(Debug, Args)]
pub(super) struct SourceArg {
    /// Source of the cell
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "source_file")]
    source: Option<String>,
    /// Read the source from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE")]
    source_file: Option<String>,
}

impl SourceArg {
    fn is_missing(&self) -> bool {
        self.source.is_none() && self.source_file.is_none()
    }

    fn read(&self, action: &str) -> Result<String, Failure> {
        match (&self.source, &self.source_file) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(file)) => text_source::read(file),
            (None, None) => Err(Failure::new(
                Kind::BadArguments,
                format!("Content is required for {action} action"),
            )
            .hint(hint![
                "give it with ",
                flag_value("source", "TEXT"),
                ", or with ",
                flag_value("source-file", "FILE"),
                " (`-` for stdin)",
            ])),
        }
    }
}

/// A position relative to another cell.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct PositionArg {
    /// Place it after this cell
    #[arg(long, value_name = "CELL", value_parser = address)]
    after: Option<Address>,
    /// Place it before this cell
    #[arg(long, value_name = "CELL", value_parser = address)]
    before: Option<Address>,
}

impl PositionArg {
    fn position(&self) -> Option<CellPosition> {
        let after = self.after.clone().map(CellPosition::After);
        after.or_else(|| self.before.clone().map(CellPosition::Before))
    }
}

/// Replace the source of a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a source, a terminal opens the cell in the editor that VISUAL or EDITOR names. If the notebook changes \
meanwhile, both changes are merged, or nothing is written and the text is kept.

Examples:
  cellwright notebook edit a.ipynb 3
  cellwright notebook edit a.ipynb 3 --source 'x = 1'
  cellwright notebook edit a.ipynb id:ab12 --source-file cell.py")]
pub(super) struct EditCell {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    #[command(flatten)]
    source: SourceArg,
    #[command(flatten)]
    revision: RevisionArg,
}

impl EditCell {
    /// Replaces the source, or opens it in an editor if there is none.
    pub(super) fn change(&self, engine: &Engine, console: &Console) -> Result<(), Failure> {
        if self.source.is_missing() && editor::is_available(console) {
            return self.change_in_editor(engine, console);
        }
        let request = self.request(self.source.read("edit")?, self.revision.base());
        change(&request, engine, console)
    }

    fn change_in_editor(&self, engine: &Engine, console: &Console) -> Result<(), Failure> {
        reject_stdin(&self.path)?;
        let path = self.path.as_path().into();
        let shown = cell_text(&path, &self.cell, &self.revision.base(), engine)?;
        let Some(edited) = editor::edit(&shown)? else {
            console.note("the text did not change; nothing was written");
            return Ok(());
        };
        let request = self.request(edited.text.clone(), shown.revision);
        match change_cell(&request, engine) {
            Ok(report) => show_change(&report, console),
            Err(failure) => Err(edited.keep(failure)),
        }
    }

    fn request(&self, source: String, revision: BaseRevision) -> CellRequest {
        let operation = Operation::Edit {
            cell: self.cell.clone(),
            source,
            tags: None,
        };
        CellRequest {
            path: self.path.clone().into(),
            operation,
            revision,
            create: false,
        }
    }
}

/// Insert a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook insert a.ipynb --source 'print(x)'
  cellwright notebook insert a.ipynb 0 --type markdown --source '# Title'
  cellwright notebook insert new.ipynb --create --source-file first.py")]
pub(super) struct InsertCell {
    /// Notebook
    path: PathBuf,
    /// Index of the new cell
    #[arg(value_name = "INDEX", conflicts_with_all = ["after", "before"])]
    cell: Option<usize>,
    #[command(flatten)]
    position: PositionArg,
    /// Cell type: code, markdown or raw
    #[arg(long = "type", value_name = "TYPE", default_value = "code", value_parser = kind)]
    kind: CellKind,
    #[command(flatten)]
    source: SourceArg,
    /// Create the notebook if it does not exist
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    revision: RevisionArg,
}

impl InsertCell {
    pub(super) fn request(&self) -> Result<CellRequest, Failure> {
        let position = self
            .cell
            .map(CellPosition::At)
            .or_else(|| self.position.position());
        let operation = Operation::Insert {
            position: position.unwrap_or(CellPosition::End),
            kind: self.kind,
            source: self.source.read("insert")?,
            tags: Vec::new(),
        };
        Ok(CellRequest {
            path: self.path.clone().into(),
            operation,
            revision: self.revision.base(),
            create: self.create,
        })
    }
}

/// Delete a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook delete a.ipynb 7
  cellwright notebook delete a.ipynb id:ab12 --rev 3f2a9c01d4")]
pub(super) struct DeleteCell {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    #[command(flatten)]
    revision: RevisionArg,
}

impl DeleteCell {
    pub(super) fn request(&self) -> CellRequest {
        let operation = Operation::Delete {
            cell: self.cell.clone(),
        };
        CellRequest {
            path: self.path.clone().into(),
            operation,
            revision: self.revision.base(),
            create: false,
        }
    }
}

/// Move a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook move a.ipynb 7 --to 0
  cellwright notebook move a.ipynb id:ab12 --after id:cd34")]
pub(super) struct MoveCell {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    /// Index of the cell after the move
    #[arg(long, value_name = "INDEX", conflicts_with_all = ["after", "before"])]
    to: Option<usize>,
    #[command(flatten)]
    position: PositionArg,
    #[command(flatten)]
    revision: RevisionArg,
}

impl MoveCell {
    pub(super) fn request(&self) -> Result<CellRequest, Failure> {
        let position = self
            .to
            .map(CellPosition::At)
            .or_else(|| self.position.position());
        let Some(position) = position else {
            return Err(
                Failure::new(Kind::BadArguments, "The target position is missing").hint(hint![
                    "give ",
                    flag_value("to", "INDEX"),
                    ", ",
                    flag_value("after", "CELL"),
                    " or ",
                    flag_value("before", "CELL"),
                ]),
            );
        };
        let operation = Operation::Move {
            cell: self.cell.clone(),
            position,
        };
        Ok(CellRequest {
            path: self.path.clone().into(),
            operation,
            revision: self.revision.base(),
            create: false,
        })
    }
}

/// Change the type of a cell.
#[derive(Debug, Args)]
#[command(after_help = "\
A cell that becomes code gets an empty execution count and empty outputs and loses its attachments. A cell that \
was code loses its execution count and outputs.

Examples:
  cellwright notebook type a.ipynb 2 markdown
  cellwright notebook type a.ipynb id:ab12 --type raw")]
pub(super) struct TypeCell {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…`
    #[arg(value_parser = address)]
    cell: Address,
    /// Cell type: code, markdown or raw
    #[arg(value_name = "TYPE", value_parser = kind, required_unless_present = "kind_flag")]
    kind: Option<CellKind>,
    /// Cell type, as a flag
    #[arg(long = "type", value_name = "TYPE", value_parser = kind, conflicts_with = "kind")]
    kind_flag: Option<CellKind>,
    #[command(flatten)]
    revision: RevisionArg,
}

impl TypeCell {
    pub(super) fn request(&self) -> CellRequest {
        let operation = Operation::Type {
            cell: self.cell.clone(),
            kind: self.kind.or(self.kind_flag).unwrap_or_default(),
        };
        CellRequest {
            path: self.path.clone().into(),
            operation,
            revision: self.revision.base(),
            create: false,
        }
    }
}

/// Clear outputs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook clear a.ipynb
  cellwright notebook clear a.ipynb 3")]
pub(super) struct ClearCell {
    /// Notebook
    path: PathBuf,
    /// Cell, as an index or `id:…` [default: all code cells]
    #[arg(value_parser = address)]
    cell: Option<Address>,
    #[command(flatten)]
    revision: RevisionArg,
}

impl ClearCell {
    pub(super) fn request(&self) -> CellRequest {
        let operation = Operation::Clear {
            cell: self.cell.clone(),
        };
        CellRequest {
            path: self.path.clone().into(),
            operation,
            revision: self.revision.base(),
            create: false,
        }
    }
}

/// Carries out the request and prints its report.
pub(super) fn change(
    request: &CellRequest,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    reject_stdin(request.path.display_path())?;
    show_change(&change_cell(request, engine)?, console)
}
