//! [`UserNotice`]: what the caller should know although nothing failed, as a kind and a text.
//!
//! The library crates report notices as data. The functions here describe them.

mod kind;
mod merge;
mod session;

use cellwright_notebook::{MarkerText, Notice};
use cellwright_stdext::secret::redact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use kind::NoticeKind;
pub use merge::describe_merge;
pub use session::describe_session;

/// A notice for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserNotice {
    /// Kind of the notice.
    pub kind: NoticeKind,
    /// One sentence for people.
    pub text: String,
}

impl UserNotice {
    /// A notice. Credentials in the text are removed.
    pub fn new(kind: NoticeKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: redact(&text.into()).into_owned(),
        }
    }
}

/// Describes the notices of an operation on a notebook.
pub fn describe(notices: &[Notice]) -> Vec<UserNotice> {
    notices.iter().map(describe_one).collect()
}

/// Describes notices about the output of a cell.
pub fn describe_output(notices: &[cellwright_output::Notice]) -> Vec<UserNotice> {
    use cellwright_output::Notice;

    let describe = |notice: &Notice| {
        let kind = match notice {
            Notice::Truncated(_) => NoticeKind::OutputTruncated,
            Notice::NotStored { .. } => NoticeKind::OutputNotStored,
            Notice::StreamsShortened { .. } => NoticeKind::StreamsShortened,
            Notice::DisplaysMoved { .. } => NoticeKind::DisplaysMoved,
            Notice::OutputsDropped { .. } => NoticeKind::OutputsDropped,
            Notice::ImagesOmitted { .. } => NoticeKind::ImagesOmitted,
            Notice::JsonOmitted { .. } => NoticeKind::JsonOmitted,
            Notice::StatusDropped { .. } => NoticeKind::StatusDropped,
        };
        UserNotice::new(kind, notice.to_string())
    };
    notices.iter().map(describe).collect()
}

fn describe_one(notice: &Notice) -> UserNotice {
    let (kind, text) = match notice {
        Notice::NearMarker { line, text } => (
            NoticeKind::NearMarker,
            format!(
                "line {line} looks like a cell marker but is not one, so it stays text: `{text}` \
                 (a marker starts with `# %% [code]`, `# %% [markdown]` or `# %% [raw]`)"
            ),
        ),
        Notice::PercentFormat {
            header_lines,
            uncommented,
            unquoted,
        } => (
            NoticeKind::PercentFormat,
            describe_percent_format(*header_lines, *uncommented, *unquoted),
        ),
        Notice::MarkerTextDropped { markers } => (
            NoticeKind::MarkerTextDropped,
            describe_dropped_text(markers),
        ),
        Notice::UnknownCell { line, name } => (
            NoticeKind::UnknownCell,
            format!("line {line} names `{name}`, which does not exist: a new cell was created"),
        ),
        Notice::UsedTwice { line, name } => (
            NoticeKind::CellUsedTwice,
            format!("line {line} names `{name}` a second time: a new cell was created"),
        ),
        Notice::SurrogateLost { cell } => (
            NoticeKind::SurrogateLost,
            format!(
                "cell {cell} contained half of a surrogate pair, which text cannot represent; the edited \
                 line now has U+FFFD in its place"
            ),
        ),
        Notice::OutputsDropped { cell } => (
            NoticeKind::OutputsDropped,
            format!("the outputs of cell {cell} were removed: it is not a code cell any more"),
        ),
        Notice::AttachmentsDropped { cell } => (
            NoticeKind::AttachmentsDropped,
            format!("the attachments of cell {cell} were removed: code cells have none"),
        ),
        Notice::Merged { with } => (
            NoticeKind::Merged,
            format!("the file had changed to revision {with}; both changes are in the file now"),
        ),
        Notice::MarkerTagsKept { line, cell } => (
            NoticeKind::MarkerTagsKept,
            format!(
                "line {line} has other tags than cell {cell}, which keeps its own: `notebook tag` \
                 changes tags"
            ),
        ),
        Notice::Unchanged => (
            NoticeKind::Unchanged,
            "nothing to change, nothing written".to_owned(),
        ),
        Notice::Irregular {
            cell,
            problem: what,
        } => (
            NoticeKind::Irregular,
            format!("cell {cell}: {what}; left unchanged"),
        ),
        Notice::OldFormat {
            from: (major, minor),
        } => (
            NoticeKind::OldFormat,
            format!("the file has nbformat {major}.{minor}; its cells are shown in nbformat 4.5"),
        ),
        Notice::OpenInPage { server } => (
            NoticeKind::OpenInPage,
            format!(
                "the notebook is open in JupyterLab at {server}, and the page still shows the old text: \
                 \"Reload Notebook from Disk\" in its File menu loads the new text; if a save reports \"File \
                 Changed\", \"Revert\" keeps the new text and \"Overwrite\" discards it"
            ),
        ),
        Notice::OpenInRoom { server } => (
            NoticeKind::OpenInRoom,
            format!(
                "a collaboration room at {server} has the notebook: text that was being typed there may be lost"
            ),
        ),
        Notice::ServerNotAsked { server, reason } => (
            NoticeKind::ServerNotAsked,
            match server {
                Some(server) => format!(
                    "it is unknown whether the Jupyter server at {server} has the notebook open: {reason}"
                ),
                None => format!(
                    "it is unknown whether a Jupyter server has the notebook open: {reason}"
                ),
            },
        ),
        Notice::LateWrite { revision, stored } => (
            NoticeKind::LateWrite,
            format!(
                "another program wrote into the old file while it was replaced, and its text (revision {revision}) is not \
                 in the notebook{}",
                if *stored {
                    ": `notebook undo` restores it"
                } else {
                    ", nor stored"
                }
            ),
        ),
        Notice::UndoNotStored { reason } => (
            NoticeKind::UndoNotStored,
            format!(
                "the change cannot be undone: the content before it could not be stored ({reason})"
            ),
        ),
        Notice::Overwritten {
            at,
            revision,
            server,
        } => (
            NoticeKind::Overwritten,
            format!(
                "the text or the outputs written at {at} (revision {revision}) are no longer in the file: another \
                 program has saved an older version, probably the page that had it open at {server}"
            ),
        ),
        Notice::RangeSkipped { start, end, total } => {
            let range = match end {
                Some(end) => format!("{start}-{end}"),
                None => format!("{start}-"),
            };
            (
                NoticeKind::RangeSkipped,
                format!("Range {range} is beyond end of notebook ({total} lines total); skipped"),
            )
        }
    };
    UserNotice::new(kind, text)
}

