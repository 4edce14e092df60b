//! `read`: returns a notebook, an artifact or a directory as text.

use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice;
use cellwright_notebook::images::{ImagePlace, StoredImage};
use cellwright_notebook::select::{self, Part, View};
use cellwright_operations::artifact::{parse_address, read_excerpt};
use cellwright_operations::figures::FiguresReport;
use cellwright_operations::outline::outline;
use cellwright_operations::read::{ReadResult, read_selected};
use cellwright_operations::stored_outputs::OutputExtent;
use cellwright_operations::table::count;
use cellwright_output::{ByteSize, Data, Image};
use cellwright_stdext::Directory;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::arguments::{self, Argument, ArgumentKind};
use super::super::content::{Delimiter, Reply, TextPage};
use super::super::images::{ReplyImages, encode};
use super::super::roots::{ConfinedPath, percent_decode};
use super::super::server::{Server, resources};
use super::super::wording;
use super::{Effect, ToolSpec, diff};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "read",
    title: "Read a notebook",
    description: "\
Read a Jupyter notebook (.ipynb) or a text file. Cells begin with a marker such as `# %% [code] cell:3` and count from 0. Also reads a \
directory and artifact://ID (full output or image). Append a selector to the path: `:outline` (first for a large \
notebook), `:cells=3-5`, `:id=ab12`, `:outputs` (with figures as images), `:images`, `:ids`, `:10-40` lines, `:raw` JSON. At most 10000 characters; \
`offset` continues. Example: {\"path\": \"a.ipynb:cells=3-5:outputs\"}",
    search_hint: "jupyter ipynb view cells outputs figure plot",
    is_main: true,
    arguments: &[
        Argument::new("path", ArgumentKind::Text)
            .or(&[
                "file_path",
                "notebook_path",
                "notebook",
                "file",
                "uri",
                "id",
                "artifact",
            ])
            .describe("path[:selector], artifact://ID[:lines], or a directory")
            .required(),
        Argument::new("offset", ArgumentKind::Integer).describe("characters to skip"),
        Argument::new("full", ArgumentKind::Boolean).describe("whole outputs"),
        Argument::new("diff", ArgumentKind::Text)
            .or(&["compare", "base"])
            .describe("compare with this notebook, or a git revision such as HEAD"),
    ],
    output_properties: r#"{"revision": {"type": "string"}, "total_cells": {"type": ["integer", "null"]}, "text": {"type": "string"}, "next_offset": {"type": "integer"}, "notices": {"type": "array"}}"#,
    effect: Effect::ReadOnly,
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    full: bool,
    diff: Option<String>,
}

pub(super) fn read(server: &Server, given: JsonObject) -> Result<Reply, Failure> {
    let Arguments {
        path,
        offset,
        full,
        diff,
    } = arguments::parse("read", SPEC.arguments, given)?;
    let path = match path.split_once("://") {
        Some(("artifact", _)) => return read_artifact(server, &path, offset),
        Some(("kernel", _)) => return read_kernel(server, &path),
        Some(("notebook" | "file", rest)) => {
            percent_decode(rest).ok_or_else(|| unreadable_uri(&path))?
        }
        Some(_) => return Err(unreadable_uri(&path)),
        None => path,
    };
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
    if let Some(old) = diff {
        return diff::diff(server, &old, &place, selector.outputs);
    }
    let engine = server.engine();
    let result = if selector.view == View::Outline && selector.part == Part::All {
        outline(place.file(), engine, server.kernels()).map(ReadResult::Outline)
    } else {
        let extent = if full {
            OutputExtent::Full
        } else {
            OutputExtent::Bounded
        };
        read_selected(place.file(), &selector, extent, engine)
    };
    let result = result.map_err(|failure| place.with_selector_hint(failure))?;
    let (document, text, images) = match result {
        ReadResult::Text(result) => {
            let document = serde_json::to_value(&result).map_err(std::io::Error::from)?;
            (document, result.text, result.images)
        }
        ReadResult::Outline(result) => {
            let mut document = serde_json::to_value(&result).map_err(std::io::Error::from)?;
            if let Some(object) = document.as_object_mut() {
                // The text has the same content in a tenth of the size.
                object.remove("cells");
                object.insert("view".to_owned(), "outline".into());
            }
            (document, result.table().to_string(), Vec::new())
        }
        ReadResult::Figures(report) => return figures_reply(&place, &report),
        ReadResult::Artifact(address) => return read_artifact(server, &address, offset),
    };
    let mut reply = page_reply(server, offset, &place, document, &text)?;
    // The first page has the images.
    if offset == 0 {
        add_stored_images(&mut reply, images);
    }
    Ok(reply)
}

fn unreadable_uri(uri: &str) -> Failure {
    let message = format!("`{}` cannot be read", wording::sanitize_name(uri));
    let failure = Failure::new(Kind::BadArguments, message);
    failure.hint("use the path of a notebook, artifact://ID, notebook:///PATH or kernel://ID")
}

