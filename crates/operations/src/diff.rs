//! Compares two notebooks cell by cell.

mod side;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::json_schema::AnyJson;
use cellwright_diagnostics::notice::{self, NoticeKind, UserNotice};
use cellwright_notebook::outputs::OutputSummary;
use cellwright_notebook::{
    CellDifference, CellKind, Comparison, Hunk, MarkerStyle, MemberDifference, Notebook,
    OutputDifference, Scope, append_cell, compare,
};
use cellwright_output::ByteSize;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use side::DiffSide;

use crate::git::program::Git;

/// A request to compare two notebooks.
#[derive(Debug)]
pub struct DiffRequest {
    pub old: DiffSide,
    pub new: DiffSide,
    /// Git in the directory in which it looks for revisions.
    pub git: Git,
    pub scope: Scope,
    /// Whether the text shows the content of outputs, instead of one line for each.
    pub output_text: bool,
}

/// The differences.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffReport {
    /// The old notebook.
    old: String,
    /// The new notebook.
    new: String,
    /// Whether there is no difference.
    pub same: bool,
    /// Number of cells by kind of difference.
    counts: DifferingCellCounts,
    /// The cells that differ.
    cells: Vec<CellReport>,
    /// Members of the notebook that differ.
    members: Vec<MemberReport>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
    /// The differences in the form of a unified diff.
    #[serde(skip)]
    pub text: String,
}

/// Number of cells by kind of difference.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct DifferingCellCounts {
    /// Changed cells.
    changed: usize,
    /// New cells.
    added: usize,
    /// Removed cells.
    removed: usize,
    /// Moved cells.
    moved: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CellDifference")]
