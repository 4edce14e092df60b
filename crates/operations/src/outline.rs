//! Lists the cells of a notebook, one line each.

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_execution::{Freshness, Listing};
use cellwright_host::kernel_host::KernelHost;
use cellwright_notebook::outline::{self, OutlineEntry};
use cellwright_notebook::{Cells, Notebook, Notice, file};
use schemars::JsonSchema;
use serde::Serialize;

use crate::file_path::FilePath;
use crate::freshness;

/// The cells of a notebook, one entry each.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutlineReport {
    /// Path of the notebook.
    path: String,
    /// Revision of the notebook.
    pub revision: String,
    /// Format of the notebook, such as `4.5`.
    nbformat: String,
    /// Number of cells.
    pub total_cells: usize,
    /// The session whose history decides which cells are fresh.
    pub session: Option<String>,
    /// The cells.
    cells: Vec<OutlineCell>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OutlineCell {
    /// Index in the notebook, from 0.
    index: usize,
    /// Cell id.
    id: Option<String>,
    /// Cell type.
    #[schemars(extend("enum" = ["code", "markdown", "raw"]))]
    cell_type: &'static str,
    /// Level of the Markdown heading that the cell starts with.
    heading: Option<usize>,
    /// First line of the source.
    first_line: String,
    /// Number of lines of the source.
    lines: usize,
    /// Stored execution count.
    execution_count: Option<u64>,
    /// Whether the cell changed since it ran; `null` unless it ran on a live session.
    freshness: Option<Freshness>,
    /// The stored outputs.
    outputs: Vec<OutlineOutput>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OutlineOutput {
    /// Type of the output.
    output_type: String,
    /// Its streams or MIME types.
    what: Vec<String>,
    /// Size in bytes.
    bytes: usize,
}

/// Lists the cells of a notebook, with their freshness.
pub fn outline(
    path: &FilePath,
    engine: &Engine,
    kernels: &KernelHost,
) -> Result<OutlineReport, Failure> {
    let (notebook, notices) = file::load_with_notices(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    let entries = outline::outline(&notebook);
    let mut report = OutlineReport::new(path, &notebook, entries, &notices);
    // An outline needs no host, and does not fail if the host fails.
    if let Ok(Some(known)) = freshness::session_history(kernels, path.display_path(), None) {
        let states = known.states(&Listing::from_notebook(&notebook));
        for (cell, state) in report.cells.iter_mut().zip(states) {
            cell.freshness = state;
        }
        report.session = Some(known.session);
    }
    Ok(report)
}

impl OutlineReport {
    pub fn new(
        path: &FilePath,
        notebook: &Notebook,
        entries: Vec<OutlineEntry>,
        notices: &[Notice],
    ) -> Self {
        Self {
            path: path.to_text(),
            revision: notebook.revision().to_string(),
            nbformat: format!("4.{}", notebook.minor()),
            total_cells: notebook.count(),
            session: None,
            cells: entries.into_iter().map(OutlineCell::from).collect(),
            notices: notice::describe(notices),
        }
    }

    /// Columns: index, id, kind, count, freshness, first line, outputs.
    pub fn table(&self) -> String {
        let rows: Vec<[String; 5]> = self
            .cells
            .iter()
            .map(|cell| {
                let count = match (cell.cell_type, cell.execution_count) {
                    ("code", Some(count)) => format!("[{count}]"),
                    ("code", None) => "[ ]".to_owned(),
                    _ => String::new(),
                };
                [
                    cell.index.to_string(),
                    short_id(cell.id.as_deref().unwrap_or_default()),
                    cell.cell_type.to_owned(),
                    count,
                    cell.freshness
                        .map_or_else(String::new, |state| freshness::label(state).to_owned()),
                ]
            })
            .collect();
        let mut widths = [0; 5];
        for row in &rows {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        let mut out = String::new();
        for (cell, row) in self.cells.iter().zip(&rows) {
            let mut line = format!("{:>1$}", row[0], widths[0]);
            for (text, width) in row[1..].iter().zip(&widths[1..]) {
                if *width > 0 {
                    line.push_str(&format!("  {text:<width$}"));
                }
            }
            line.push_str("  ");
            line.push_str(&cell.title());
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Enough of an id to name the cell by, in one line.
fn short_id(id: &str) -> String {
    const WIDTH: usize = 12;
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = id.chars().take(WIDTH).map(visible).collect();
    if id.chars().count() > WIDTH {
        short.push('…');
    }
    short
}

/// First lines longer than this are cut.
const TITLE_WIDTH: usize = 60;

impl OutlineCell {
    fn title(&self) -> String {
        let mut title: String = self.first_line.chars().take(TITLE_WIDTH).collect();
        if title.len() < self.first_line.len() {
            title.push('…');
        }
        if self.lines > 1 {
            let more = self.lines - 1;
            let plural = if more == 1 { "" } else { "s" };
            title.push_str(&format!("  (+{more} line{plural})"));
        }
        if !self.outputs.is_empty() {
            let outputs: Vec<String> = self.outputs.iter().map(OutlineOutput::describe).collect();
            title.push_str(&format!("  → {}", outputs.join(", ")));
        }
        title
    }
}

impl OutlineOutput {
    fn describe(&self) -> String {
        let size = if self.bytes < 1024 {
            format!("{} B", self.bytes)
        } else if self.bytes < 1024 * 1024 {
            format!("{} KiB", self.bytes / 1024)
        } else {
            format!("{} MiB", self.bytes / (1024 * 1024))
        };
        format!("{} {size}", self.what.join("+"))
    }
}

impl From<OutlineEntry> for OutlineCell {
    fn from(entry: OutlineEntry) -> Self {
        Self {
            index: entry.index,
            id: entry.id,
            cell_type: entry.kind.name(),
            heading: entry.heading,
            first_line: entry.first_line,
            lines: entry.lines,
            execution_count: entry.execution_count,
            freshness: None,
            outputs: entry
                .outputs
                .into_iter()
                .map(|output| OutlineOutput {
                    output_type: output.kind,
                    what: output.labels,
                    bytes: output.bytes,
                })
                .collect(),
        }
    }
}
