//! `write`: replaces a notebook by text.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::BaseRevision;
use cellwright_operations::write::{WriteRequest, write as write_notebook};
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::super::arguments;
use super::super::content::Reply;
use super::super::server::Server;
use super::{Effect, ToolSpec, change};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "write",
    title: "Write a notebook",
    description: "\
Replace a whole notebook by text with cell markers, or create a new one (`create`). A block whose marker names a \
cell (`# %% [code] cell:3`) changes that cell and keeps its outputs; a marker without a number (`# %% [code]`, \
`# %% [markdown]`) adds a cell; cells missing from the text are DELETED. For large rewrites and new notebooks; \
otherwise use `edit` or `notebook`. Example: {\"path\": \"new.ipynb\", \"create\": true, \"text\": \"# %% [code]\\nprint(1)\"}",
    input_properties: r#"{"path": {"type": "string"}, "text": {"type": "string"}, "rev": {"type": "string"}, "create": {"type": "boolean"}}"#,
    required: &["path", "text"],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Idempotent,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    text: String,
    rev: Option<String>,
    #[serde(default)]
    create: bool,
}

pub(super) fn write(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("write", given)?;
    let place = server.roots().resolve_file(&given.path)?;
    let request = WriteRequest {
        path: place.file().clone(),
        text: given.text,
        revision: BaseRevision::parse(given.rev)?,
        create: given.create,
    };
    let changed = write_notebook(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::change_reply(server, &place, &changed)
}