struct CellReport {
    /// Kind of difference.
    change: &'static str,
    /// Index in the old notebook, from 0; `null` for a new cell.
    old_index: Option<usize>,
    /// Index in the new notebook, from 0; `null` for a removed cell.
    new_index: Option<usize>,
    /// Cell id.
    id: Option<String>,
    /// Cell type.
    #[schemars(extend("enum" = ["code", "markdown", "raw"]))]
    cell_type: &'static str,
    /// Cell type before, if it differs.
    #[schemars(extend("enum" = ["code", "markdown", "raw", null]))]
    old_cell_type: Option<&'static str>,
    /// Whether the cell was moved.
    moved: bool,
    /// Unified hunks of the source.
    source: String,
    /// Outputs that differ.
    outputs: Vec<OutputReport>,
    /// Unified hunks of the text of the outputs.
    output_text: String,
    /// Execution counts of both sides, if they differ.
    execution_count: Option<[Option<u64>; 2]>,
    /// Members of the cell that differ.
    members: Vec<MemberReport>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OutputReport {
    /// The old output; `null` if it is new.
    old: Option<OutputContent>,
    /// The new output; `null` if it was removed.
    new: Option<OutputContent>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OutputContent {
    /// Type of the output.
    output_type: String,
    /// Its streams or MIME types.
    what: Vec<String>,
    /// Size in bytes.
    bytes: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MemberReport {
    /// Name of the member.
    name: String,
    /// Old value.
    #[schemars(with = "AnyJson")]
    old: Option<Value>,
    /// New value.
    #[schemars(with = "AnyJson")]
    new: Option<Value>,
}

impl DiffReport {
    /// Counts the cells that differ, in words.
    pub fn summary(&self) -> String {
        self.counts.describe(self.same)
    }
}

/// Compares two notebooks. Returns a summary and the differences in the form of a unified diff.
pub(super) fn compare_contents(
    old: &Notebook,
    new: &Notebook,
    scope: Scope,
    names: &[String; 2],
) -> (String, String) {
    let found = compare(old, new, scope);
    let summary = DifferingCellCounts::new(&found).describe(found.is_same());
    (summary, render(&found, names, false))
}

impl DifferingCellCounts {
    fn new(found: &Comparison) -> Self {
        let mut counts = Self::default();
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
        counts
    }

    /// The counts in words.
    fn describe(&self, same: bool) -> String {
        let parts: Vec<String> = [
            (self.changed, "changed"),
            (self.added, "added"),
            (self.removed, "removed"),
            (self.moved, "moved"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, change)| format!("{count} {change}"))
        .collect();
        match (same, parts.is_empty()) {
            (true, _) => "no difference".to_owned(),
            (false, true) => "no cell differs".to_owned(),
            (false, false) => format!("cells: {}", parts.join(", ")),
        }
    }
}

/// Compares two notebooks.
pub fn diff(request: &DiffRequest) -> Result<DiffReport, Failure> {
    let git = &request.git;
    // The new one first: if its file is missing, git is not the reason.
    let (mut new, new_notices) = request.new.load(git)?;
    let (old, old_notices) = request.old.load(git)?;
    let mut notices = notice::describe(&old_notices);
    let new_notices = notice::describe(&new_notices).into_iter();
    // Both sides can have the same format.
    notices.extend(
        new_notices
            .filter(|notice| !notices.contains(notice))
            .collect::<Vec<_>>(),
    );
    if let Some(filter) = request.old.clean_filter(&request.new, git)? {
        new = side::without_outputs(&new)?;
        notices.push(UserNotice::new(
            NoticeKind::OutputsIgnored,
            format!(
                "outputs are not compared: the git filter `{filter}` removes them from commits"
            ),
        ));
    }
    let found = compare(&old, &new, request.scope);
    let names = [&request.old, &request.new].map(ToString::to_string);
    let counts = DifferingCellCounts::new(&found);
    let text = render(&found, &names, request.output_text);
    let [old, new] = names;
    Ok(DiffReport {
        old,
        new,
        same: found.is_same(),
        counts,
        notices,
        text,
        members: found.members.iter().map(MemberReport::new).collect(),
        cells: found.cells.iter().map(CellReport::new).collect(),
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

/// Whether more than the position differs.
fn has_changed(cell: &CellDifference) -> bool {
    cell.old_kind.is_some()
        || cell.execution_counts.is_some()
        || !cell.source.is_empty()
        || !cell.outputs.is_empty()
        || !cell.members.is_empty()
}

impl CellReport {
    fn new(cell: &CellDifference) -> Self {
        Self {
            change: change(cell),
            old_index: cell.old,
            new_index: cell.new,
            id: cell.id.clone(),
            cell_type: cell.kind.name(),
            old_cell_type: cell.old_kind.map(CellKind::name),
            moved: cell.moved,
            source: unified(&cell.source),
            outputs: cell.outputs.iter().map(OutputReport::new).collect(),
            output_text: unified(&cell.output_text),
            execution_count: cell.execution_counts,
            members: cell.members.iter().map(MemberReport::new).collect(),
        }
    }
}

impl OutputReport {
    fn new(output: &OutputDifference) -> Self {
        let summary = |output: &OutputSummary| OutputContent {
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

impl MemberReport {
    fn new(member: &MemberDifference) -> Self {
        // Values that Python writes and JSON does not have (`NaN`) are text.
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

/// Renders the differences in the form of a unified diff.
fn render(found: &Comparison, names: &[String; 2], output_text: bool) -> String {
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
        append_cell_text(&mut out, cell, output_text);
    }
    out
}

fn append_cell_text(out: &mut String, cell: &CellDifference, output_text: bool) {
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
            let change = if old.is_some() { "removed" } else { "added" };
            out.push_str(&format!("@@ {change} @@ {marker}\n"));
            out.extend(cell.source.iter().map(|hunk| hunk.lines.as_str()));
            return;
        }
    }
    let mut part = |header: &str, lines: &str| out.push_str(&format!("{header} {marker}\n{lines}"));
    if let Some(old) = cell.old_kind {
        part("@@ kind @@", &format!(" {old} → {}\n", cell.kind));
    }
    for hunk in &cell.source {
        part(&hunk.header, &hunk.lines);
    }
    if output_text && !cell.output_text.is_empty() {
        let counts = count_line(cell);
        if !counts.is_empty() {
            part("@@ outputs @@", &counts);
        }
        for hunk in &cell.output_text {
            let header = hunk.header.strip_prefix("@@ ").unwrap_or(&hunk.header);
            part(&format!("@@ outputs {header}"), &hunk.lines);
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

/// One line for each output that differs.
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

/// One line for each member that differs.
fn append_members(out: &mut String, members: &[MemberDifference]) {
    for member in members {
        let name = &member.name;
        out.push_str(&match (&member.old, &member.new) {
            (Some(old), Some(new)) => format!(" {name}: {} → {}\n", shorten(old), shorten(new)),
            (Some(old), None) => format!("-{name}: {}\n", shorten(old)),
            (None, Some(new)) => format!("+{name}: {}\n", shorten(new)),
            (None, None) => String::new(),
        });
    }
}

/// The start of a long value.
fn shorten(value: &str) -> String {
    const CHARS_MAX: usize = 80;
    if value.chars().count() <= CHARS_MAX {
        return value.to_owned();
    }
    let start: String = value.chars().take(CHARS_MAX).collect();
    format!("{start}… ({})", ByteSize(value.len() as u64))
}
