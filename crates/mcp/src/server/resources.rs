//! Notebooks, artifacts and sessions as resources.
//!
//! `notebook:///path/to/a.ipynb` is the text of a notebook, with an optional selector as in `read`; `artifact://7` and
//! `artifact://7:1-40` are full outputs; `kernel://1` is the state of a session.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::reply::SessionInfo;
use cellwright_notebook::select::{self, Selector};
use cellwright_operations::artifact;
use cellwright_operations::read::{ReadResult, read_selected};
use cellwright_operations::stored_outputs::OutputExtent;
use cellwright_output::Artifact;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::failure_document;
use crate::images::encode_base64;
use crate::roots::{ConfinedPath, file_uri, percent_decode};
use crate::server::Server;
use crate::server::notebooks;
use crate::wording;

/// Maximum number of artifacts in a list, newest first.
const LISTED_ARTIFACTS_MAX: usize = 50;

/// Largest resource that a read returns, in bytes.
const READ_LIMIT: u64 = 4 << 20;

/// A resource that a URI names.
pub(crate) enum ResourceId {
    /// A notebook: path and optional selector.
    Notebook(String),
    /// An artifact: address and optional lines.
    Artifact(String),
    /// A session: its id.
    Kernel(u64),
}

impl ResourceId {
    pub(crate) fn parse(uri: &str) -> Result<Self, Failure> {
        if let Some(path) = uri.strip_prefix("notebook://") {
            let path = percent_decode(path).ok_or_else(|| unknown_resource(uri))?;
            return Ok(Self::Notebook(path));
        }
        if uri.starts_with("artifact://") {
            return Ok(Self::Artifact(uri.to_owned()));
        }
        if let Some(id) = uri.strip_prefix("kernel://") {
            return Ok(Self::Kernel(id.parse().map_err(|_| unknown_resource(uri))?));
        }
        Err(unknown_resource(uri))
    }
}

fn unknown_resource(uri: &str) -> Failure {
    let failure = Failure::new(Kind::BadArguments, format!("Resource {uri} does not exist"));
    failure.hint("resources are notebook:///PATH, artifact://ID and kernel://ID")
}

/// Converts a failure into the protocol's error for a resource.
pub(crate) fn not_found_error(uri: &str, failure: &Failure) -> ErrorData {
    let message = wording::format_failure(failure);
    let data = json!({"uri": wording::sanitize(uri), "error": failure_document(failure)});
    ErrorData::resource_not_found(
        message.trim_start_matches("error: ").trim_end().to_owned(),
        Some(data),
    )
}

/// Lists the resources.
pub(crate) async fn list(server: &Server) -> Vec<Resource> {
    let mut all = Vec::new();
    let roots = server.roots().clone();
    let found = tokio::task::spawn_blocking(move || notebooks::find(&roots.directories())).await;
    for path in found.unwrap_or_default() {
        let uri = file_uri(&path).replacen("file://", "notebook://", 1);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let resource = Resource::new(uri, name.into_owned())
            .with_description(path.display().to_string())
            .with_mime_type("text/plain");
        all.push(resource);
    }
    // A host that does not answer lists no sessions.
    for session in server.sessions().await.unwrap_or_default() {
        let (id, name) = (session.id, session.session);
        let resource = Resource::new(format!("kernel://{id}"), name.as_str())
            .with_description(format!("session {name}: its kernel and what it does"))
            .with_mime_type("application/json");
        all.push(resource);
    }
    let store = server.artifacts().ok();
    let mut entries = store
        .and_then(|store| store.list().ok())
        .unwrap_or_default();
    entries.reverse();
    for entry in entries.into_iter().take(LISTED_ARTIFACTS_MAX) {
        let id = entry.id.to_string();
        let resource = Resource::new(id.as_str(), id.trim_start_matches("artifact://"))
            .with_description("full output")
            .with_mime_type(entry.kind.mime())
            .with_size(entry.bytes);
        all.push(resource);
    }
    all
}

/// Templates of the URIs.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    [
        (
            "notebook://{+path}",
            "notebook",
            "A notebook as text with cell markers; append a selector such as :outline or :cells=3-5",
            "text/plain",
        ),
        (
            "artifact://{id}:{first}-{last}",
            "artifact",
            "Lines of a full output; without a range the whole output, up to 4 MiB",
            "text/plain",
        ),
        (
            "kernel://{id}",
            "kernel",
            "A session: its kernel and state",
            "application/json",
        ),
    ]
    .into_iter()
    .map(|(uri, name, what, mime)| {
        ResourceTemplate::new(uri, name)
            .with_description(what)
            .with_mime_type(mime)
    })
    .collect()
}

