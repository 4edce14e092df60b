//! `diff`: what changed from one notebook to another, cell by cell.

use std::ffi::OsString;
use std::path::Path;

use cellwright_notebook::outputs::OutputSummary;
use cellwright_notebook::{
    CellDifference, CellKind, Comparison, Hunk, MarkerStyle, MemberDifference, Notebook,
    NotebookError, OutputDifference, Scope, append_cell, compare, file,
};
use cellwright_output::ByteSize;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::git::program::Git;
use crate::console::Console;
use crate::failure::Failure;

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Cells are matched by id, and by content where there are no ids. Each stretch of changes is named
by the marker of its cell; lines count within the cell. Layout is no difference, nor is the order
of members. Either notebook may be a revision in git, named as for `git show`.

Exit codes: 0 no difference; 1 there are differences; 2 trouble.

Examples:
  cellwright diff old.ipynb new.ipynb
  cellwright diff HEAD:analysis.ipynb analysis.ipynb --sources
  cellwright diff a.ipynb b.ipynb --outputs
  cellwright diff a.ipynb b.ipynb --json")]
pub(crate) struct DiffArgs {
    /// The old notebook
    #[arg(value_name = "A")]
    old: OsString,
    /// The new notebook
    #[arg(value_name = "B")]
    new: OsString,
    /// Compare sources only: no outputs, no execution counts, no metadata
    #[arg(long, conflicts_with = "outputs")]
    sources: bool,
    /// Show what outputs say, instead of one line for each
    #[arg(long)]
    outputs: bool,
}

/// What `diff` answers.
#[derive(Debug, Serialize)]
pub(crate) struct DiffAnswer {
    old: String,
    new: String,
    same: bool,
    counts: Continue,
    cells: Vec<Cell>,
    /// Members of the notebook itself.
    members: Vec<Member>,
    #[serde(skip)]
    text: String,
}

/// How many cells differ, by how.
#[derive(Debug, Default, Serialize)]
struct Continue {
    changed: usize,
    added: usize,
    removed: usize,
    moved: usize,
}

#[derive(Debug, Serialize)]
struct Cell {
    change: &'static str,
    old_index: Option<usize>,
    new_index: Option<usize>,
    id: Option<String>,
    cell_type: &'static str,
    old_cell_type: Option<&'static str>,
    moved: bool,
    /// Unified hunks.
    source: String,
    outputs: Vec<Output>,
    /// Unified hunks of what they say.
    output_text: String,
    execution_count: Option<[Option<u64>; 2]>,
    members: Vec<Member>,
}

#[derive(Debug, Serialize)]
struct Output {
    old: Option<Summary>,
    new: Option<Summary>,
}

#[derive(Debug, Serialize)]
struct Summary {
    output_type: String,
    what: Vec<String>,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct Member {
    name: String,
    old: Option<Value>,
    new: Option<Value>,
}

impl DiffAnswer {
    /// Shows it; says the exit code.
    pub(crate) fn show(&self, screen: &Console) -> Result<u8, Failure> {
        if screen.json {
            screen.print_json(self)?;
        } else {
            screen.print_diff(&self.text)?;
            screen.note(&self.summary());
        }
        Ok(u8::from(!self.same))
    }

