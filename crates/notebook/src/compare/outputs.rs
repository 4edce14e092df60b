//! Compares the outputs of two cells.

use crate::document::Notebook;
use crate::json::content::ContentHash;
use crate::lines::line_hunks;
use crate::outputs::{OutputSummary, output_spans, summaries};

/// An output that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDifference {
    /// The old output.
    pub old: Option<OutputSummary>,
    /// The new output.
    pub new: Option<OutputSummary>,
}

/// The differences between the outputs of two cells.
pub(super) fn compare(
    old: &Notebook,
    origin: usize,
    new: &Notebook,
    index: usize,
) -> Vec<OutputDifference> {
    let hashes = |notebook: &Notebook, cell: usize| -> Vec<String> {
        let spans = output_spans(notebook, cell).into_iter();
        spans
            .map(|span| format!("{:?}", ContentHash::new("", notebook.slice(span))))
            .collect()
    };
    let (old_hashes, new_hashes) = (hashes(old, origin), hashes(new, index));
    let mut found = Vec::new();
    let old_texts: Vec<&str> = old_hashes.iter().map(String::as_str).collect();
    let new_texts: Vec<&str> = new_hashes.iter().map(String::as_str).collect();
    let hunks = line_hunks(&old_texts, &new_texts);
    if hunks.is_empty() {
        return found;
    }
    let (old, new) = (summaries(old, origin), summaries(new, index));
    for hunk in hunks {
        let mut old = old[hunk.old].iter().cloned().peekable();
        for new in new[hunk.new].iter().cloned() {
            // Same kind and labels at the same position: the output was replaced.
            let before = old.next_if(|old| old.kind == new.kind && old.labels == new.labels);
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