/// Reads a resource.
pub(crate) async fn read(server: &Server, uri: &str) -> Result<ReadResourceResult, Failure> {
    let contents = match ResourceId::parse(uri)? {
        ResourceId::Kernel(id) => {
            let kernel = read_kernel(server, id).await?;
            let text = serde_json::to_string_pretty(&kernel).map_err(std::io::Error::from)?;
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        ResourceId::Notebook(path) => {
            let server = server.clone();
            let text = run_blocking(move || read_notebook(&server, &path)).await?;
            ResourceContents::text(text, uri).with_mime_type("text/plain")
        }
        ResourceId::Artifact(address) => {
            let (server, uri) = (server.clone(), uri.to_owned());
            run_blocking(move || read_artifact(&server, &address, &uri)).await?
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(std::io::Error::other)?
}

/// The session with this id.
pub(crate) async fn read_kernel(server: &Server, id: u64) -> Result<SessionInfo, Failure> {
    let mut sessions = server.sessions().await?.into_iter();
    let session = sessions.find(|session| session.id == id);
    session.ok_or_else(|| unknown_resource(&format!("kernel://{id}")))
}

/// Splits a path into the notebook and its selector.
pub(crate) fn resolve_notebook(
    server: &Server,
    path: &str,
) -> Result<(ConfinedPath, Selector), Failure> {
    let exists = |name: &str| {
        let place = server.roots().resolve_file(name);
        place.is_ok_and(|place| place.path().symlink_metadata().is_ok())
    };
    let (name, selector) = select::split(path, &exists)?;
    Ok((server.roots().resolve_file(name)?, selector))
}

/// Returns an error if the resource does not exist.
pub(crate) async fn exists(server: &Server, uri: &str) -> Result<(), Failure> {
    match ResourceId::parse(uri)? {
        ResourceId::Notebook(path) => {
            let (place, _) = resolve_notebook(server, &path)?;
            if place.path().symlink_metadata().is_err() {
                return Err(unknown_resource(uri));
            }
        }
        ResourceId::Artifact(address) => {
            let (id, _) = artifact::parse_address(&address)?;
            server.artifacts()?.open_in_project(id)?;
        }
        ResourceId::Kernel(id) => {
            read_kernel(server, id).await?;
        }
    }
    Ok(())
}

fn read_notebook(server: &Server, path: &str) -> Result<String, Failure> {
    let (place, selector) = resolve_notebook(server, path)?;
    let result = read_selected(
        place.file(),
        &selector,
        OutputExtent::Bounded,
        server.engine(),
    )
    .map_err(|failure| place.with_selector_hint(failure))?;
    let text = match result {
        ReadResult::Text(result) => result.text,
        ReadResult::Outline(result) => result.table().to_string(),
        ReadResult::Figures(report) => report.table().to_string(),
        ReadResult::Artifact(_) => return Err(unknown_resource(path)),
    };
    check_size(
        text.len() as u64,
        "read some cells, such as :cells=3-5, or :outline",
    )?;
    Ok(text)
}

fn read_artifact(server: &Server, address: &str, uri: &str) -> Result<ResourceContents, Failure> {
    let (id, ranges) = artifact::parse_address(address)?;
    let mut found: Artifact = server.artifacts()?.open_in_project(id)?;
    let mime = found.kind.mime();
    let read_by_lines = format!("read a range of lines, such as {id}:1-1000");
    let bytes = if ranges.is_empty() {
        check_size(found.bytes(), &read_by_lines)?;
        found.read_raw(0, usize::try_from(READ_LIMIT).unwrap_or(usize::MAX))?
    } else {
        let mut bytes = Vec::new();
        for range in &ranges {
            let last = range.end.map_or(u64::MAX, |end| end as u64);
            let span = found.byte_range(range.start as u64..=last)?;
            check_size(bytes.len() as u64 + span.end - span.start, &read_by_lines)?;
            let length = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
            bytes.extend(found.read_raw(span.start, length)?);
        }
        bytes
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) if !mime.starts_with("image/") || mime == "image/svg+xml" => {
            ResourceContents::text(text, uri)
        }
        Ok(text) => ResourceContents::blob(encode_base64(text.as_bytes()), uri),
        Err(error) if mime.starts_with("text/") => {
            ResourceContents::text(String::from_utf8_lossy(error.as_bytes()).into_owned(), uri)
        }
        Err(error) => ResourceContents::blob(encode_base64(error.as_bytes()), uri),
    };
    Ok(contents.with_mime_type(mime))
}

fn check_size(bytes: u64, hint: &str) -> Result<(), Failure> {
    if bytes <= READ_LIMIT {
        return Ok(());
    }
    let message = format!(
        "The resource is too large to read at once: {}",
        cellwright_output::ByteSize(bytes)
    );
    Err(Failure::new(Kind::BadArguments, message).hint(hint.to_owned()))
}