    fn summary(&self) -> String {
        let parts: Vec<String> = [
            (self.counts.changed, "changed"),
            (self.counts.added, "added"),
            (self.counts.removed, "removed"),
            (self.counts.moved, "moved"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        match (self.same, parts.is_empty()) {
            (true, _) => "no difference".to_owned(),
            (false, true) => "no cell differs".to_owned(),
            (false, false) => format!("cells: {}", parts.join(", ")),
        }
    }
}

/// Compares.
pub(crate) fn diff(args: &DiffArgs) -> Result<DiffAnswer, Failure> {
    let (old, new) = (load(&args.old)?, load(&args.new)?);
    let scope = if args.sources {
        Scope::Sources
    } else {
        Scope::All
    };
    let found = compare(&old, &new, scope);
    let names = [&args.old, &args.new].map(|name| name.to_string_lossy().into_owned());
    let mut counts = Continue::default();
    for cell in &found.cells {
        match change(cell) {
            "added" => counts.added += 1,
            "removed" => counts.removed += 1,
            _ => {
                counts.changed += usize::from(has_changed(cell));
                counts.moved += usize::from(cell.moved);
            }
        }
    }
    let text = text(&found, &names, args.outputs);
    let [old, new] = names;
    Ok(DiffAnswer {
        old,
        new,
        same: found.is_same(),
        counts,
        text,
        members: found.members.iter().map(Member::of).collect(),
        cells: found.cells.iter().map(Cell::of).collect(),
    })
}

/// A notebook by its path, or by its name in git.
fn load(name: &OsString) -> Result<Notebook, Failure> {
    let path = Path::new(name);
    let revision = name.to_str().filter(|name| name.contains(':'));
    let Some(revision) = revision.filter(|_| path.symlink_metadata().is_err()) else {
        return Ok(file::load(path)?);
    };
    let bytes = Git::here().blob(revision)?;
    Notebook::parse(bytes).map_err(|error| {
        let path = path.to_owned();
        NotebookError::Format { path, error }.into()
    })
}

fn change(cell: &CellDifference) -> &'static str {
    match (cell.old, cell.new) {
        (None, _) => "added",
        (_, None) => "removed",
        _ if has_changed(cell) => "changed",
        _ => "moved",
    }
}

/// Whether more than its place is different.
fn has_changed(cell: &CellDifference) -> bool {
    cell.old_kind.is_some()
        || cell.execution_counts.is_some()
        || !cell.source.is_empty()
        || !cell.outputs.is_empty()
        || !cell.members.is_empty()
}

impl Cell {
    fn of(cell: &CellDifference) -> Self {
        Self {
            change: change(cell),
            old_index: cell.old,
            new_index: cell.new,
            id: cell.id.clone(),
            cell_type: cell.kind.name(),
            old_cell_type: cell.old_kind.map(CellKind::name),
            moved: cell.moved,
            source: unified(&cell.source),
            outputs: cell.outputs.iter().map(Output::of).collect(),
            output_text: unified(&cell.output_text),
            execution_count: cell.execution_counts,
            members: cell.members.iter().map(Member::of).collect(),
        }
    }
}

impl Output {
    fn of(output: &OutputDifference) -> Self {
        let summary = |output: &OutputSummary| Summary {
            output_type: output.kind.clone(),
            what: output.labels.clone(),
            bytes: output.bytes,
        };
        Self {
            old: output.old.as_ref().map(summary),
            new: output.new.as_ref().map(summary),
        }
    }
}

impl Member {
    fn of(member: &MemberDifference) -> Self {
        // What Python writes and JSON does not know (`NaN`) is told as text.
        let value =
            |text: &String| serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into());
        Self {
            name: member.name.clone(),
            old: member.old.as_ref().map(value),
            new: member.new.as_ref().map(value),
        }
    }
}

fn unified(hunks: &[Hunk]) -> String {
    let hunks = hunks.iter();
    let hunks = hunks.map(|hunk| format!("{}\n{}", hunk.header, hunk.lines));
    hunks.collect::<Vec<_>>().concat()
}

/// The differences for people, in the manner of a unified diff.
fn text(found: &Comparison, names: &[String; 2], outputs: bool) -> String {
    let mut out = String::new();
    if found.is_same() {
        return out;
    }
    out.push_str(&format!("--- {}\n+++ {}\n", names[0], names[1]));
    if !found.members.is_empty() {
        out.push_str("@@ notebook @@\n");
        append_members(&mut out, &found.members);
    }
    for cell in &found.cells {
        append_cell_text(&mut out, cell, outputs);
    }
    out
}

fn append_cell_text(out: &mut String, cell: &CellDifference, outputs: bool) {
    let mut marker = String::new();
    let index = cell.new.or(cell.old).unwrap_or_default();
    append_cell(
        &mut marker,
        index,
        cell.kind,
        cell.id.as_deref(),
        "",
        MarkerStyle::Ids,
    );
    match (cell.old, cell.new) {
        (Some(old), Some(_)) if cell.moved => {
            out.push_str(&format!("@@ moved @@ {marker} (was cell:{old})\n"));
        }
        (Some(_), Some(_)) => {}
        (old, _) => {
            let what = if old.is_some() { "removed" } else { "added" };
            out.push_str(&format!("@@ {what} @@ {marker}\n"));
            out.extend(cell.source.iter().map(|hunk| hunk.lines.as_str()));
            return;
        }
    }
    let mut part = |what: &str, lines: &str| out.push_str(&format!("{what} {marker}\n{lines}"));
    if let Some(old) = cell.old_kind {
        part("@@ kind @@", &format!(" {old} → {}\n", cell.kind));
    }
    for hunk in &cell.source {
        part(&hunk.header, &hunk.lines);
    }
    if outputs && !cell.output_text.is_empty() {
        let counts = count_line(cell);
        if !counts.is_empty() {
            part("@@ outputs @@", &counts);
        }
        for hunk in &cell.output_text {
            part(&hunk.header.replacen("@@ ", "@@ outputs ", 1), &hunk.lines);
        }
    } else if !cell.outputs.is_empty() || cell.execution_counts.is_some() {
        part("@@ outputs @@", &output_lines(cell));
    }
    if !cell.members.is_empty() {
        let mut lines = String::new();
        append_members(&mut lines, &cell.members);
        part("@@ metadata @@", &lines);
    }
}

fn count_line(cell: &CellDifference) -> String {
    let shown = |count: Option<u64>| count.map_or("none".to_owned(), |count| count.to_string());
    match cell.execution_counts {
        Some([old, new]) => format!(" execution_count: {} → {}\n", shown(old), shown(new)),
        None => String::new(),
    }
}

/// One line for each output that is not the same.
fn output_lines(cell: &CellDifference) -> String {
    let mut lines = count_line(cell);
    for output in &cell.outputs {
        let size = |output: &OutputSummary| ByteSize(output.bytes as u64);
        let name = |output: &OutputSummary| format!("{} {}", output.kind, output.labels.join(", "));
        lines.push_str(&match (&output.old, &output.new) {
            (Some(old), Some(new)) => {
                format!(" {}: {} → {}, differs\n", name(new), size(old), size(new))
            }
            (Some(old), None) => format!("-{}: {}\n", name(old), size(old)),
            (None, Some(new)) => format!("+{}: {}\n", name(new), size(new)),
            (None, None) => String::new(),
        });
    }
    lines
}

/// One line for each member that is not the same.
fn append_members(out: &mut String, members: &[MemberDifference]) {
    for member in members {
        let name = &member.name;
        out.push_str(&match (&member.old, &member.new) {
            (Some(old), Some(new)) => format!(" {name}: {} → {}\n", short(old), short(new)),
            (Some(old), None) => format!("-{name}: {}\n", short(old)),
            (None, Some(new)) => format!("+{name}: {}\n", short(new)),
            (None, None) => String::new(),
        });
    }
}

fn short(value: &str) -> String {
    const LONGEST: usize = 80;
    if value.chars().count() <= LONGEST {
        return value.to_owned();
    }
    let start: String = value.chars().take(LONGEST).collect();
    format!("{start}… ({})", ByteSize(value.len() as u64))
}
