//! Replaces text in the text view.

use std::collections::HashMap;

use super::pattern::{MatchMode, replace_in_sources};
use super::{Draft, matches};
use crate::cell::CellKind;
use crate::document::Cells;
use crate::error::EditError;
use crate::rewrite::rewrite;
use crate::text::marker::{self, ViewLine};
use crate::text::{MarkerStyle, append_cell, parse, render};

/// How many matches a replacement may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceScope {
    /// Exactly one; otherwise it is an error.
    One,
    /// All matches, at least one.
    All,
}

/// A text to replace.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'r> {
    /// The text, word or regular expression.
    pub old: &'r str,
    /// The new text; for a regular expression with groups: `$1`, `\1`, `${name}`.
    pub new: &'r str,
    /// How many matches change.
    pub scope: ReplaceScope,
    /// How `old` is understood.
    pub mode: MatchMode,
    /// The kinds of cells to change; empty for all.
    pub kinds: &'r [CellKind],
}

/// Replaces text. Plain text for all kinds of cells is searched in the text view, where it may
/// span markers; everything else in the sources of the cells.
pub fn replace(cells: &dyn Cells, replacement: &Replacement<'_>) -> Result<Draft, EditError> {
    let Replacement {
        old, new, scope, ..
    } = *replacement;
    if replacement.mode == MatchMode::Text && replacement.kinds.is_empty() {
        return replace_text(cells, old, new, scope);
    }
    if old.is_empty() || old == new {
        return Err(EditError::NothingToReplace);
    }
    replace_in_sources(cells, replacement)
}

/// Replaces text in the text view as printed. The markers in `old` may have indexes, ids or both.
pub fn replace_text(
    cells: &dyn Cells,
    old: &str,
    new: &str,
    scope: ReplaceScope,
) -> Result<Draft, EditError> {
    if old.is_empty() || old == new {
        return Err(EditError::NothingToReplace);
    }
    let Some((view, found)) = find(cells, old) else {
        return Err(EditError::NoMatch {
            similar: matches::find_similar(cells, old),
            has_diff_columns: has_diff_columns(cells, old),
        });
    };
    if found.len() > 1 && scope == ReplaceScope::One {
        return Err(EditError::Matches {
            count: found.len(),
            matches: matches::locate(&view, old, &found),
        });
    }
    let first_line = view[..found[0]].matches('\n').count() + 1;
    let mut edited = String::with_capacity(view.len());
    let mut done = 0;
    for at in found {
        edited.push_str(&view[done..at]);
        edited.push_str(new);
        done = at + old.len();
    }
    edited.push_str(&view[done..]);
    let draft = replace_all(cells, &edited)?;
    let focus = draft.cell_at_line(&edited, first_line);
    Ok(Draft { focus, ..draft })
}

/// Replaces the whole view with an edited one, as printed: one newline at the end is removed.
pub fn replace_all(cells: &dyn Cells, printed: &str) -> Result<Draft, EditError> {
    let crlf = first_line_is_crlf(printed);
    let text = printed
        .strip_suffix(if crlf { "\r\n" } else { "\n" })
        .unwrap_or(printed);
    let (plan, notices) = rewrite(cells, parse(text)?);
    Ok(Draft {
        plan,
        focus: None,
        removed: None,
        anchor: None,
        notices,
    })
}

fn first_line_is_crlf(text: &str) -> bool {
    text.split('\n')
        .next()
        .is_some_and(|line| line.ends_with('\r'))
}

impl Draft {
    /// Index in the plan of the cell whose block covers a line of the edited text.
    fn cell_at_line(&self, text: &str, line: usize) -> Option<usize> {
        let parsed = parse(text).ok()?;
        let last = parsed.blocks.iter().rposition(|block| block.line <= line)?;
        (last < self.plan.slots.len()).then_some(last)
    }
}

/// The first view that contains `old`, as printed, and the offsets of all matches in it.
fn find(cells: &dyn Cells, old: &str) -> Option<(String, Vec<usize>)> {
    let views: [fn(&dyn Cells) -> String; 3] = [
        |cells| render(cells, MarkerStyle::Indexes),
        render_ids,
        |cells| render(cells, MarkerStyle::Ids),
    ];
    // The other views differ only in the ids of the markers.
    let has_ids = old.contains("id:") || old.contains("tags:");
    let count = if has_ids { views.len() } else { 1 };
    views[..count].iter().find_map(|render| {
        let mut view = render(cells);
        view.push('\n');
        let found = find_in_view(&view, old);
        (!found.is_empty()).then_some((view, found))
    })
}

/// The view with the markers of diffs. A cell whose id is missing or not unique has its index
/// instead, so that every marker names its cell.
fn render_ids(cells: &dyn Cells) -> String {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for id in (0..cells.count()).filter_map(|index| cells.id(index)) {
        *uses.entry(id.into_owned()).or_default() += 1;
    }
    let mut out = String::new();
    for index in 0..cells.count() {
        let id = cells
            .id(index)
            .filter(|id| marker::is_plain_id(id) && uses.get(&**id) == Some(&1));
        let style = if id.is_some() {
            MarkerStyle::Stable
        } else {
            MarkerStyle::Indexes
        };
        let source = cells.source(index);
        let kind = cells.kind(index);
        append_cell(&mut out, index, kind, id.as_deref(), &source, style);
    }
    out
}

/// The offsets of all matches. A match inside a marker counts only if the text itself contains a
/// marker prefix.
fn find_in_view(view: &str, old: &str) -> Vec<usize> {
    let means_markers = matches::means_markers(old);
    // The line of the last match: a line with many matches is examined once.
    let (mut line, mut is_marker) = (0..0, false);
    let mut is_inside_marker = |at: usize| {
        if at > line.end || line.is_empty() {
            let start = view[line.end..at].rfind('\n');
            let start = start.map_or(line.end, |newline| line.end + newline + 1);
            let end = view[at..].find('\n').map_or(view.len(), |end| at + end);
            line = start..end;
            is_marker = matches!(marker::classify(&view[start..end]), ViewLine::Marker(_));
        }
        is_marker && at + old.len() <= line.end
    };
    view.match_indices(old)
        .map(|(at, _)| at)
        .filter(|&at| means_markers || !is_inside_marker(at))
        .collect()
}

/// Whether `old` occurs once its lines lose the first column, as in lines copied from a diff.
fn has_diff_columns(cells: &dyn Cells, old: &str) -> bool {
    let lines: Vec<&str> = old.split('\n').collect();
    let is_context_marker = |line: &str| {
        let line = line.strip_prefix(' ');
        line.is_some_and(|line| matches!(marker::classify(line), ViewLine::Marker(_)))
    };
    let is_from_diff = lines
        .iter()
        .all(|line| line.is_empty() || line.starts_with(['+', '-', ' ']))
        && lines
            .iter()
            .any(|line| line.starts_with(['+', '-']) || is_context_marker(line));
    let without_columns = |side: char| {
        let lines: Vec<&str> = lines
            .iter()
            .filter(|line| !line.starts_with(side))
            .map(|line| line.get(1..).unwrap_or_default())
            .collect();
        lines.join("\n")
    };
    is_from_diff
        && ['-', '+'].into_iter().any(|side| {
            let text = without_columns(side);
            !text.trim().is_empty() && find(cells, &text).is_some()
        })
}
