//! A notebook as text for people who look at changes of it, not to be written back.

use crate::compare::Scope;
use crate::document::{Cells, Notebook};
use crate::json::alter::{Object, strings};
use crate::json::text as json_text;
use crate::outputs::whole_text;
use crate::revision::Revision;
use crate::text::{Markers, append_cell};

/// What stands before metadata and before outputs.
const METADATA: &str = "#: ";
const OUTPUT: &str = "#> ";

/// So much of the outputs of a cell is shown; the rest only shows that it changed.
const MOST_LINES: usize = 40;
const MOST_CHARACTERS: usize = 4000;

/// The cells under markers without numbers, so that a new cell changes no other line; behind each its
/// outputs as far as they are text, unless only sources are wanted. Execution counts are left out: they
/// change with every run.
pub fn review(notebook: &Notebook, scope: Scope) -> String {
    let mut text = String::new();
    if let Some(kernel) = kernel(notebook) {
        text.push_str(&format!("{METADATA}kernelspec: {kernel}"));
    }
    for index in 0..notebook.count() {
        let mut cell = String::new();
        let id = notebook.id(index);
        let (kind, source) = (notebook.kind(index), notebook.source(index));
        append_cell(&mut cell, 0, kind, id.as_deref(), &source, Markers::Stable);
        if let Some(tags) = tags(notebook, index) {
            let marker = cell.find('\n').unwrap_or(cell.len());
            cell.insert_str(marker, &format!("\n{METADATA}tags: {}", tags.join(", ")));
        }
        if scope == Scope::All {
            append_outputs(&mut cell, &whole_text(notebook, index));
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
        if number == MOST_LINES || characters > MOST_CHARACTERS {
            let left = text.split('\n').count() - number;
            let revision = Revision::of(text.as_bytes()).short();
            out.push_str(&format!("\n{OUTPUT}[… {left} more lines, {revision}]"));
            return;
        }
        let line = format!("{OUTPUT}{line}");
        out.push('\n');
        out.push_str(line.trim_end());
    }
}

/// The name of the kernel.
fn kernel(notebook: &Notebook) -> Option<String> {
    let top = Object::at(notebook.bytes(), notebook.frame().top)?;
    let name = top.object("metadata")?.object("kernelspec")?.get("name")?;
    (name.first() == Some(&b'"')).then(|| json_text::decode(name).into_owned())
}

fn tags(notebook: &Notebook, index: usize) -> Option<Vec<String>> {
    let cell = Object::at(notebook.bytes(), notebook.cell(index).span)?;
    let tags = strings(cell.object("metadata")?.get("tags")?)?;
    (!tags.is_empty()).then_some(tags)
}
