//! [`ChangeReport`]: the result of every operation that changes a notebook.

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_notebook::file::{self, ChangeOutcome, ChangeRequest, GuardRequest, OnMissing};
use cellwright_notebook::{CellChangeCounts, Notice, Revision};
use schemars::JsonSchema;
use serde::Serialize;

use super::file_path::FilePath;
use super::table::count;

/// The revision that an edit was made for. If the file has another one, both changes are merged or the edit is
/// rejected. An edit of a notebook in a collaboration room is rejected as well, unless it is forced.
#[derive(Clone, Debug, Default)]
pub struct BaseRevision {
    revision: Option<String>,
    force: bool,
}

impl BaseRevision {
    /// Checks that the text can be a revision; an empty shell variable is not one.
    pub fn check(text: &str) -> Result<(), String> {
        if Revision::is_valid_name(text) {
            return Ok(());
        }
        Err("a revision is 8 to 32 hexadecimal digits, as `read` shows it".to_owned())
    }

    /// A revision that was checked before.
    pub fn new(revision: Option<String>) -> Self {
        Self {
            revision,
            force: false,
        }
    }

    /// Sets whether to write although a collaboration room has the notebook.
    #[must_use]
    pub fn with_force(self, force: bool) -> Self {
        Self { force, ..self }
    }

    /// A revision from a request that nothing has checked yet.
    pub fn parse(revision: Option<String>) -> Result<Self, Failure> {
        if let Some(Err(why)) = revision.as_deref().map(Self::check) {
            let failure = Failure::new(Kind::BadArguments, format!("Invalid `revision`: {why}"));
            return Err(failure.hint("nothing was written"));
        }
        Ok(Self::new(revision))
    }

    /// Whether an edit of this revision fits a file with another one: without a revision, every file.
    pub(super) fn includes(&self, revision: Revision) -> bool {
        let name = self.revision.as_deref();
        name.is_none_or(|name| revision.matches_name(name))
    }

    /// The request to the notebook crate.
    pub(super) fn request<'r>(&'r self, engine: &'r Engine, create: bool) -> ChangeRequest<'r> {
        ChangeRequest {
            revision: self.revision.as_deref(),
            on_missing: if create {
                OnMissing::Create
            } else {
                OnMissing::Fail
            },
            baselines: engine.baselines.as_ref(),
            guard: GuardRequest {
                guard: Some(&engine.open_notebooks),
                force: self.force,
            },
            on_step: None,
        }
    }
}

/// What was done to a notebook. Every field was read back from the file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeReport {
    /// The verb or the operation.
    action: &'static str,
    /// Path of the notebook.
    path: String,
    /// Whether the file was written.
    pub changed: bool,
    /// Index of the changed cell (for `delete`, the deleted one), from 0; `null` if several cells changed.
    index: Option<usize>,
    /// Id of that cell.
    id: Option<String>,
    /// Type of that cell.
    #[schemars(extend("enum" = ["code", "markdown", "raw", null]))]
    cell_type: Option<&'static str>,
    /// Source of that cell.
    source: Option<String>,
    /// Number of cells of the notebook.
    total_cells: usize,
    /// Revision of the notebook now.
    pub revision: String,
    /// Revision before; `null` for a new notebook.
    previous_revision: Option<String>,
    /// Number of cells by what happened to them.
    counts: ChangedCellCounts,
    /// The change as a unified diff of the text view.
    pub diff: String,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// One sentence for people; empty if nothing was written.
    #[serde(skip)]
    pub headline: String,
}

/// Number of cells by what happened to them.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangedCellCounts {
    /// Unchanged cells.
    kept: usize,
    /// Changed cells.
    changed: usize,
    /// New cells.
    added: usize,
    /// Deleted cells.
    removed: usize,
    /// Moved cells.
    moved: usize,
}

impl ChangeReport {
    pub(super) fn new(action: &'static str, path: &FilePath, change: ChangeOutcome) -> Self {
        let wrote = change.before != Some(change.after);
        let subject = change.focus.or(change.removed);
        let headline = if wrote {
            let what = match &subject {
                // An edit of the text can also add or remove a cell.
                Some(cell)
                    if change.tally.changed_count() <= 1
                        && (action != "edit" || change.tally.changed == 1) =>
                {
                    describe_cell(action, cell.index, cell.kind.name())
                }
                _ => describe_cells(action, &change.tally),
            };
            let plural = if change.count == 1 { "" } else { "s" };
            format!("{what}. Notebook now has {} cell{plural}.", change.count)
        } else {
            String::new()
        };
        let notices: Vec<Notice> = change.notices;
        Self {
            action,
            path: path.to_text(),
            changed: wrote,
            index: subject.as_ref().map(|cell| cell.index),
            id: subject.as_ref().and_then(|cell| cell.id.clone()),
            cell_type: subject.as_ref().map(|cell| cell.kind.name()),
            source: subject.map(|cell| cell.source),
            total_cells: change.count,
            revision: change.after.to_string(),
            previous_revision: change.before.map(|revision| revision.to_string()),
            counts: ChangedCellCounts {
                kept: change.tally.kept,
                changed: change.tally.changed,
                added: change.tally.added,
                removed: change.tally.removed,
                moved: change.tally.moved,
            },
            diff: change.diff,
            notices: notice::describe(&notices),
            headline,
        }
    }
}

/// Adds a hint that the notebook can be created if it is missing.
pub(super) fn hint_create(failure: Failure, path: &FilePath, create: bool) -> Failure {
    if create || path.open_path().exists() || failure.kind != Kind::BadFile {
        return failure;
    }
    if !file::has_notebook_extension(path.display_path()) {
        return failure.hint("only Jupyter notebooks (.ipynb) can be created");
    }
    failure.hint(hint!["add ", flag("create"), " to create the notebook"])
}

fn describe_cell(action: &str, index: usize, kind: &str) -> String {
    match action {
        "insert" => format!("Inserted {kind} cell at position {index}"),
        "delete" => format!("Deleted cell {index} ({kind})"),
        "move" => format!("Moved {kind} cell to position {index}"),
        "type" => format!("Changed cell {index} to {kind}"),
        "clear" => format!("Cleared outputs of cell {index} ({kind})"),
        "tag" => format!("Changed the tags of cell {index} ({kind})"),
        "meta" => format!("Changed the metadata of cell {index} ({kind})"),
        _ => format!("Replaced cell {index} ({kind})"),
    }
}

fn describe_cells(action: &str, tally: &CellChangeCounts) -> String {
    if action == "meta" {
        return "Changed the metadata of the notebook".to_owned();
    }
    if action == "clear" {
        return format!("Cleared outputs of {}", count(tally.changed, "cell"));
    }
    let parts: Vec<String> = [
        (tally.changed, "changed"),
        (tally.added, "added"),
        (tally.removed, "removed"),
        (tally.moved, "moved"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if parts.is_empty() {
        return "Created an empty notebook".to_owned();
    }
    format!("Cells: {}", parts.join(", "))
}
