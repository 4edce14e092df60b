//! Words for what a merge of notebooks has to say.

use std::path::Path;

use cellwright_notebook::{Remark, Side};

use super::Told;

/// Puts a remark about the notebook at `path` into words; `id` knows the ids of its cells.
pub(crate) fn tell_merge(
    remark: &Remark,
    path: &Path,
    id: &dyn Fn(usize) -> Option<String>,
) -> Told {
    let path = path.display();
    let cell = |index: usize| match id(index) {
        Some(id) => format!("{path}: cell {index} (id:{id})"),
        None => format!("{path}: cell {index}"),
    };
    let (kind, text) = match remark {
        Remark::Source { cell: index } => (
            "conflict_source",
            format!(
                "{}: both sides changed the same lines; both stand in its source, between `<<<` and `>>>`",
                cell(*index)
            ),
        ),
        Remark::Deleted { cell: index, by } => {
            let (deleted, changed) = match by {
                Side::Ours => ("our side deleted it", "their side"),
                Side::Theirs => ("their side deleted it", "our side"),
            };
            (
                "conflict_deleted",
                format!(
                    "{}: {deleted}, {changed} changed it; it is kept",
                    cell(*index)
                ),
            )
        }
        Remark::Kind { cell: index } => (
            "conflict_kind",
            format!("{}: both sides changed its kind; it has ours", cell(*index)),
        ),
        Remark::Moved { cell: index } => (
            "conflict_moved",
            format!(
                "{}: both sides moved it; it is where ours put it",
                cell(*index)
            ),
        ),
        Remark::Member {
            cell: Some(index),
            name,
        } => (
            "member",
            format!(
                "{}: both sides changed `{name}`; ours is kept",
                cell(*index)
            ),
        ),
        Remark::Member { cell: None, name } => (
            "member",
            format!("{path}: both sides changed `{name}`; ours is kept"),
        ),
        Remark::Cleared { cell: index } => (
            "outputs_cleared",
            format!(
                "{}: its outputs are cleared, because neither side ran the merged source",
                cell(*index)
            ),
        ),
        Remark::Renamed { cell: index, id } => (
            "id_changed",
            format!("{}: its id was {id}, which another cell has", cell(*index)),
        ),
        other => ("other", format!("{path}: {other:?}")),
    };
    Told::new(kind, text)
}