fn describe_percent_format(header_lines: usize, uncommented: usize, unquoted: usize) -> String {
    let cells = |count: usize| format!("{count} cell{}", if count == 1 { "" } else { "s" });
    let mut actions = Vec::new();
    if header_lines > 0 {
        actions.push(format!("skipped the header (lines 1-{header_lines})"));
    }
    if uncommented > 0 {
        actions.push(format!("removed comment signs from {}", cells(uncommented)));
    }
    if unquoted > 0 {
        actions.push(format!("removed quotes from {}", cells(unquoted)));
    }
    format!("read as percent format: {}", actions.join(", "))
}

fn describe_dropped_text(markers: &[MarkerText]) -> String {
    const LISTED_MAX: usize = 5;
    let mut listed: Vec<String> = markers
        .iter()
        .take(LISTED_MAX)
        .map(|MarkerText { line, text }| format!("line {line} `{text}`"))
        .collect();
    if markers.len() > LISTED_MAX {
        listed.push(format!("and {} more", markers.len() - LISTED_MAX));
    }
    format!(
        "titles and metadata after cell markers are not stored: {}",
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_format_is_described_by_its_changes() {
        let text = |header_lines, uncommented, unquoted| {
            let notice = Notice::PercentFormat {
                header_lines,
                uncommented,
                unquoted,
            };
            describe_one(&notice).text
        };
        assert_eq!(
            text(0, 2, 0),
            "read as percent format: removed comment signs from 2 cells"
        );
        assert_eq!(
            text(9, 0, 1),
            "read as percent format: skipped the header (lines 1-9), removed quotes from 1 cell"
        );
    }

    #[test]
    fn dropped_text_lists_a_few_markers() {
        let markers = (1..=7)
            .map(|line| MarkerText {
                line,
                text: "Title".to_owned(),
            })
            .collect();
        let notice = describe_one(&Notice::MarkerTextDropped { markers });
        assert_eq!(notice.kind.to_string(), "marker_text_dropped");
        assert!(
            notice.text.ends_with("line 5 `Title`, and 2 more"),
            "{}",
            notice.text
        );
    }
}
