//! `write`: replaces a notebook by text.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_operations::change::BaseRevision;
use cellwright_operations::write::{WriteRequest, write as write_notebook};
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::super::arguments::{self, Argument, ArgumentKind, FORCE, PATH, REVISION};
use super::super::content::Reply;
use super::super::server::Server;
use super::super::wording;
use super::{Effect, ToolSpec, change};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "write",
    title: "Write a notebook",
    description: "\
Write a whole Jupyter notebook (.ipynb) as text, or create one (`create`). A marker that names a cell (`# %% [code] cell:3`) changes \
it and keeps its outputs; `# %% [code]` or `# %% [markdown]` adds a cell; cells missing from the text are DELETED. \
Example: {\"path\": \"new.ipynb\", \"create\": true, \"text\": \"# %% [code]\\nprint(1)\"}",
    search_hint: "jupyter ipynb create new percent format",
    is_main: false,
    arguments: &[
        PATH,
        Argument::new("text", ArgumentKind::Text)
            .or(&["content", "source", "new_source"])
            .required(),
        Argument::new("create", ArgumentKind::Boolean),
        REVISION,
        FORCE,
    ],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Idempotent,
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    text: String,
    revision: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    create: bool,
}

pub(super) fn write(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("write", SPEC.arguments, given)?;
    let place = server.roots().resolve_file(&given.path)?;
    let exists = place.path().symlink_metadata().is_ok();
    let names_cells = given.text.lines().any(|line| {
        line.starts_with("# %% [") && (line.contains("] cell:") || line.contains("] id:"))
    });
    if given.create && exists && given.revision.is_none() && !names_cells {
        let path = wording::sanitize(&place.display_path().display().to_string());
        let failure = Failure::new(Kind::BadFile, format!("{path} exists"));
        return Err(failure.hint(
            "nothing was written; to replace all its cells, leave out `create`; to keep cells, name them in their markers",
        ));
    }
    let request = WriteRequest {
        path: place.file().clone(),
        text: given.text,
        revision: BaseRevision::parse(given.revision)?.with_force(given.force),
        create: given.create,
    };
    let changed = write_notebook(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::change_reply(server, &place, &changed)
}
