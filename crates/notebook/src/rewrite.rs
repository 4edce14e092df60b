//! Turns an edited text view into a plan: matches its blocks with the old cells.

use std::collections::HashMap;

use crate::document::Cells;
use crate::error::Notice;
use crate::metadata::MetadataChange;
use crate::plan::{OutputAction, Plan, Slot};
use crate::text::{Block, ParsedText, marker};

/// Turns an edited text into a plan over `cells`. Cannot fail: a block that names no cell becomes
/// a new cell, and a cell that no block names is removed.
pub fn rewrite(cells: &dyn Cells, text: ParsedText) -> (Plan, Vec<Notice>) {
    let mut matcher = BlockMatcher::new(cells);
    let mut slots = Vec::with_capacity(text.blocks.len());
    let mut notices = text.notices;
    for block in text.blocks {
        let origin = matcher.claim(&block, &mut notices);
        notices.extend(near_markers(cells, origin, &block));
        let old = origin.map(|origin| cells.source(origin));
        let source = match &old {
            Some(old) => with_old_line_ends(block.source, old, text.crlf),
            None => block.source,
        };
        let metadata = match (block.tags, origin) {
            (Some(tags), None) => tags.into_iter().map(MetadataChange::AddTag).collect(),
            (Some(tags), Some(cell)) => {
                // A marker shows only tags without white space.
                let differs = |own: Vec<String>| !marker::shown_tags(&own).eq(&tags);
                if cells.tags(cell).is_some_and(differs) {
                    let line = block.line;
                    notices.push(Notice::MarkerTagsKept { line, cell });
                }
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        let unchanged = old.is_some_and(|old| old == source);
        slots.push(Slot {
            origin,
            kind: block.kind,
            source: (!unchanged).then_some(source),
            outputs: OutputAction::Keep,
            metadata,
        });
    }
    let metadata = Vec::new();
    (Plan { slots, metadata }, notices)
}

/// The CRLF line endings of a text do not apply inside a cell: a cell with
/// CRLF keeps it. Some tools double existing carriage returns, others do not.
fn with_old_line_ends(new: String, old: &str, crlf: bool) -> String {
    if !crlf || new == old || !old.contains('\r') {
        return new;
    }
    let plain = |text: &str| text.replace("\r\n", "\n");
    // With the line feed that follows a source in the view: a last carriage return may belong to
    // it.
    if plain(&format!("{old}\n")).strip_suffix('\n') == Some(&new) {
        return old.to_owned();
    }
    if old.contains("\r\n") {
        plain(&new).replace('\n', "\r\n")
    } else {
        new
    }
}

/// Notices for lines that are almost markers. Lines that the old cell already had are text and
/// get none.
fn near_markers(cells: &dyn Cells, origin: Option<usize>, block: &Block) -> Vec<Notice> {
    if block.near_markers.is_empty() {
        return Vec::new();
    }
    let old = origin
        .map(|origin| cells.source(origin))
        .unwrap_or_default();
    block
        .near_markers
        .iter()
        .filter(|(_, text)| {
            let bare = |line: &str| line.trim_end_matches('\r').len();
            !old.split('\n')
                .any(|old| old[..bare(old)] == text[..bare(text)])
        })
        .map(|(line, text)| Notice::NearMarker {
            line: *line,
            text: text.trim().to_owned(),
        })
        .collect()
}

/// Assigns each block the cell that it names, once.
struct BlockMatcher<'c> {
    cells: &'c dyn Cells,
    used: Vec<bool>,
    /// Built for the first block with an id.
    by_id: Option<HashMap<String, Vec<usize>>>,
}

impl<'c> BlockMatcher<'c> {
    fn new(cells: &'c dyn Cells) -> Self {
        Self {
            cells,
            used: vec![false; cells.count()],
            by_id: None,
        }
    }

    fn claim(&mut self, block: &Block, notices: &mut Vec<Notice>) -> Option<usize> {
        let line = block.line;
        if let Some(id) = &block.id {
            let named = self.cells_with_id(id).to_vec();
            if !named.is_empty() {
                // If several cells share the id, the number decides.
                let preferred = block.cell.filter(|cell| named.contains(cell));
                let free = preferred
                    .into_iter()
                    .chain(named)
                    .find(|&cell| !self.used[cell]);
                if free.is_none() {
                    let name = format!("id:{id}");
                    notices.push(Notice::UsedTwice { line, name });
                }
                return self.mark_used(free);
            }
            // Unknown id: the number counts only if that cell has no id.
            let number = block.cell.filter(|&cell| {
                cell < self.used.len() && !self.used[cell] && self.cells.id(cell).is_none()
            });
            if number.is_none() {
                let name = format!("id:{id}");
                notices.push(Notice::UnknownCell { line, name });
            }
            return self.mark_used(number);
        }
        let cell = block.cell?;
        let name = || {
            if cell == usize::MAX {
                "cell:…".to_owned()
            } else {
                format!("cell:{cell}")
            }
        };
        match self.used.get(cell) {
            Some(false) => self.mark_used(Some(cell)),
            Some(true) => {
                notices.push(Notice::UsedTwice { line, name: name() });
                None
            }
            None => {
                notices.push(Notice::UnknownCell { line, name: name() });
                None
            }
        }
    }

    fn mark_used(&mut self, cell: Option<usize>) -> Option<usize> {
        if let Some(cell) = cell {
            self.used[cell] = true;
        }
        cell
    }

    fn cells_with_id(&mut self, id: &str) -> &[usize] {
        let cells = self.cells;
        let by_id = self.by_id.get_or_insert_with(|| {
            let mut map: HashMap<String, Vec<usize>> = HashMap::new();
            for index in 0..cells.count() {
                if let Some(id) = cells.id(index) {
                    map.entry(id.into_owned()).or_default().push(index);
                }
            }
            map
        });
        by_id.get(id).map_or(&[], Vec::as_slice)
    }
}
