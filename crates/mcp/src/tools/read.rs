//! `read`: returns a notebook, an artifact or a directory as text.

use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice;
use cellwright_notebook::select::{self, Part, View};
use cellwright_operations::artifact::read_excerpt;
use cellwright_operations::outline::outline;
use cellwright_operations::read::{ReadResult, read_selected};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::content::{Delimiter, Reply, TextPage};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::{arguments, wording};
use super::{Effect, ToolSpec};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "read",
    title: "Read a notebook",
    description: "\
Read a notebook as text: each cell begins with a marker line such as `# %% [code] cell:3`, cells count from 0. \
Also reads a directory (lists notebooks) and artifact://ID (full output). Append a selector to the path: \
`:outline` one line per cell (start here with a large notebook), `:cells=3-5` or `:id=ab12` some cells, \
`:outputs` with outputs, `:ids` with cell ids, `:10-40` lines, `:raw` the JSON. Returns at most 10000 characters; \
for the rest, call again with `next_offset` as `offset`. Keep `revision` for edits. \
Example: {\"path\": \"analysis.ipynb:cells=3-5:outputs\"}",
    input_properties: r#"{"path": {"type": "string", "description": "path[:selector], artifact://ID[:lines], or a directory"}, "offset": {"type": "integer", "description": "characters to skip"}}"#,
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
        return read_artifact(server, &path, offset);
    }
    if let Some((scheme, _)) = path.split_once("://") {
        let message = format!("`{scheme}://` addresses cannot be read");
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("use the path of a notebook, or artifact://ID"));
    }
    // An existing file takes precedence over a selector: its name may contain colons.
    let exists = |name: &str| {
        let place = server.roots().resolve_file(name);
        place.is_ok_and(|place| place.path().symlink_metadata().is_ok())
    };
    let (name, selector) = select::split(&path, &exists)?;
    if let Ok(dir) = server.roots().resolve_dir(name) {
        return list_dir(server, name, &dir);
    }
    let place = server.roots().resolve_file(name)?;
    let engine = server.engine();
    let result = if selector.view == View::Outline && selector.part == Part::All {
        outline(place.file(), engine, server.kernels()).map(ReadResult::Outline)
    } else {
        read_selected(place.file(), &selector, engine)
    };
    let result = result.map_err(|failure| place.with_selector_hint(failure))?;
    let (document, text) = match result {
        ReadResult::Text(result) => {
            let document = serde_json::to_value(&result).map_err(std::io::Error::from)?;
            (document, result.text)
        }
        ReadResult::Outline(result) => {
            let mut document = serde_json::to_value(&result).map_err(std::io::Error::from)?;
            if let Some(object) = document.as_object_mut() {
                // The text has the same content in a tenth of the size.
                object.remove("cells");
                object.insert("view".to_owned(), "outline".into());
            }
            (document, result.table())
        }
        ReadResult::Artifact(address) => return read_artifact(server, &address, offset),
    };
    page_reply(server, offset, &place, document, &text)
}

/// Replies with one page of a text, and with the offset of the next.
fn page_reply(
    server: &Server,
    offset: usize,
    place: &ConfinedPath,
    mut document: Value,
    text: &str,
) -> Result<Reply, Failure> {
    let page = TextPage::at(text, offset, server.options().text_limit);
    let mut notices = document["notices"].take();
    if !page.is_last || offset > 0 {
        let notice = json!(notice::UserNotice::new(
            notice::NoticeKind::TextTruncated,
            describe_page(offset, &page, text)
        ));
        match notices.as_array_mut() {
            Some(notices) => notices.push(notice),
            None => notices = json!([notice]),
        }
    }
    if !page.is_last {
        document["next_offset"] = json!(offset + page.characters);
    }
    let mut head = wording::sanitize(&place.display_path().display().to_string());
    if let Some(cells) = document["total_cells"].as_u64() {
        head.push_str(&format!(", {cells} cells"));
    }
    if let Some(revision) = document["revision"].as_str() {
        head.push_str(&format!(", revision {revision}"));
    }
    head.push('\n');
    let listed: Vec<notice::UserNotice> =
        serde_json::from_value(notices.clone()).unwrap_or_default();
    head.push_str(&wording::format_notices(&listed));
    head.push_str(&Delimiter::new()?.enclose("text", page.text));
    document["text"] = json!(page.text);
    document["notices"] = notices;
    Ok(Reply::new(head, &document)?)
}

/// Describes which part of the text a page is, and how to read the next.
fn describe_page(offset: usize, page: &TextPage<'_>, text: &str) -> String {
    let total = text.chars().count();
    let end = offset + page.characters;
    let mut description = format!("partial text: characters {offset} to {end} of {total}");
    if !page.is_last {
        description.push_str(&format!("; call again with offset {end} for the next part"));
    }
    description
        .push_str(". Do not pass a part to `write`: it deletes the cells that are not in the part");
    description
}

fn read_artifact(server: &Server, address: &str, offset: usize) -> Result<Reply, Failure> {
    let part = read_excerpt(
        address,
        &server.artifacts()?,
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
        let text = format!("partial text: call again with offset {next} for the next part");
        let notice = notice::UserNotice::new(notice::NoticeKind::TextTruncated, text);
        head.push_str(&wording::format_notices(std::slice::from_ref(&notice)));
        document["next_offset"] = json!(next);
        document["notices"] = json!([notice]);
    }
    head.push_str(&Delimiter::new()?.enclose("text", &part.text));
    Ok(Reply::new(head, &document)?)
}

/// Maximum number of directory entries in a list.
const ENTRIES_MAX: usize = 200;

/// Lists the notebooks and directories in a directory.
fn list_dir(server: &Server, name: &str, dir: &Path) -> Result<Reply, Failure> {
    let failed = |error: std::io::Error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not list `{name}`"));
        failure.causes.push(error.to_string());
        failure
    };
    let mut dirs = Vec::new();
    let mut notebooks = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir {
            dirs.push(format!("{name}/"));
        } else if Path::new(&name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
        {
            notebooks.push(name);
        }
    }
    dirs.sort();
    notebooks.sort();
    let total = dirs.len() + notebooks.len();
    let listed: Vec<String> = notebooks
        .into_iter()
        .chain(dirs)
        .take(ENTRIES_MAX)
        .collect();
    let mut text = listed.join("\n");
    if text.is_empty() {
        text.push_str("no notebooks and no directories");
    }
    let mut head = wording::sanitize(&dir.display().to_string());
    head.push_str(", notebooks and directories\n");
    let mut notices = Vec::new();
    if total > ENTRIES_MAX {
        let text = format!("showing {ENTRIES_MAX} of {total} entries");
        notices.push(notice::UserNotice::new(
            notice::NoticeKind::ListTruncated,
            text,
        ));
    }
    head.push_str(&wording::format_notices(&notices));
    head.push_str(&Delimiter::new()?.enclose("text", &text));
    let roots = server.roots().paths();
    let document = json!({
        "path": dir.display().to_string(), "view": "directory", "text": text,
        "roots": roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
        "notices": notices,
    });
    Ok(Reply::new(head, &document)?)
}
