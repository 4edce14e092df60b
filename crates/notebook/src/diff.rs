//! What an edit changes, as a unified diff of the text view.

use std::collections::HashMap;
use std::path::Path;

use similar::{Algorithm, ChangeTag, TextDiff};

use crate::document::Cells;
use crate::plan::{Plan, Slot};
use crate::text::{Markers, append_cell};

const CONTEXT: usize = 3;

/// The diff between `cells` and what `plan` makes of them. Markers carry no numbers here, so that a
/// cell put in does not change every marker behind it; `new_ids` are the ids of new cells.
pub(crate) fn unified(
    cells: &dyn Cells,
    plan: &Plan,
    new_ids: &HashMap<usize, String>,
    path: &Path,
) -> String {
    let window = Window::around(cells, plan);
    let old = window.old_text(cells);
    let new = window.new_text(cells, plan, new_ids);
    let hunks = hunks(&old, &new, window.lines_before);
    let mut out = String::new();
    if !hunks.is_empty() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        out.push_str(&format!("--- a/{name}\n+++ b/{name}\n"));
    }
    for hunk in hunks {
        out.push_str(&format!("{}\n{}", hunk.place, hunk.lines));
    }
    out
}

/// A stretch of lines with changes in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Where it is, as `@@ -1,2 +1,3 @@`.
    pub place: String,
    /// Its lines, each behind a blank, `-` or `+`.
    pub lines: String,
}

/// How `old` becomes `new`; `before` lines stand before either.
pub(crate) fn hunks(old: &str, new: &str, before: usize) -> Vec<Hunk> {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .diff_lines(old, new);
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let range = |start: usize, end: usize| {
            let count = end - start;
            let line = before + start + usize::from(count > 0);
            if count == 1 {
                line.to_string()
            } else {
                format!("{line},{count}")
            }
        };
        let place = format!(
            "@@ -{} +{} @@",
            range(first.old_range().start, last.old_range().end),
            range(first.new_range().start, last.new_range().end)
        );
        let mut lines = String::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            lines.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            lines.push_str(change.value());
            if !change.value().ends_with('\n') {
                lines.push('\n');
            }
        }
        hunks.push(Hunk { place, lines });
    }
    hunks
}

/// The cells that differ, with one neighbour on each side for context.
struct Window {
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
    /// Lines of the view before the window; the same in old and new.
    lines_before: usize,
}

impl Window {
    fn around(cells: &dyn Cells, plan: &Plan) -> Self {
        let (old_count, new_count) = (cells.count(), plan.slots.len());
        let kept = |slot: &Slot, cell: usize| slot.origin == Some(cell) && slot.is_kept(cells);
        let head = (0..old_count.min(new_count))
            .take_while(|&n| kept(&plan.slots[n], n))
            .count();
        let tail = (1..=old_count.min(new_count) - head)
            .take_while(|&n| kept(&plan.slots[new_count - n], old_count - n))
            .count();
        let start = head.saturating_sub(1);
        let behind = tail.saturating_sub(1);
        Self {
            old: start..old_count - behind,
            new: start..new_count - behind,
            lines_before: (0..start).map(|cell| lines_of(&cells.source(cell))).sum(),
        }
    }

    fn old_text(&self, cells: &dyn Cells) -> String {
        let mut text = String::new();
        for cell in self.old.clone() {
            let id = cells.id(cell);
            let source = cells.source(cell);
            append_cell(
                &mut text,
                0,
                cells.kind(cell),
                id.as_deref(),
                &source,
                Markers::Stable,
            );
        }
        ended(text)
    }

    fn new_text(&self, cells: &dyn Cells, plan: &Plan, new_ids: &HashMap<usize, String>) -> String {
        let mut text = String::new();
        for index in self.new.clone() {
            let slot = &plan.slots[index];
            let old_id = slot.origin.and_then(|origin| cells.id(origin));
            let id = old_id
                .as_deref()
                .or(new_ids.get(&index).map(String::as_str));
            let old_source = slot.origin.map(|origin| cells.source(origin));
            let source = slot.source.as_deref().or(old_source.as_deref());
            append_cell(
                &mut text,
                0,
                slot.kind,
                id,
                source.unwrap_or_default(),
                Markers::Stable,
            );
        }
        ended(text)
    }
}

/// The view as it is printed.
fn ended(mut text: String) -> String {
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// How many lines a cell takes in the view.
fn lines_of(source: &str) -> usize {
    if source.is_empty() {
        1
    } else {
        2 + source.matches('\n').count()
    }
}
