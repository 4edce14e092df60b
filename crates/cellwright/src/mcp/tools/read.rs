//! `read`: a notebook, an artifact or a folder as text.

use std::path::Path;

use cellwright_notebook::select::{self, Part, View};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::content::{Delimiter, Reply, TextPage};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::{arguments, wording};
use super::{Effect, ToolSpec};
use crate::failure::{Failure, Kind};
use crate::notice;
use crate::operations::artifact::read_excerpt;
use crate::operations::outline::outline;
use crate::operations::read::{ReadResult, read_selected};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "read",
    title: "Read a notebook",
    description: "\
Read a notebook as text: each cell begins with a marker line such as `# %% [code] cell:3`, cells count from 0. \
Also reads a folder (lists notebooks) and artifact://ID (full output). Put a selector behind the path: \
`:outline` one line per cell (best first look at a large notebook), `:cells=3-5` or `:id=ab12` some cells, \
`:outputs` with outputs, `:ids` with cell ids, `:10-40` lines, `:raw` the JSON. At most 10000 characters come \
back; to go on, call again with `next_offset` as `offset`. Keep `revision` for edits. \
Example: {\"path\": \"analysis.ipynb:cells=3-5:outputs\"}",
    input_properties: r#"{"path": {"type": "string", "description": "path[:selector], artifact://ID[:lines], or a folder"}, "offset": {"type": "integer", "description": "characters to leave out at the beginning"}}"#,
    required: &["path"],
    output_properties: r#"{"revision": {"type": "string"}, "total_cells": {"type": ["integer", "null"]}, "text": {"type": "string"}, "next_offset": {"type": "integer"}, "notices": {"type": "array"}}"#,
    effect: Effect::ReadOnly,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    offset: usize,
}

pub(super) fn read(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments { path, offset } = arguments::parse("read", given)?;
    if path.starts_with("artifact://") {
        return of_artifact(server, &path, offset);
    }
    if let Some((scheme, _)) = path.split_once("://") {
        let message = format!("`{scheme}://` addresses cannot be read");
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("give the path of a notebook, or artifact://ID"));
    }
    // What is there counts as a name, whatever colons are in it.
    let exists = |name: &str| {
        let place = server.roots().resolve_file(name);
        place.is_ok_and(|place| place.path().symlink_metadata().is_ok())
    };
    let (name, selector) = select::split(&path, &exists)?;
    if let Ok(folder) = server.roots().resolve_dir(name) {
        return of_folder(server, name, &folder);
    }
    let place = server.roots().resolve_file(name)?;
    let engine = server.engine();
    // Which cells are as they ran is known by the name, not by the way there.
    let answer = if selector.view == View::Outline && selector.part == Part::All {
        outline(place.path(), &place.display_path, engine, server.kernels())
            .map(ReadResult::Outline)
    } else {
        read_selected(place.path(), &selector, engine)
    };
    let answer = answer.map_err(|failure| place.with_display_path(failure))?;
    let (mut document, text) = match answer {
        ReadResult::Text(answer) => {
            let document = serde_json::to_value(&answer).map_err(std::io::Error::from)?;
            (document, answer.text)
        }
        ReadResult::Outline(answer) => {
            let mut document = serde_json::to_value(&answer).map_err(std::io::Error::from)?;
            if let Some(object) = document.as_object_mut() {
                // The text says the same in a tenth of the room.
                object.remove("cells");
                object.insert("view".to_owned(), "outline".into());
            }
            (document, answer.table())
        }
        ReadResult::Artifact(address) => return of_artifact(server, &address, offset),
    };
    place.set_display_path(&mut document);
    bounded(server, offset, &place, document, &text)
}

