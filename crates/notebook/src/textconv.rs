//! A notebook as text for `git diff`. It is not meant to be written back.

use crate::compare::Scope;
use crate::document::{Cells, Notebook};
use crate::json::object_edit::{Object, string_array};
use crate::json::text as json_text;
use crate::outputs::full_text;
use crate::revision::Revision;
use crate::text::{MarkerStyle, append_cell};

/// Prefixes of metadata lines and output lines.
const METADATA_PREFIX: &str = "#: ";
const OUTPUT_PREFIX: &str = "#> ";

/// Limits for the displayed outputs of one cell. Beyond them, only a hash shows changes.
const LINE_LIMIT: usize = 40;
const CHARACTER_LIMIT: usize = 4000;

/// The cells with markers without numbers, so that a new cell changes no other line. Unless only
/// sources are wanted, each cell is followed by the text of its outputs. Execution counts are
/// left out, because every run changes them.
pub fn render_textconv(notebook: &Notebook, scope: Scope) -> String {
    let mut text = String::new();
    if let Some(kernel) = kernel_name(notebook) {
        text.push_str(&format!("{METADATA_PREFIX}kernelspec: {kernel}"));
    }
    for index in 0..notebook.count() {
        let mut cell = String::new();
        let id = notebook.id(index);
        let (kind, source) = (notebook.kind(index), notebook.source(index));
        append_cell(
            &mut cell,
            0,
            kind,
            id.as_deref(),
            &source,
            MarkerStyle::Stable,
        );
        if let Some(tags) = cell_tags(notebook, index) {
            let marker = cell.find('\n').unwrap_or(cell.len());
            cell.insert_str(
                marker,
                &format!("\n{METADATA_PREFIX}tags: {}", tags.join(", ")),
            );
        }
        if scope == Scope::All {
            append_outputs(&mut cell, &full_text(notebook, index));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&cell);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn append_outputs(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    let mut characters = 0;
    for (number, line) in text.split('\n').enumerate() {
        characters += line.chars().count();
        if number == LINE_LIMIT || characters > CHARACTER_LIMIT {
            let left = text.split('\n').count() - number;
            let revision = Revision::compute(text.as_bytes()).short();
            out.push_str(&format!(
                "\n{OUTPUT_PREFIX}[… {left} more lines, {revision}]"
            ));
            return;
        }
        let line = format!("{OUTPUT_PREFIX}{line}");
        out.push('\n');
        out.push_str(line.trim_end());
    }
}

/// The name of the notebook's kernelspec.
fn kernel_name(notebook: &Notebook) -> Option<String> {
    let top = Object::parse(notebook.bytes(), notebook.spans().top)?;
    let name = top
        .get_object("metadata")?
        .get_object("kernelspec")?
        .get("name")?;
    (name.first() == Some(&b'"')).then(|| json_text::decode(name).into_owned())
}

fn cell_tags(notebook: &Notebook, index: usize) -> Option<Vec<String>> {
    let cell = Object::parse(notebook.bytes(), notebook.cell(index).span)?;
    let tags = string_array(cell.get_object("metadata")?.get("tags")?)?;
    (!tags.is_empty()).then_some(tags)
}
