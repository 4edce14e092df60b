//! Lists the cells of a notebook, one line each.

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::{self, UserNotice};
use cellwright_engine::engine::Engine;
use cellwright_execution::{Freshness, Listing, StaleCause};
use cellwright_host::kernel_host::KernelHost;
use cellwright_notebook::outline::{self, OutlineEntry};
use cellwright_notebook::{Cells, Notebook, Notice, file};
use cellwright_output::ByteSize;
use schemars::JsonSchema;
use serde::Serialize;

use crate::file_path::FilePath;
use crate::freshness;
use crate::table::Table;

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
    /// Tags of the cell.
    tags: Vec<String>,
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
    /// The freshness in tables.
    #[serde(skip)]
    freshness_text: Option<String>,
    /// The cells that make the cell stale.
    stale_causes: Vec<StaleCause>,
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
    let (notebook, notices) = file::load_any_format(path.open_path(), engine.baselines.as_ref())
        .map_err(|error| path.failure(error))?;
    let entries = outline::outline(&notebook);
    let mut report = OutlineReport::new(path, &notebook, entries, &notices);
    // An outline needs no host, and does not fail if the host fails.
    if let Ok(Some(known)) = freshness::session_history(kernels, path.display_path(), None) {
        let states = known.states(&Listing::from_notebook(&notebook));
        for (cell, state) in report.cells.iter_mut().zip(states) {
            if let Some(state) = state {
                cell.freshness_text = Some(freshness::describe(&state));
                cell.freshness = Some(state.state);
                cell.stale_causes = state.causes;
            }
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
        let (major, minor) = notebook.format();
        Self {
            path: path.to_text(),
            revision: notebook.revision().to_string(),
            nbformat: format!("{major}.{minor}"),
            total_cells: notebook.count(),
            session: None,
            cells: entries.into_iter().map(OutlineCell::from).collect(),
            notices: notice::describe(notices),
        }
    }

    /// Columns: index, id, kind, count, freshness, first line, outputs.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "INDEX",
            "ID",
            "TYPE",
            "COUNT",
            "FRESHNESS",
            "SOURCE",
            "OUTPUTS",
        ])
        .without_head()
        .right("INDEX")
        .clip("SOURCE")
        .clip("OUTPUTS")
        .ragged("SOURCE")
        .hide_first(&["TYPE", "ID"]);
        for cell in &self.cells {
            let count = match (cell.cell_type, cell.execution_count) {
                ("code", Some(count)) => format!("[{count}]"),
                ("code", None) => "[ ]".to_owned(),
                _ => String::new(),
            };
            table.push([
                cell.index.to_string(),
                short_id(cell.id.as_deref().unwrap_or_default()),
                cell.cell_type.to_owned(),
                count,
                cell.freshness_text.clone().unwrap_or_default(),
                cell.title(),
                describe_outputs(&cell.outputs),
            ]);
        }
        table
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
        if !self.tags.is_empty() {
            title.push_str(&format!("  tags:{}", self.tags.join(",")));
        }
        title
    }
}

/// The outputs of a cell, those of one kind together: `→ stdout ×3 383 B, image/png 18.6 KiB`. Nearly every display has a
/// plain text too, which says nothing about it.
fn describe_outputs(outputs: &[OutlineOutput]) -> String {
    let mut groups: Vec<(String, usize, u64)> = Vec::new();
    for output in outputs {
        let mut types: Vec<&str> = output.what.iter().map(String::as_str).collect();
        if types.len() > 1 {
            types.retain(|name| *name != "text/plain");
        }
        let name = types.join("+");
        let bytes = output.bytes as u64;
        match groups.iter_mut().find(|(group, _, _)| *group == name) {
            Some((_, count, total)) => {
                *count += 1;
                *total += bytes;
            }
            None => groups.push((name, 1, bytes)),
        }
    }
    let groups: Vec<String> = groups
        .into_iter()
        .map(|(name, count, bytes)| match count {
            1 => format!("{name} {}", ByteSize(bytes)),
            _ => format!("{name} ×{count} {}", ByteSize(bytes)),
        })
        .collect();
    if groups.is_empty() {
        return String::new();
    }
    format!("→ {}", groups.join(", "))
}

impl From<OutlineEntry> for OutlineCell {
    fn from(entry: OutlineEntry) -> Self {
        Self {
            index: entry.index,
            id: entry.id,
            cell_type: entry.kind.name(),
            tags: entry.tags,
            heading: entry.heading,
            first_line: entry.first_line,
            lines: entry.lines,
            execution_count: entry.execution_count,
            freshness: None,
            stale_causes: Vec::new(),
            freshness_text: None,
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
