//! `notebook`: changes, inserts, deletes or moves one cell, lists cells, and exports a session.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_execution::Edit;
use cellwright_notebook::Direction;
use cellwright_notebook::edit::Address;
use cellwright_operations::cells::{CellRequest, change_cell, parse_operation};
use cellwright_operations::change::BaseRevision;
use cellwright_operations::declared_parameters::list_parameters;
use cellwright_operations::location::locate;
use cellwright_operations::metadata::{MetadataRequest, MetadataResult, list_tags, metadata};
use cellwright_operations::undo::{UndoRequest, undo as undo_change};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::json;

use super::super::arguments::{
    self, AFTER, Argument, ArgumentKind, BEFORE, CELL, FORCE, INDEX, METADATA, PATH, REVISION,
    SESSION, SOURCE, TAGS, TYPE,
};
use super::super::content::{Delimiter, Reply};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::wording::{format_notices, sanitize};
use super::{Effect, ToolSpec, change, kernels, read};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "notebook",
    title: "Change cells of a notebook",
    description: "\
Change a Jupyter notebook (.ipynb). A cell is an index from 0, or its id. edit: new `source` of `cell`. insert: cell with \
`source` `after`/`before` a cell or at `index` (default: the end; `create` creates the file). delete, move, type, clear (outputs of \
`cell` or all). tag: `tags` x adds, -x removes. meta: `metadata` to merge, null removes (without: show). outline: list cells. parameters: list what `run` accepts as `params`. where: Jupyter servers that have it open. undo, redo a change. export: save what ran in `session` as `path`. \
Example: {\"action\": \"insert\", \"path\": \"a.ipynb\", \"after\": \"ab12\", \"source\": \"df.head()\"}",
    search_hint: "jupyter ipynb insert add delete move markdown cell",
    is_main: true,
    arguments: &[
        Argument::new(
            "action",
            ArgumentKind::OneOf(&[
                "edit",
                "insert",
                "delete",
                "move",
                "type",
                "clear",
                "tag",
                "meta",
                "outline",
                "parameters",
                "where",
                "export",
                "undo",
                "redo",
            ]),
        )
        .or(&["edit_mode", "operation"])
        .required(),
        PATH,
        CELL,
        SOURCE,
        TYPE,
        AFTER,
        BEFORE,
        INDEX,
        TAGS,
        METADATA,
        Argument::new("create", ArgumentKind::Boolean),
        SESSION,
        REVISION,
        FORCE,
    ],
    output_properties: change::OUTPUT_PROPERTIES,
    effect: Effect::Modifies,
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    action: String,
    path: String,
    cell: Option<String>,
    source: Option<String>,
    r#type: Option<String>,
    after: Option<String>,
    before: Option<String>,
    index: Option<usize>,
    tags: Option<Vec<String>>,
    metadata: Option<JsonObject>,
    revision: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    create: bool,
    session: Option<String>,
}