/// A piece of a text that may be too long for a model, and where it goes on.
fn bounded(
    server: &Server,
    offset: usize,
    place: &ConfinedPath,
    mut document: Value,
    text: &str,
) -> Result<Reply, Failure> {
    let piece = TextPage::at(text, offset, server.options().text_limit);
    let mut notices = document["notices"].take();
    if !piece.last || offset > 0 {
        let told = json!(notice::UserNotice::new(
            notice::NoticeKind::TextCut,
            where_it_is(offset, &piece, text)
        ));
        match notices.as_array_mut() {
            Some(notices) => notices.push(told),
            None => notices = json!([told]),
        }
    }
    if !piece.last {
        document["next_offset"] = json!(offset + piece.characters);
    }
    let shown = piece.text;
    let mut head = wording::sanitize(&place.display_path.display().to_string());
    if let Some(cells) = document["total_cells"].as_u64() {
        head.push_str(&format!(", {cells} cells"));
    }
    if let Some(revision) = document["revision"].as_str() {
        head.push_str(&format!(", revision {revision}"));
    }
    head.push('\n');
    let told: Vec<notice::UserNotice> = serde_json::from_value(notices.clone()).unwrap_or_default();
    head.push_str(&wording::format_notices(&told));
    head.push_str(&Delimiter::new()?.enclose("text", shown));
    document["text"] = json!(shown);
    document["notices"] = notices;
    Ok(Reply::new(head, &document)?)
}

/// Which part of a text it is, and how to go on.
fn where_it_is(offset: usize, piece: &TextPage<'_>, text: &str) -> String {
    let total = text.chars().count();
    let end = offset + piece.characters;
    let mut words = format!("this is a part: characters {offset} to {end} of {total}");
    if !piece.last {
        words.push_str(&format!("; the same call with offset {end} reads on"));
    }
    words.push_str(". Do not `write` a part back: cells that are not in it would be deleted");
    words
}

fn of_artifact(server: &Server, address: &str, offset: usize) -> Result<Reply, Failure> {
    let part = read_excerpt(
        address,
        server.engine(),
        offset,
        server.options().text_limit,
    )?;
    let mut head = format!(
        "{}, {}, {} bytes, {} lines\n",
        part.artifact, part.mime, part.bytes, part.lines
    );
    let mut document = json!({
        "path": part.artifact, "view": "artifact", "text": part.text,
        "lines": part.lines, "bytes": part.bytes, "notices": [],
    });
    if let Some(next) = part.next {
        let words = format!("there is more: the same call with offset {next} reads on");
        let told = notice::UserNotice::new(notice::NoticeKind::TextCut, words);
        head.push_str(&wording::format_notices(std::slice::from_ref(&told)));
        document["next_offset"] = json!(next);
        document["notices"] = json!([told]);
    }
    head.push_str(&Delimiter::new()?.enclose("text", &part.text));
    Ok(Reply::new(head, &document)?)
}

/// Entries of a folder that are listed.
const ENTRIES: usize = 200;

/// The notebooks and folders in a folder.
fn of_folder(server: &Server, name: &str, folder: &Path) -> Result<Reply, Failure> {
    let trouble = |error: std::io::Error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not list `{name}`"));
        failure.causes.push(error.to_string());
        failure
    };
    let mut folders = Vec::new();
    let mut notebooks = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(trouble)? {
        let entry = entry.map_err(trouble)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            folders.push(format!("{name}/"));
        } else if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
        {
            notebooks.push(name);
        }
    }
    folders.sort();
    notebooks.sort();
    let total = folders.len() + notebooks.len();
    let listed: Vec<String> = notebooks.into_iter().chain(folders).take(ENTRIES).collect();
    let mut text = listed.join("\n");
    if text.is_empty() {
        text.push_str("no notebooks and no folders");
    }
    let mut head = wording::sanitize(&folder.display().to_string());
    head.push_str(", notebooks and folders\n");
    let mut notices = Vec::new();
    if total > ENTRIES {
        let words = format!("{ENTRIES} of {total} are listed");
        notices.push(notice::UserNotice::new(notice::NoticeKind::ListCut, words));
    }
    head.push_str(&wording::format_notices(&notices));
    head.push_str(&Delimiter::new()?.enclose("text", &text));
    let roots = server.roots().paths();
    let document = json!({
        "path": folder.display().to_string(), "view": "folder", "text": text,
        "roots": roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
        "notices": notices,
    });
    Ok(Reply::new(head, &document)?)
}
