//! Tables as Markdown knows them: one header row, then rows.
//!
//! Several header rows become one, joined by `/`; what a header spans it heads. Cells that span
//! rows or columns of the body stand in the first, the others are empty, as pandas shows them.

use std::rc::Rc;

use htmd::Node;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::NodeData;

/// Columns of a table; more is not a table but a trap.
const MOST_COLUMNS: usize = 500;

/// Bytes of a header that is said again for every column it spans.
const LONGEST_HEADER: usize = 80;

/// Cells of a table, those that spans make included.
const MOST_CELLS: usize = 50_000;

pub(super) fn write(handlers: &dyn Handlers, table: &Rc<Node>) -> Option<HandlerResult> {
    let mut grid = Grid::default();
    collect(handlers, table, &mut grid, false);
    let content = grid.into_markdown();
    (!content.is_empty()).then_some(HandlerResult {
        content,
        markdown_translated: true,
    })
}

#[derive(Default)]
struct Grid {
    captions: Vec<String>,
    rows: Vec<Row>,
    /// For each column, how many rows below are still taken by a cell above.
    taken: Vec<usize>,
    cells: usize,
}

#[derive(Default)]
struct Row {
    cells: Vec<String>,
    /// All cells are headers.
    header: bool,
    /// It stands in `<thead>`.
    head: bool,
}

/// Finds the rows of a table, and nothing in the tables within its cells.
fn collect(handlers: &dyn Handlers, node: &Rc<Node>, grid: &mut Grid, head: bool) {
    for child in node.children.borrow().iter() {
        match tag(child) {
            Some("tr") => grid.add_row(handlers, child, head),
            Some("thead") => collect(handlers, child, grid, true),
            Some("caption") => grid.captions.push(inline(handlers, child)),
            Some("tbody" | "tfoot") => collect(handlers, child, grid, false),
            _ => {}
        }
    }
}

impl Grid {
    fn add_row(&mut self, handlers: &dyn Handlers, node: &Rc<Node>, head: bool) {
        if self.cells > MOST_CELLS {
            return;
        }
        let mut row = Row {
            header: true,
            head,
            ..Row::default()
        };
        let mut taken = std::mem::take(&mut self.taken);
        for cell in node.children.borrow().iter() {
            let Some(name @ ("td" | "th")) = tag(cell) else {
                continue;
            };
            while let Some(rows) = taken.get_mut(row.cells.len()).filter(|rows| **rows > 0) {
                *rows -= 1;
                row.cells.push(String::new());
            }
            let Some(spare) = MOST_COLUMNS.checked_sub(row.cells.len() + 1) else {
                break;
            };
            row.header &= name == "th";
            let columns = span(cell, "colspan").min(spare + 1);
            let rows = span(cell, "rowspan");
            let text = inline(handlers, cell);
            let start = row.cells.len();
            row.cells.push(text.clone());
            // A header is said again over each column, a value is not; nor is a header that is none.
            let again = if head && text.len() <= LONGEST_HEADER {
                text
            } else {
                String::new()
            };
            row.cells.resize(start + columns, again);
            if rows > 1 {
                taken.resize(taken.len().max(start + columns), 0);
                taken[start..start + columns].fill(rows - 1);
            }
        }
        for rows in taken.iter_mut().skip(row.cells.len()) {
            *rows = rows.saturating_sub(1);
        }
        self.taken = taken;
        self.cells += row.cells.len();
        row.header &= !row.cells.is_empty();
        self.rows.push(row);
    }

    fn into_markdown(mut self) -> String {
        let in_head = self.rows.iter().take_while(|row| row.head).count();
        // Without `<thead>` a first row of headers only is one.
        let heads = match in_head {
            0 => usize::from(self.rows.first().is_some_and(|row| row.header)),
            count => count,
        };
        let body = self.rows.split_off(heads);
        let columns = self
            .rows
            .iter()
            .chain(&body)
            .map(|row| row.cells.len())
            .max();
        let columns = columns.unwrap_or_default();
        if columns == 0 {
            return String::new();
        }
        let mut out = String::from("\n\n");
        for caption in self.captions {
            out.push_str(&caption);
            out.push_str("\n\n");
        }
        let header: Vec<String> = (0..columns).map(|at| joined(&self.rows, at)).collect();
        push_row(&mut out, &header);
        push_row(&mut out, &vec!["---".to_owned(); columns]);
        for row in &body {
            push_row(&mut out, &row.cells);
        }
        if self.cells > MOST_CELLS {
            push_row(&mut out, &["…".to_owned()]);
        }
        out.push('\n');
        out
    }
}

/// The header of a column: what the rows say, one after the other.
fn joined(rows: &[Row], column: usize) -> String {
    let mut header = String::new();
    for cell in rows.iter().filter_map(|row| row.cells.get(column)) {
        if !cell.is_empty() {
            if !header.is_empty() {
                header.push_str(" / ");
            }
            header.push_str(cell);
        }
    }
    header
}

fn push_row(out: &mut String, cells: &[String]) {
    out.push('|');
    for cell in cells {
        out.push(' ');
        out.push_str(cell);
        out.push_str(" |");
    }
    out.push('\n');
}

/// The Markdown of a cell on one line, with its bars escaped.
fn inline(handlers: &dyn Handlers, node: &Rc<Node>) -> String {
    let content = handlers.walk_children(node).content;
    let mut line = String::with_capacity(content.len());
    for word in content.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.replace("&#124;", "|").replace('|', "\\|")
}

fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

fn span(node: &Node, attribute: &str) -> usize {
    let NodeData::Element { attrs, .. } = &node.data else {
        return 1;
    };
    attrs
        .borrow()
        .iter()
        .find(|attr| &*attr.name.local == attribute)
        .and_then(|attr| attr.value.trim().parse().ok())
        .filter(|&span| span > 0)
        .unwrap_or(1)
}
