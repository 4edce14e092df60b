//! `edit`: replaces text in a notebook.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::BaseRevision;
use cellwright_operations::edit::{self, EditRequest};
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::super::arguments::{self, Argument, ArgumentKind, FORCE, PATH, REVISION};
use super::super::content::Reply;
use super::super::server::Server;
use super::{Effect, ToolSpec, change};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "edit",
    title: "Edit a notebook's text",
    description: "\
Edit a Jupyter notebook (.ipynb): replace text as `read` shows it, also across cells. `old` must occur once, unless \
`all`. Outputs, ids and metadata stay. Returns the diff. Example: {\"path\": \"a.ipynb\", \"old\": \"lr = 0.1\", \"new\": \"lr = 0.01\"}",
    search_hint: "jupyter ipynb replace cell source",
    is_main: true,
    arguments: &[
        PATH,
        Argument::new("old", ArgumentKind::Text)
            .or(&["old_string", "old_str", "old_text"])
            .required(),
        Argument::new("new", ArgumentKind::Text)
            .or(&["new_string", "new_str", "new_text"])
            .required(),
        Argument::new("all", ArgumentKind::Boolean).or(&["replace_all"]),
        Argument::new("word", ArgumentKind::Boolean),
        Argument::new("regex", ArgumentKind::Boolean),
        Argument::new("code", ArgumentKind::Boolean).describe("only code cells"),
        Argument::new("markdown", ArgumentKind::Boolean),
        REVISION,
        FORCE,
    ],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "arguments of a tool")]
pub(super) struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    word: bool,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    code: bool,
    #[serde(default)]
    markdown: bool,
    revision: Option<String>,
    #[serde(default)]
    force: bool,
}

pub(super) fn edit(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("edit", SPEC.arguments, given)?;
    let place = server.roots().resolve_file(&given.path)?;
    let request = EditRequest {
        path: place.file().clone(),
        old: given.old,
        new: given.new,
        all: given.all,
        word: given.word,
        regex: given.regex,
        code: given.code,
        markdown: given.markdown,
        revision: BaseRevision::parse(given.revision)?.with_force(given.force),
    };
    let changed = edit::edit(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::change_reply(server, &place, &changed)
}
