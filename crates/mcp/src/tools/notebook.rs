//! `notebook`: changes, inserts, deletes or moves one cell, and lists cells.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_execution::Edit;
use cellwright_operations::cells::{CellRequest, change_cell, parse_operation};
use cellwright_operations::change::BaseRevision;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::json;

use super::super::arguments::{self, LenientString};
use super::super::content::Reply;
use super::super::server::Server;
use super::{Effect, ToolSpec, change, read};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "notebook",
    title: "Change cells of a notebook",
    description: "\
Change one cell. A cell is an index (from 0) or `id:` and the start of its id; ids survive moves. \
edit: replace the `source` of `cell`. insert: new cell with `source` after/before a cell or at index `to` (default: \
at the end; `create` creates the file). delete, move (`to`, `after` or `before`), type (`type`), clear (outputs of \
`cell`, or all). outline: list cells. \
Example: {\"action\": \"insert\", \"path\": \"a.ipynb\", \"after\": \"id:ab12\", \"source\": \"df.head()\"}",
    input_properties: r#"{"action": {"enum": ["edit", "insert", "delete", "move", "type", "clear", "outline"]}, "path": {"type": "string"}, "cell": {"type": "string"}, "source": {"type": "string"}, "type": {"enum": ["code", "markdown", "raw"]}, "after": {"type": "string"}, "before": {"type": "string"}, "to": {"type": "integer", "description": "new index"}, "rev": {"type": "string"}, "create": {"type": "boolean"}}"#,
    required: &["action", "path"],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    action: String,
    path: String,
    cell: Option<LenientString>,
    source: Option<String>,
    r#type: Option<String>,
    after: Option<LenientString>,
    before: Option<LenientString>,
    to: Option<usize>,
    rev: Option<String>,
    #[serde(default)]
    create: bool,
}

pub(super) fn notebook(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let given: Arguments = arguments::parse("notebook", given)?;
    if given.action == "outline" {
        let path = json!(format!("{}:outline", given.path));
        return read::read(server, JsonObject::from_iter([("path".to_owned(), path)]));
    }
    let place = server.roots().resolve_file(&given.path)?;
    let revision = BaseRevision::parse(given.rev)?;
    if given.create && given.action != "insert" {
        let message = format!("`create` is for insert, not for {}", given.action);
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was written"));
    }
    let positions = [
        given.after.is_some(),
        given.before.is_some(),
        given.to.is_some(),
    ];
    if positions.iter().filter(|is_given| **is_given).count() > 1 {
        let message = "`after`, `before` and `to` cannot be combined";
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was written"));
    }
    let string = |value: Option<LenientString>| value.map(|value| value.0);
    let edit = Edit {
        action: given.action,
        cell: string(given.cell),
        source: given.source,
        kind: given.r#type,
        after: string(given.after),
        before: string(given.before),
        to: given.to,
        ..Edit::default()
    };
    let request = CellRequest {
        path: place.file().clone(),
        operation: parse_operation(&edit)?,
        revision,
        create: given.create,
    };
    let changed = change_cell(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::change_reply(server, &place, &changed)
}