pub(super) fn notebook(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let mut given: Arguments = arguments::parse("notebook", SPEC.arguments, given)?;
    match given.action.as_str() {
        "outline" => {
            let path = json!(format!("{}:outline", given.path));
            return read::read(server, JsonObject::from_iter([("path".to_owned(), path)]));
        }
        "parameters" => return parameters(server, &given.path),
        "where" => return location(server, &given.path),
        "undo" => return undo(server, given, Direction::Undo),
        "redo" => return undo(server, given, Direction::Redo),
        "export" => return kernels::export(server, given.session.as_deref(), &given.path),
        // An index names the cell itself unless the action needs a position.
        "insert" | "move" => {}
        _ if given.cell.is_none() => given.cell = given.index.take().map(|at| at.to_string()),
        _ => {}
    }
    let place = server.roots().resolve_file(&given.path)?;
    let is_shown = match given.action.as_str() {
        "tag" => given.tags.is_none(),
        "meta" => given.metadata.is_none(),
        _ => false,
    };
    if is_shown {
        return show(server, &place, &given);
    }
    let revision = BaseRevision::parse(given.revision)?.with_force(given.force);
    if given.create && given.action != "insert" {
        let message = format!("`create` is for insert, not for {}", given.action);
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was written"));
    }
    let positions = [
        given.after.is_some(),
        given.before.is_some(),
        given.index.is_some(),
    ];
    if positions.iter().filter(|is_given| **is_given).count() > 1 {
        let message = "`after`, `before` and `index` cannot be combined";
        return Err(Failure::new(Kind::BadArguments, message).hint("nothing was written"));
    }
    let edit = Edit {
        action: given.action,
        cell: given.cell,
        source: given.source,
        kind: given.r#type,
        after: given.after,
        before: given.before,
        index: given.index,
        tags: given.tags,
        metadata: given.metadata,
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

/// Undoes or redoes a change of the notebook.
fn undo(server: &Server, given: Arguments, direction: Direction) -> Result<Reply, Failure> {
    let place = server.roots().resolve_file(&given.path)?;
    let request = UndoRequest {
        path: place.file().clone(),
        direction,
        revision: BaseRevision::parse(given.revision)?.with_force(given.force),
    };
    let report = undo_change(&request, server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    change::undo_reply(server, &report)
}

/// Lists the parameters that the notebook accepts.
fn parameters(server: &Server, path: &str) -> Result<Reply, Failure> {
    let place = server.roots().resolve_file(path)?;
    let report = list_parameters(place.file(), server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    let document = serde_json::to_value(&report).map_err(std::io::Error::from)?;
    let mut text = format_notices(&report.notices);
    if !report.parameters.is_empty() {
        text.push_str(&Delimiter::new()?.enclose("parameters", &report.table().to_string()));
    }
    text.extend(report.remark().map(|remark| sanitize(&remark) + "\n"));
    Ok(Reply::new(text, &document)?)
}

/// Lists the Jupyter servers that have the notebook open.
fn location(server: &Server, path: &str) -> Result<Reply, Failure> {
    let place = server.roots().resolve_file(path)?;
    let report = locate(place.file(), server.engine())
        .map_err(|failure| place.with_selector_hint(failure))?;
    let document = serde_json::to_value(&report).map_err(std::io::Error::from)?;
    let mut text = format_notices(&report.notices);
    match report.table() {
        Some(table) => text.push_str(&Delimiter::new()?.enclose("servers", &table.to_string())),
        None => text.push_str(&sanitize(&report.describe_closed())),
    }
    for file in report.connection_files() {
        text.push_str(&format!(
            "connection file: {}\n",
            sanitize(&file.display().to_string())
        ));
    }
    Ok(Reply::new(text, &document)?)
}

/// Lists tags, or shows metadata.
fn show(server: &Server, place: &ConfinedPath, given: &Arguments) -> Result<Reply, Failure> {
    let cell = given.cell.as_deref().map(|cell| {
        Address::parse(cell)
            .ok_or_else(|| Failure::new(Kind::BadArguments, format!("`{cell}` is not a cell")))
    });
    let cell = cell.transpose()?;
    let engine = server.engine();
    let (text, document) = if given.action == "tag" {
        let report = list_tags(place.file(), cell.as_ref(), engine)?;
        let text = match report.text() {
            text if text.is_empty() => "No cell has tags.\n".to_owned(),
            text => text,
        };
        (text, serde_json::to_value(&report))
    } else {
        let request = MetadataRequest {
            path: place.file().clone(),
            cell,
            words: Vec::new(),
            remove: Vec::new(),
            revision: BaseRevision::default(),
        };
        match metadata(&request, engine)? {
            MetadataResult::Shown(report) => (report.text.clone(), serde_json::to_value(&report)),
            MetadataResult::Changed(report) => return change::change_reply(server, place, &report),
        }
    };
    let document = document.map_err(std::io::Error::from)?;
    let text = Delimiter::new()?.enclose("metadata", &text);
    Ok(Reply::new(text, &document)?)
}
