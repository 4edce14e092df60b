//! `notebook outline`: the cells, one line each.

use std::path::{Path, PathBuf};

use cellwright_notebook::outline::{self, Entry};
use cellwright_notebook::{Cells, Notebook, file};
use cellwright_run::{Freshness, Listing};
use clap::Args;
use serde::Serialize;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::freshness;
use crate::notice::{self, Told};
use crate::screen::Screen;

/// Arguments of `notebook outline`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright notebook outline a.ipynb
  cellwright notebook outline a.ipynb --json | jq '.cells[] | select(.outputs != [])'")]
pub(super) struct OutlineArgs {
    /// The notebook
    path: PathBuf,
}

/// A notebook at a glance.
#[derive(Debug, Serialize)]
pub(crate) struct OutlineAnswer {
    path: String,
    revision: String,
    nbformat: String,
    total_cells: usize,
    /// The session that says which cells are fresh.
    session: Option<String>,
    cells: Vec<Cell>,
    notices: Vec<Told>,
}

#[derive(Debug, Serialize)]
struct Cell {
    index: usize,
    id: Option<String>,
    cell_type: &'static str,
    heading: Option<usize>,
    first_line: String,
    lines: usize,
    execution_count: Option<u64>,
    /// Whether it is as it ran, if it ran on a session that lives.
    freshness: Option<Freshness>,
    outputs: Vec<Output>,
}

#[derive(Debug, Serialize)]
struct Output {
    output_type: String,
    what: Vec<String>,
    bytes: usize,
}

/// Lists the cells.
pub(super) fn outline(args: &OutlineArgs, engine: &Engine) -> Result<OutlineAnswer, Failure> {
    of(&args.path, &args.path, engine)
}

/// The cells of a notebook, and which of them are as they ran. `name` is the path that it runs by.
pub(crate) fn of(path: &Path, name: &Path, engine: &Engine) -> Result<OutlineAnswer, Failure> {
    let notebook = file::load(path)?;
    file::remember(&notebook, engine.baselines.as_ref());
    let entries = outline::outline(&notebook);
    let mut answer = OutlineAnswer::new(path, &notebook, entries);
    // Looking at a notebook needs no host, and does not fail with it.
    if let Ok(Some(known)) = freshness::known(&engine.kernels, name, None) {
        let states = known.states(&Listing::of_notebook(&notebook));
        for (cell, state) in answer.cells.iter_mut().zip(states) {
            cell.freshness = state;
        }
        answer.session = Some(known.session);
    }
    Ok(answer)
}

impl OutlineAnswer {
    pub(crate) fn new(path: &Path, notebook: &Notebook, entries: Vec<Entry>) -> Self {
        Self {
            path: path.display().to_string(),
            revision: notebook.revision().to_string(),
            nbformat: format!("4.{}", notebook.minor()),
            total_cells: notebook.count(),
            session: None,
            cells: entries.into_iter().map(Cell::from).collect(),
            notices: notice::tell(&notebook.irregularities()),
        }
    }

    pub(crate) fn show(&self, screen: &Screen) -> Result<(), Failure> {
        if screen.json {
            return screen.document(self);
        }
        screen.notices(&self.notices);
        screen.data(&self.table())?;
        if let Some(session) = &self.session {
            screen.remark(&format!("session: {session}"));
        }
        screen.remark(&format!("revision: {}", self.revision));
        Ok(())
    }

    /// Columns: index, id, kind, count, freshness, first line, outputs.
    pub(crate) fn table(&self) -> String {
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
                        .map_or_else(String::new, |state| freshness::word(state).to_owned()),
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

impl Cell {
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
            let outputs: Vec<String> = self.outputs.iter().map(Output::words).collect();
            title.push_str(&format!("  → {}", outputs.join(", ")));
        }
        title
    }
}

impl Output {
    fn words(&self) -> String {
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

impl From<Entry> for Cell {
    fn from(entry: Entry) -> Self {
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
                .map(|output| Output {
                    output_type: output.kind,
                    what: output.what,
                    bytes: output.bytes,
                })
                .collect(),
        }
    }
}
