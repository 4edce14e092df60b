//! An edited text over the cells it came from: which block is which cell.

use std::collections::HashMap;

use crate::document::Cells;
use crate::error::Notice;
use crate::plan::{Outputs, Plan, Slot};
use crate::text::{Block, ParsedText};

/// Turns an edited text into a plan over `cells`. Cannot fail: a block that names no cell is a new
/// one, and a cell that no block names goes.
pub fn rewrite(cells: &dyn Cells, text: ParsedText) -> (Plan, Vec<Notice>) {
    let mut matcher = Matcher::new(cells);
    let mut slots = Vec::with_capacity(text.blocks.len());
    let mut notices = Vec::new();
    for block in text.blocks {
        let origin = matcher.claim(&block, &mut notices);
        notices.extend(near_markers(cells, origin, &block));
        let old = origin.map(|origin| cells.source(origin));
        let source = match &old {
            Some(old) => with_old_line_ends(block.source, old, text.crlf),
            None => block.source,
        };
        let unchanged = old.is_some_and(|old| old == source);
        slots.push(Slot {
            origin,
            kind: block.kind,
            source: (!unchanged).then_some(source),
            outputs: Outputs::Keep,
            tags: Vec::new(),
        });
    }
    (Plan { slots }, notices)
}

/// A text that came with CRLF says nothing about the line ends inside a cell: a cell that has CRLF
/// itself keeps it. Some tools double the carriage returns that were there, others do not.
fn with_old_line_ends(new: String, old: &str, crlf: bool) -> String {
    if !crlf || new == old || !old.contains('\r') {
        return new;
    }
    let plain = |text: &str| text.replace("\r\n", "\n");
    // With the line feed that follows a source in the view, to which its last return may belong.
    if plain(&format!("{old}\n")).strip_suffix('\n') == Some(&new) {
        return old.to_owned();
    }
    if old.contains("\r\n") {
        plain(&new).replace('\n', "\r\n")
    } else {
        new
    }
}

/// Only new lines are worth a notice: what stood in the cell before was meant as text.
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

/// Gives each block the cell it names, once.
struct Matcher<'c> {
    cells: &'c dyn Cells,
    used: Vec<bool>,
    /// Made when the first block with an id comes.
    by_id: Option<HashMap<String, Vec<usize>>>,
}

impl<'c> Matcher<'c> {
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
            let named = self.with_id(id).to_vec();
            if !named.is_empty() {
                // With one id on several cells the number tells which is meant.
                let preferred = block.cell.filter(|cell| named.contains(cell));
                let free = preferred
                    .into_iter()
                    .chain(named)
                    .find(|&cell| !self.used[cell]);
                if free.is_none() {
                    let name = format!("id:{id}");
                    notices.push(Notice::UsedTwice { line, name });
                }
                return self.take(free);
            }
            // An id that is nowhere: trust the number only if that cell cannot show an id.
            let number = block.cell.filter(|&cell| {
                cell < self.used.len() && !self.used[cell] && self.cells.id(cell).is_none()
            });
            if number.is_none() {
                let name = format!("id:{id}");
                notices.push(Notice::UnknownCell { line, name });
            }
            return self.take(number);
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
            Some(false) => self.take(Some(cell)),
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

    fn take(&mut self, cell: Option<usize>) -> Option<usize> {
        if let Some(cell) = cell {
            self.used[cell] = true;
        }
        cell
    }

    fn with_id(&mut self, id: &str) -> &[usize] {
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
