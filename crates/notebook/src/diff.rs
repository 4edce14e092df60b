//! Unified diffs of the text view.

use std::collections::HashMap;
use std::path::Path;

use similar::{Algorithm, ChangeTag, TextDiff};

use crate::document::Cells;
use crate::plan::{Plan, Slot};
use crate::text::{MarkerStyle, append_cell};

const CONTEXT_LINES: usize = 3;

/// The diff between `cells` and the result of `plan`. Markers carry no numbers here, so that an
/// inserted cell does not change every later marker. `new_ids` are the ids of new cells;
/// `metadata` is the part about changed metadata.
pub(crate) fn unified_diff(
    cells: &dyn Cells,
    plan: &Plan,
    new_ids: &HashMap<usize, String>,
    metadata: &str,
    path: &Path,
) -> String {
    let window = ChangedWindow::new(cells, plan);
    let old = window.old_text(cells);
    let new = window.new_text(cells, plan, new_ids);
    let hunks = text_hunks(&old, &new, window.lines_before);
    let mut out = String::new();
    if !hunks.is_empty() || !metadata.is_empty() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        out.push_str(&format!("--- a/{name}\n+++ b/{name}\n"));
    }
    for hunk in hunks {
        out.push_str(&format!("{}\n{}", hunk.header, hunk.lines));
    }
    out.push_str(metadata);
    out
}

/// A group of changed lines with context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its line numbers, as `@@ -1,2 +1,3 @@`.
    pub header: String,
    /// Its lines, each prefixed with a space, `-` or `+`.
    pub lines: String,
}

/// The hunks between `old` and `new`. Line numbers start after `before` lines.
pub(crate) fn text_hunks(old: &str, new: &str, before: usize) -> Vec<Hunk> {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .diff_lines(old, new);
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
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
        let header = format!(
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
        hunks.push(Hunk { header, lines });
    }
    hunks
}

/// The changed cells, with one neighbour on each side for context.
struct ChangedWindow {
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
    /// Number of lines in the view before the window; the same in old and new.
    lines_before: usize,
}

impl ChangedWindow {
    fn new(cells: &dyn Cells, plan: &Plan) -> Self {
        let (old_count, new_count) = (cells.count(), plan.slots.len());
        let kept = |slot: &Slot, cell: usize| slot.origin == Some(cell) && slot.is_kept(cells);
        let head = (0..old_count.min(new_count))
            .take_while(|&n| kept(&plan.slots[n], n))
            .count();
        let tail = (1..=old_count.min(new_count) - head)
            .take_while(|&n| kept(&plan.slots[new_count - n], old_count - n))
            .count();
        let start = head.saturating_sub(1);
        let after = tail.saturating_sub(1);
        Self {
            old: start..old_count - after,
            new: start..new_count - after,
            lines_before: (0..start).map(|cell| line_count(&cells.source(cell))).sum(),
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
                MarkerStyle::Stable,
            );
        }
        with_final_newline(text)
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
                MarkerStyle::Stable,
            );
        }
        with_final_newline(text)
    }
}

/// The view as printed.
fn with_final_newline(mut text: String) -> String {
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Number of lines that a cell takes in the view.
fn line_count(source: &str) -> usize {
    if source.is_empty() {
        1
    } else {
        2 + source.matches('\n').count()
    }
}
