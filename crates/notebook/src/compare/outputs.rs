//! What differs between the outputs of two cells, in short.

use crate::document::Notebook;
use crate::json::content::Content;
use crate::lines::hunks;
use crate::outputs::{OutputSummary, spans, summaries};

/// An output that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDifference {
    /// What it was.
    pub old: Option<OutputSummary>,
    /// What it is.
    pub new: Option<OutputSummary>,
}

/// What differs between the outputs of two cells.
pub(super) fn compare(
    old: &Notebook,
    origin: usize,
    new: &Notebook,
    index: usize,
) -> Vec<OutputDifference> {
    let said = |notebook: &Notebook, cell: usize| -> Vec<String> {
        let spans = spans(notebook, cell).into_iter();
        spans
            .map(|span| format!("{:?}", Content::of("", notebook.slice(span))))
            .collect()
    };
    let (old_said, new_said) = (said(old, origin), said(new, index));
    let mut found = Vec::new();
    let old_texts: Vec<&str> = old_said.iter().map(String::as_str).collect();
    let new_texts: Vec<&str> = new_said.iter().map(String::as_str).collect();
    let hunks = hunks(&old_texts, &new_texts);
    if hunks.is_empty() {
        return found;
    }
    let (old, new) = (summaries(old, origin), summaries(new, index));
    for hunk in hunks {
        let mut old = old[hunk.old].iter().cloned().peekable();
        for new in new[hunk.new].iter().cloned() {
            // The same sort of output in the same place: it is another one now.
            let before = old.next_if(|old| old.kind == new.kind && old.what == new.what);
            found.push(OutputDifference {
                old: before,
                new: Some(new),
            });
        }
        found.extend(old.map(|old| OutputDifference {
            old: Some(old),
            new: None,
        }));
    }
    found
}
