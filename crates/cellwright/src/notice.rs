//! Words for [`Notice`]s: what a person should know although nothing failed.

mod merge;
mod session;

use std::borrow::Cow;
use std::time::Duration;

use cellwright_notebook::Notice;
use serde::{Deserialize, Serialize};

pub(crate) use merge::tell_merge;
pub(crate) use session::tell_session;

use crate::settings::{Entry, Origin, Place};

/// A notice in words, with a name that programs can go by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) kind: Cow<'static, str>,
    pub(crate) text: String,
}

impl Told {
    pub(crate) fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            kind: Cow::Borrowed(kind),
            text: text.into(),
        }
    }
}

/// Puts notices into words.
pub(crate) fn tell(notices: &[Notice]) -> Vec<Told> {
    notices.iter().map(words).collect()
}

/// Puts notices about output into words.
pub(crate) fn tell_output(notices: &[cellwright_output::Notice]) -> Vec<Told> {
    notices
        .iter()
        .map(|notice| Told::new(notice.kind(), notice.to_string()))
        .collect()
}

/// A call asked for more time than the settings allow.
pub(crate) fn tell_capped(most: Duration, origin: &Origin) -> Told {
    Told::new(
        "timeout_capped",
        format!(
            "the time limit is {} s: `eval.max_timeout` ({origin}) allows no more",
            most.as_secs_f64()
        ),
    )
}

/// Puts into words what a project wanted to set and may not.
pub(crate) fn tell_ignored(entries: &[Entry]) -> Option<Told> {
    let ignored = |entry: &Entry| Some((entry.declared.name, entry.ignored.clone()?));
    let ignored: Vec<(&str, Place)> = entries.iter().filter_map(ignored).collect();
    let (_, first) = ignored.first()?;
    let names: Vec<String> = ignored
        .iter()
        .map(|(name, place)| format!("`{name}` (line {})", place.line))
        .collect();
    Some(Told::new(
        "settings_ignored",
        format!(
            "this project is not trusted, so {} in {} is ignored; look at the file, then `cellwright \
             trust`",
            names.join(", "),
            first.file.display()
        ),
    ))
}

fn words(notice: &Notice) -> Told {
    let (kind, text) = match notice {
        Notice::NearMarker { line, text } => (
            "near_marker",
            format!(
                "line {line} looks like a cell marker but is not one, so it stays text: `{text}` \
                 (a marker is exactly `# %% [code]`, `# %% [markdown]` or `# %% [raw]`)"
            ),
        ),
        Notice::UnknownCell { line, name } => (
            "unknown_cell",
            format!("line {line} names `{name}`, which does not exist: a new cell was made"),
        ),
        Notice::UsedTwice { line, name } => (
            "cell_used_twice",
            format!("line {line} names `{name}` a second time: a new cell was made"),
        ),
        Notice::SurrogateLost { cell } => (
            "surrogate_lost",
            format!(
                "cell {cell} held half of a surrogate pair, which no text can carry; the edited \
                 line now has U+FFFD in its place"
            ),
        ),
        Notice::OutputsDropped { cell } => (
            "outputs_dropped",
            format!("the outputs of cell {cell} went with its being code"),
        ),
        Notice::AttachmentsDropped { cell } => (
            "attachments_dropped",
            format!("cell {cell} is code now, which has no attachments: its own are gone"),
        ),
        Notice::Merged { with } => (
            "merged",
            format!("the file had changed to revision {with}; both changes are in it now"),
        ),
        Notice::Unchanged => ("unchanged", "nothing to change, nothing written".to_owned()),
        Notice::Irregular { cell, what } => {
            ("irregular", format!("cell {cell}: {what}; left as it is"))
        }
        Notice::RangeSkipped { start, end, total } => {
            let range = match end {
                Some(end) => format!("{start}-{end}"),
                None => format!("{start}-"),
            };
            (
                "range_skipped",
                format!("Range {range} is beyond end of notebook ({total} lines total); skipped"),
            )
        }
        other => ("other", format!("{other:?}")),
    };
    Told::new(kind, text)
}
