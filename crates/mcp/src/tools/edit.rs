//! `edit`: replaces text in a notebook.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::BaseRevision;
use cellwright_operations::edit::{self, EditRequest};
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::super::arguments;
use super::super::content::Reply;
use super::super::server::Server;
use super::{Effect, ToolSpec, change};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "edit",
    title: "Edit a notebook's text",
    description: "\
Replace text in a notebook as `read` returns it; may span lines, cells and markers. `old` must occur exactly once \
unless `all`; otherwise nothing is written. Outputs, ids and metadata stay. Best for small changes; the reply has \
the diff. Example: {\"path\": \"a.ipynb\", \"old\": \"lr = 0.1\", \"new\": \"lr = 0.01\"}",
    input_properties: r#"{"path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean", "description": "replace every occurrence"}, "rev": {"type": "string", "description": "revision from `read`: later changes are merged, or the edit is rejected"}}"#,
    required: &["path", "old", "new"],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
    rev: Option<String>,
}

pub(super) fn edit(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("edit", given)?;
    let place = server.roots().resolve_file(&given.path)?;
    let request = EditRequest {
        path: place.file().clone(),
        old: given.old,
        new: given.new,
        all: given.all,
        revision: BaseRevision::parse(given.rev)?,
    };
    let changed = edit::edit(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::change_reply(server, &place, &changed)
}
