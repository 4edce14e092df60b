//! What the verbs that change a notebook answer.

use std::path::Path;

use cellwright_notebook::file::Changed;
use cellwright_notebook::{Notice, Tally};
use serde::Serialize;

use crate::failure::Failure;
use crate::notice::{self, Told};
use crate::screen::Screen;

/// What was done to a notebook. Every field was read back from the file.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeAnswer {
    action: &'static str,
    path: String,
    /// Whether the file was written.
    changed: bool,
    /// The cell it is about (for `delete`, the one that went); absent when it is about several.
    cell_index: Option<usize>,
    id: Option<String>,
    cell_type: Option<&'static str>,
    source: Option<String>,
    total_cells: usize,
    pub(crate) revision: String,
    previous_revision: Option<String>,
    cells: Counts,
    pub(crate) diff: String,
    pub(crate) notices: Vec<Told>,
    #[serde(skip)]
    pub(crate) headline: String,
}

/// How many cells were touched, by what happened to them.
#[derive(Debug, Serialize)]
struct Counts {
    kept: usize,
    changed: usize,
    added: usize,
    removed: usize,
    moved: usize,
}

impl ChangeAnswer {
    /// Puts a change into words.
    pub(crate) fn new(action: &'static str, path: &Path, change: Changed) -> Self {
        let wrote = change.before != Some(change.after);
        let subject = change.focus.or(change.removed);
        let headline = if wrote {
            let what = match &subject {
                Some(cell) if change.tally.touched() <= 1 => {
                    one_cell(action, cell.index, cell.kind.name())
                }
                _ => several(action, &change.tally),
            };
            let plural = if change.count == 1 { "" } else { "s" };
            format!("{what}. Notebook now has {} cell{plural}.", change.count)
        } else {
            String::new()
        };
        let notices: Vec<Notice> = change.notices;
        Self {
            action,
            path: path.display().to_string(),
            changed: wrote,
            cell_index: subject.as_ref().map(|cell| cell.index),
            id: subject.as_ref().and_then(|cell| cell.id.clone()),
            cell_type: subject.as_ref().map(|cell| cell.kind.name()),
            source: subject.map(|cell| cell.source),
            total_cells: change.count,
            revision: change.after.to_string(),
            previous_revision: change.before.map(|revision| revision.to_string()),
            cells: Counts {
                kept: change.tally.kept,
                changed: change.tally.changed,
                added: change.tally.added,
                removed: change.tally.removed,
                moved: change.tally.moved,
            },
            diff: change.diff,
            notices: notice::tell(&notices),
            headline,
        }
    }

    pub(crate) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        let written = self.changed.then_some(self.revision.as_str());
        self.print(screen)
            .map_err(|failure| failure.after_change(written))
    }

    fn print(&self, screen: &Screen) -> Result<(), Failure> {
        if screen.json {
            return screen.document(self);
        }
        screen.notices(&self.notices);
        if !self.headline.is_empty() {
            screen.data(&format!("{}\n", self.headline))?;
        }
        screen.data(&format!("revision: {}\n", self.revision))?;
        screen.diff(&self.diff)
    }
}

fn one_cell(action: &str, index: usize, kind: &str) -> String {
    match action {
        "insert" => format!("Inserted {kind} cell at position {index}"),
        "delete" => format!("Deleted cell {index} ({kind})"),
        "move" => format!("Moved {kind} cell to position {index}"),
        "type" => format!("Changed cell {index} to {kind}"),
        "clear" => format!("Cleared outputs of cell {index} ({kind})"),
        _ => format!("Replaced cell {index} ({kind})"),
    }
}

fn several(action: &str, tally: &Tally) -> String {
    if action == "clear" {
        return format!("Cleared outputs of {} cells", tally.changed);
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