/// Adds the images of stored outputs, with the cells that they belong to.
fn add_stored_images(reply: &mut Reply, stored: Vec<StoredImage>) {
    let mut images = ReplyImages::default();
    for stored in stored {
        let image = Image::from_data(&stored.mime, Data::Text(stored.text));
        let size = image.width.zip(image.height);
        let place = match &stored.place {
            ImagePlace::Output(output) => format!("cell {}, output {output}", stored.cell),
            ImagePlace::Attachment(name) => {
                format!("cell {}, {}", stored.cell, wording::sanitize_name(name))
            }
        };
        let line = images.add_encoded(encode(&image), &stored.mime, size, Some(&place));
        reply.text.push_str(&line);
    }
    reply.images = images.images;
}

/// Replies with the images of a notebook.
fn figures_reply(place: &ConfinedPath, report: &FiguresReport) -> Result<Reply, Failure> {
    let mut text = wording::sanitize(&place.display_path().display().to_string());
    text.push_str(&format!(
        ", {}, revision {}\n",
        count(report.figures.len(), "image"),
        report.revision
    ));
    text.push_str(&wording::format_notices(&report.notices));
    let mut images = ReplyImages::default();
    for figure in &report.figures {
        let location = match (&figure.attachment, figure.output) {
            (Some(name), _) => format!("cell {}, {}", figure.index, wording::sanitize_name(name)),
            (None, output) => format!(
                "cell {}, output {}",
                figure.index,
                output.unwrap_or_default()
            ),
        };
        let size = figure.width.zip(figure.height);
        let mime = wording::sanitize_name(&figure.mime);
        text.push_str(&images.add_encoded(encode(&figure.image), &mime, size, Some(&location)));
    }
    let mut reply = Reply::new(text, report)?;
    reply.images = images.images;
    Ok(reply)
}

/// Reads the state of a session by its URI.
fn read_kernel(server: &Server, uri: &str) -> Result<Reply, Failure> {
    let id = uri.trim_start_matches("kernel://").parse();
    let id = id.map_err(|_| unreadable_uri(uri))?;
    let runtime = tokio::runtime::Handle::current();
    let session = runtime.block_on(resources::read_kernel(server, id))?;
    let state = serde_json::to_string_pretty(&session).map_err(std::io::Error::from)?;
    let text = Delimiter::new()?.enclose("text", &state);
    Ok(Reply::new(text, &session)?)
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
            describe_page(offset, &page, text, document["view"] != "file")
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
        let plural = if cells == 1 { "" } else { "s" };
        head.push_str(&format!(", {cells} cell{plural}"));
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
fn describe_page(offset: usize, page: &TextPage<'_>, text: &str, of_notebook: bool) -> String {
    let total = text.chars().count();
    let end = offset + page.characters;
    let mut description = format!("partial text: characters {offset} to {end} of {total}");
    if !page.is_last {
        description.push_str(&format!("; call again with offset {end} for the next part"));
    }
    if of_notebook {
        description.push_str(
            ". Do not pass a part to `write`: it deletes the cells that are not in the part",
        );
    }
    description
}

fn read_artifact(server: &Server, address: &str, offset: usize) -> Result<Reply, Failure> {
    if let Some(reply) = read_image(server, address)? {
        return Ok(reply);
    }
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

/// Reads an artifact that is an image; `None` if it is not one.
fn read_image(server: &Server, address: &str) -> Result<Option<Reply>, Failure> {
    let (id, _) = parse_address(address)?;
    let store = server.artifacts()?;
    let artifact = store.open_in_project(id)?;
    let mime = artifact.kind.mime();
    if !mime.starts_with("image/") || mime == "image/svg+xml" {
        return Ok(None);
    }
    let image = Image::from_artifact(&store, id, mime);
    let mut images = ReplyImages::default();
    let location = format!("{id}, {}", ByteSize(artifact.bytes()));
    let size = image.width.zip(image.height);
    let text = images.add_encoded(encode(&image), mime, size, Some(&location));
    let mut reply = Reply::new(text, &json!({"path": id.to_string(), "mime": mime}))?;
    reply.images = images.images;
    Ok(Some(reply))
}

/// Maximum number of directory entries in a list.
const ENTRIES_MAX: usize = 200;

/// Lists the notebooks and directories in a directory.
fn list_dir(server: &Server, name: &str, dir: &Directory) -> Result<Reply, Failure> {
    let failed = |error: std::io::Error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not list `{name}`"));
        failure.causes.push(error.to_string());
        failure
    };
    let mut dirs = Vec::new();
    let mut notebooks = Vec::new();
    for entry in std::fs::read_dir(dir.open_path()).map_err(failed)? {
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
    let mut head = wording::sanitize(&dir.path().display().to_string());
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
        "path": dir.path().display().to_string(), "view": "directory", "text": text,
        "roots": roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
        "notices": notices,
    });
    Ok(Reply::new(head, &document)?)
}
