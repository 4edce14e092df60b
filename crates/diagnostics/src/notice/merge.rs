//! Describes the notices of a merge of notebooks.

use std::path::Path;

use cellwright_notebook::{MergeNotice, Side};

use super::{NoticeKind, UserNotice};

/// Describes a notice about the notebook at `path`; `id` returns the id of a cell by its index.
pub fn describe_merge(
    notice: &MergeNotice,
    path: &Path,
    id: &dyn Fn(usize) -> Option<String>,
) -> UserNotice {
    let path = path.display();
    let cell = |index: usize| match id(index) {
        Some(id) => format!("{path}: cell {index} (id:{id})"),
        None => format!("{path}: cell {index}"),
    };
    let (kind, text) = match notice {
        MergeNotice::SourceConflict { cell: index } => (
            NoticeKind::ConflictSource,
            format!(
                "{}: both sides changed the same lines; the source has both versions, between `<<<` and `>>>`",
                cell(*index)
            ),
        ),
        MergeNotice::DeletedAndChanged { cell: index, by } => {
            let (deleted, changed) = match by {
                Side::Ours => ("our side deleted it", "their side"),
                Side::Theirs => ("their side deleted it", "our side"),
            };
            (
                NoticeKind::ConflictDeleted,
                format!(
                    "{}: {deleted}, {changed} changed it; the cell stays",
                    cell(*index)
                ),
            )
        }
        MergeNotice::KindConflict { cell: index } => (
            NoticeKind::ConflictKind,
            format!(
                "{}: both sides changed its kind; ours is used",
                cell(*index)
            ),
        ),
        MergeNotice::MoveConflict { cell: index } => (
            NoticeKind::ConflictMoved,
            format!(
                "{}: both sides moved it; our position is used",
                cell(*index)
            ),
        ),
        MergeNotice::MemberConflict {
            cell: Some(index),
            name,
        } => (
            NoticeKind::ConflictMember,
            format!(
                "{}: both sides changed `{name}`; ours is used",
                cell(*index)
            ),
        ),
        MergeNotice::MemberConflict { cell: None, name } => (
            NoticeKind::ConflictMember,
            format!("{path}: both sides changed `{name}`; ours is used"),
        ),
        MergeNotice::OutputsCleared { cell: index } => (
            NoticeKind::OutputsCleared,
            format!(
                "{}: its outputs were cleared, because neither side ran the merged source",
                cell(*index)
            ),
        ),
        MergeNotice::IdReplaced { cell: index, id } => (
            NoticeKind::IdChanged,
            format!(
                "{}: it has a new id, because another cell also has its id {id}",
                cell(*index)
            ),
        ),
    };
    UserNotice::new(kind, text)
}
