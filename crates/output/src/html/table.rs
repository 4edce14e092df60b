//! Markdown tables: one header row, then body rows.
//!
//! Several header rows are joined with `/`; a header that spans columns is repeated in each. A body cell that
//! spans rows or columns fills the first one and leaves the others empty, as in pandas.

use std::rc::Rc;

use htmd::Node;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::NodeData;

/// Maximum number of columns; a table with more is hostile.
const COLUMNS_MAX: usize = 500;

/// Maximum length of a header that is repeated in each column it spans, in bytes.
const HEADER_LIMIT: usize = 80;

/// Maximum number of cells, including those added by spans.
const CELLS_MAX: usize = 50_000;

pub(super) fn write(handlers: &dyn Handlers, table: &Rc<Node>) -> Option<HandlerResult> {
    let mut grid = TableGrid::default();
    collect_rows(handlers, table, &mut grid, false);
    let content = grid.into_markdown();
    (!content.is_empty()).then_some(HandlerResult {
        content,
        markdown_translated: true,
    })
}

#[derive(Default)]
struct TableGrid {
    captions: Vec<String>,
    rows: Vec<TableRow>,
    /// For each column, the number of following rows that a cell above spans.
    rows_spanned: Vec<usize>,
    cells: usize,
}

#[derive(Default)]
struct TableRow {
    cells: Vec<String>,
    /// Whether all cells are `<th>`.
    all_headers: bool,
    /// Whether the row is in `<thead>`.
    in_thead: bool,
}

/// Collects the rows of a table, but not of tables nested in its cells.
fn collect_rows(handlers: &dyn Handlers, node: &Rc<Node>, grid: &mut TableGrid, head: bool) {
    for child in node.children.borrow().iter() {
        match tag(child) {
            Some("tr") => grid.add_row(handlers, child, head),
            Some("thead") => collect_rows(handlers, child, grid, true),
            Some("caption") => grid.captions.push(cell_text(handlers, child)),
            Some("tbody" | "tfoot") => collect_rows(handlers, child, grid, false),
            _ => {}
        }
    }
}

impl TableGrid {
    fn add_row(&mut self, handlers: &dyn Handlers, node: &Rc<Node>, head: bool) {
        if self.cells > CELLS_MAX {
            return;
        }
        let mut row = TableRow {
            all_headers: true,
            in_thead: head,
            ..TableRow::default()
        };
        let mut spanned = std::mem::take(&mut self.rows_spanned);
        for cell in node.children.borrow().iter() {
            let Some(name @ ("td" | "th")) = tag(cell) else {
                continue;
            };
            while let Some(rows) = spanned.get_mut(row.cells.len()).filter(|rows| **rows > 0) {
                *rows -= 1;
                row.cells.push(String::new());
            }
            let Some(columns_left) = COLUMNS_MAX.checked_sub(row.cells.len() + 1) else {
                break;
            };
            row.all_headers &= name == "th";
            let columns = span(cell, "colspan").min(columns_left + 1);
            let rows = span(cell, "rowspan");
            let text = cell_text(handlers, cell);
            let start = row.cells.len();
            row.cells.push(text.clone());
            // A short header is repeated in each column; long headers and values are not.
            let repeated = if head && text.len() <= HEADER_LIMIT {
                text
            } else {
                String::new()
            };
            row.cells.resize(start + columns, repeated);
            if rows > 1 {
                spanned.resize(spanned.len().max(start + columns), 0);
                spanned[start..start + columns].fill(rows - 1);
            }
        }
        for rows in spanned.iter_mut().skip(row.cells.len()) {
            *rows = rows.saturating_sub(1);
        }
        self.rows_spanned = spanned;
        self.cells += row.cells.len();
        row.all_headers &= !row.cells.is_empty();
        self.rows.push(row);
    }

    fn into_markdown(mut self) -> String {
        let in_head = self.rows.iter().take_while(|row| row.in_thead).count();
        // Without `<thead>`, a first row of `<th>` cells is the header.
        let header_rows = match in_head {
            0 => usize::from(self.rows.first().is_some_and(|row| row.all_headers)),
            count => count,
        };
        let body = self.rows.split_off(header_rows);
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
        let header: Vec<String> = (0..columns)
            .map(|at| column_header(&self.rows, at))
            .collect();
        push_row(&mut out, &header);
        push_row(&mut out, &vec!["---".to_owned(); columns]);
        for row in &body {
            push_row(&mut out, &row.cells);
        }
        if self.cells > CELLS_MAX {
            push_row(&mut out, &["…".to_owned()]);
        }
        out.push('\n');
        out
    }
}

/// Returns the header of a column: the cells of all header rows, joined.
fn column_header(rows: &[TableRow], column: usize) -> String {
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

/// Returns the Markdown of a cell on one line, with escaped `|`.
fn cell_text(handlers: &dyn Handlers, node: &Rc<Node>) -> String {
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
