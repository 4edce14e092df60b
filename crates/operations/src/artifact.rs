//! Lists, reads and searches artifacts.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_notebook::select::{self, IndexRange, Part, View};
use cellwright_output::{
    Artifact, ArtifactId, ArtifactInfo, ArtifactKind, Artifacts, ByteSize, Pattern, SearchOptions,
    SearchResults, clean,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::table::{Table, format_seconds};

/// Largest text in an [`ArtifactReport`] in bytes: the whole text is in memory, here and in the reader.
const REPORT_LIMIT: u64 = 8 << 20;

/// Number of bytes that are read at once.
const CHUNK_SIZE: usize = 1 << 20;

/// Parses the number and the lines in `12`, `artifact://12`, `artifact://12:3-5`.
pub fn parse_address(text: &str) -> Result<(ArtifactId, Vec<IndexRange>), Failure> {
    let (name, selector) = select::split(text, &|_| false)?;
    let ranges = match (selector.view, selector.part) {
        (View::Text | View::Raw, Part::All) => Vec::new(),
        (View::Text | View::Raw, Part::Lines(ranges)) => ranges,
        _ => {
            let message = format!("`{text}`: only lines of an artifact can be selected");
            return Err(
                Failure::new(Kind::BadArguments, message).hint("such as artifact://12:1-40")
            );
        }
    };
    Ok((name.parse()?, ranges))
}

/// The artifact store, for the project of `dir`.
pub fn project_store(engine: &Engine, dir: &Path) -> Result<Artifacts, Failure> {
    engine.artifacts_for(dir).ok_or_else(no_store)
}

/// The artifact store, for the project of the current directory; for no project if the directory does not exist any
/// more.
pub fn current_project_store(engine: &Engine) -> Result<Artifacts, Failure> {
    match working_directory(None) {
        Ok(dir) => project_store(engine, &dir),
        Err(_) => engine.artifacts.clone().ok_or_else(no_store),
    }
}

fn no_store() -> Failure {
    Failure::new(Kind::BadFile, "There is no directory for artifacts")
        .hint("set HOME, or name one in CELLWRIGHT_ARTIFACTS_DIR")
}

/// Artifacts, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactList {
    /// The directory of the store.
    pub directory: String,
    /// The artifacts, oldest first.
    pub artifacts: Vec<ArtifactEntry>,
    /// Number of artifacts that are not listed because they do not belong to the project.
    pub hidden: usize,
}

/// The project that stored an artifact, relative to the project of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactProject {
    /// The project of the caller.
    This,
    /// Another project.
    Other,
}

/// An artifact in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactEntry {
    /// Address of the artifact, `artifact://N`.
    pub artifact: String,
    /// MIME type.
    pub mime: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Time since it was written, in milliseconds.
    pub age_ms: u64,
    /// Path of its file.
    pub path: String,
    /// The project that stored it; `null` for artifacts of older versions.
    pub project: Option<ArtifactProject>,
    /// Path of the notebook whose cell the artifact is from.
    pub notebook: Option<String>,
    /// Index of the cell in the notebook, or in the request, from 0.
    pub index: Option<usize>,
    /// Name of the session that it is from.
    pub session: Option<String>,
}

impl ArtifactList {
    /// Columns: artifact, type, size, age and origin; with `all`, also the project.
    pub fn table(&self, all: bool) -> Table {
        let head = [
            "ARTIFACT", "TYPE", "SIZE", "AGE", "NOTEBOOK", "CELL", "SESSION",
        ];
        let project = all.then_some("PROJECT");
        let mut table = Table::new(head.into_iter().chain(project))
            .right("SIZE")
            .right("AGE")
            .clip_path("NOTEBOOK")
            .hide_first(&["PROJECT", "SESSION", "TYPE", "SIZE"]);
        let here = working_directory(None).unwrap_or_default();
        for entry in &self.artifacts {
            let none = || "-".to_owned();
            let notebook = entry.notebook.as_ref().map(|path| {
                let path = Path::new(path);
                path.strip_prefix(&here)
                    .unwrap_or(path)
                    .display()
                    .to_string()
            });
            let row = [
                entry.artifact.clone(),
                entry.mime.to_owned(),
                ByteSize(entry.bytes).to_string(),
                format_seconds(entry.age_ms / 1000),
                notebook.unwrap_or_else(none),
                entry.index.map_or_else(none, |index| index.to_string()),
                entry.session.clone().unwrap_or_else(none),
            ];
            let project = match entry.project {
                Some(ArtifactProject::This) => "this",
                Some(ArtifactProject::Other) => "another",
                None => "none",
            };
            table.push(row.into_iter().chain(all.then(|| project.to_owned())));
        }
        table
    }
}

/// Lists the artifacts of the store's project, or of all projects.
pub fn list_artifacts(store: &Artifacts, all: bool) -> Result<ArtifactList, Failure> {
    let mut listed = store.list_all()?;
    let total = listed.len();
    if !all {
        listed = store.list()?;
    }
    let now = SystemTime::now();
    let entry = |info: &ArtifactInfo| {
        let origin = store.origin(info.id);
        ArtifactEntry {
            notebook: origin.notebook,
            index: origin.cell,
            session: origin.session,
            artifact: info.id.to_string(),
            mime: info.kind.mime(),
            bytes: info.bytes,
            age_ms: whole_ms(now.duration_since(info.modified).unwrap_or_default()),
            path: info.path.display().to_string(),
            project: info.project.map(|project| {
                if store.project() == Some(project) || store.contains(info) {
                    ArtifactProject::This
                } else {
                    ArtifactProject::Other
                }
            }),
        }
    };
    Ok(ArtifactList {
        directory: store.dir().display().to_string(),
        hidden: total.saturating_sub(listed.len()),
        artifacts: listed.iter().map(entry).collect(),
    })
}

/// A duration in whole milliseconds.
fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The file of an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactPath {
    /// Address of the artifact, `artifact://N`.
    pub artifact: String,
    /// Path of its file.
    pub path: String,
}

/// Finds the file of an artifact of any project, by its number or `artifact://N`.
pub fn find_artifact(id: &str, store: &Artifacts) -> Result<ArtifactPath, Failure> {
    let artifact = store.open(id.parse()?)?;
    Ok(ArtifactPath {
        artifact: artifact.id.to_string(),
        path: artifact.path().display().to_string(),
    })
}

/// A request to search an artifact.
#[derive(Debug)]
pub struct SearchRequest {
    /// The number, or `artifact://N`.
    pub address: String,
    pub pattern: Pattern,
    /// Number of lines around each match.
    pub context: usize,
    /// Maximum number of matches in the result; the others are counted.
    pub hits_max: usize,
}

/// Searches an artifact of any project.
pub fn search_artifact(
    request: &SearchRequest,
    store: &Artifacts,
) -> Result<(ArtifactId, SearchResults), Failure> {
    let (id, _) = parse_address(&request.address)?;
    let options = SearchOptions {
        max_hits: request.hits_max,
        context: request.context,
        ..SearchOptions::default()
    };
    let results = store.open(id)?.search(&request.pattern, &options)?;
    Ok((id, results))
}

/// The lines of an artifact that match a pattern.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchReport {
    /// The artifact.
    artifact: String,
    /// The matching lines, up to the limit of the request.
    hits: Vec<SearchHit>,
    /// Number of matching lines.
    total: u64,
    /// Number of lines that were searched.
    lines: u64,
}

/// A line of an artifact that matches.
#[derive(Debug, Serialize, JsonSchema)]
struct SearchHit {
    /// Number of the line, from 1.
    line: u64,
    /// The line.
    text: String,
    /// Lines before it.
    before: Vec<String>,
    /// Lines after it.
    after: Vec<String>,
}

impl SearchReport {
    /// The document of a search.
    pub fn new(id: ArtifactId, results: &SearchResults) -> Self {
        let hit = |hit: &cellwright_output::SearchHit| SearchHit {
            line: hit.line,
            text: hit.text.clone(),
            before: hit.before.clone(),
            after: hit.after.clone(),
        };
        Self {
            artifact: id.to_string(),
            hits: results.hits.iter().map(hit).collect(),
            total: results.total,
            lines: results.lines_searched,
        }
    }
}

/// An artifact, or the selected lines of it.
pub struct ArtifactContent {
    pub artifact: Artifact,
    /// The selected bytes.
    spans: Vec<Range<u64>>,
    is_whole: bool,
}

/// The text of an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactReport {
    /// Address of the artifact, `artifact://N`.
    artifact: String,
    /// MIME type.
    mime: &'static str,
    /// Size of the whole artifact in bytes.
    bytes: u64,
    /// Number of lines of the whole artifact.
    lines: u64,
    /// The selected text.
    text: String,
}

/// Opens an artifact of any project and finds the selected lines.
pub fn open_artifact(address: &str, store: &Artifacts) -> Result<ArtifactContent, Failure> {
    let (id, ranges) = parse_address(address)?;
    let mut artifact = store.open(id)?;
    if ranges.is_empty() {
        return Ok(ArtifactContent {
            spans: std::iter::once(0..artifact.bytes()).collect(),
            artifact,
            is_whole: true,
        });
    }
    let mut spans = Vec::new();
    for range in &ranges {
        let last = range.end.map_or(u64::MAX, |end| end as u64);
        spans.push(artifact.byte_range(range.start as u64..=last)?);
    }
    spans.retain(|span| !span.is_empty());
    if spans.is_empty() {
        return Err(no_such_lines(id, artifact.lines()?));
    }
    Ok(ArtifactContent {
        artifact,
        spans,
        is_whole: false,
    })
}

impl ArtifactContent {
    /// Whether no lines were selected.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Reads the selected bytes in chunks.
    pub fn for_each_chunk(
        &self,
        mut handle: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for span in &self.spans {
            let mut offset = span.start;
            while offset < span.end {
                let length = usize::try_from(span.end - offset).unwrap_or(CHUNK_SIZE);
                let chunk = self.artifact.read_raw(offset, length.min(CHUNK_SIZE))?;
                if chunk.is_empty() {
                    break;
                }
                offset += chunk.len() as u64;
                handle(&chunk)?;
            }
        }
        Ok(())
    }

    /// Reads the selected text. Rejects binary artifacts and large texts.
    pub fn into_report(mut self) -> Result<ArtifactReport, Failure> {
        if self.is_whole {
            refuse_binary(&self.artifact)?;
        }
        let id = self.artifact.id;
        let size: u64 = self.spans.iter().map(|span| span.end - span.start).sum();
        if size > REPORT_LIMIT {
            let size = ByteSize(size);
            let message = format!("{size} of {id} are too much for one JSON document");
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(hint![
                "read it in parts with ",
                command(format!("read {id}:1-1000 --json")),
                ", or search it with ",
                command(format!("artifact show {} --grep TEXT", id.0)),
            ]));
        }
        let mut bytes = Vec::new();
        self.for_each_chunk(|chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        let lines = if self.is_whole {
            bytes.split_inclusive(|&byte| byte == b'\n').count() as u64
        } else {
            self.artifact.lines()?
        };
        Ok(ArtifactReport {
            artifact: id.to_string(),
            mime: self.artifact.kind.mime(),
            bytes: self.artifact.bytes(),
            lines,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

fn no_such_lines(id: ArtifactId, total: u64) -> Failure {
    let message = format!("{id} has {total} lines; the selected lines are not among them");
    Failure::new(Kind::BadArguments, message)
}

/// A part of an artifact, bounded for a model.
pub struct Excerpt {
    pub artifact: String,
    pub mime: &'static str,
    pub bytes: u64,
    pub lines: u64,
    pub text: String,
    /// Offset of the rest, in bytes of the selected lines; `None` at the end.
    pub next: Option<usize>,
}

/// Reads at most `size_max` bytes of the selected lines, starting at `offset`, without colours. Ends at a line end if
/// one is in the second half. Fails if the artifact belongs to another project.
pub fn read_excerpt(
    address: &str,
    store: &Artifacts,
    offset: usize,
    size_max: usize,
) -> Result<Excerpt, Failure> {
    let (id, ranges) = parse_address(address)?;
    let mut artifact = store.open_in_project(id)?;
    refuse_binary(&artifact)?;
    let total = artifact.lines()?;
    let span = match ranges.as_slice() {
        [] => 0..artifact.bytes(),
        [only] => {
            let last = only.end.map_or(u64::MAX, |end| end as u64);
            artifact.byte_range(only.start as u64..=last)?
        }
        _ => {
            let message = "Only one range of an artifact can be read at a time";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(format!("such as {id}:1-40")));
        }
    };
    if span.is_empty() && !ranges.is_empty() {
        return Err(no_such_lines(id, total));
    }
    let start = span.start.saturating_add(offset as u64).min(span.end);
    let left = usize::try_from(span.end - start).unwrap_or(usize::MAX);
    let mut bytes = artifact.read_bytes(start, left.min(size_max))?;
    if left > size_max
        && let Some(end) = memchr::memrchr(b'\n', &bytes)
        && end >= bytes.len() / 2
    {
        bytes.truncate(end + 1);
    }
    let next = offset + bytes.len();
    Ok(Excerpt {
        artifact: id.to_string(),
        mime: artifact.kind.mime(),
        bytes: artifact.bytes(),
        lines: total,
        next: (bytes.len() < left && !bytes.is_empty()).then_some(next),
        text: clean::plain(&String::from_utf8_lossy(&bytes)),
    })
}

/// Rejects artifacts that are not text.
pub fn refuse_binary(artifact: &Artifact) -> Result<(), Failure> {
    let is_text = !matches!(
        artifact.kind,
        ArtifactKind::Png | ArtifactKind::Jpeg | ArtifactKind::Gif | ArtifactKind::Binary
    );
    if is_text {
        return Ok(());
    }
    let message = format!("{} is {}, not text", artifact.id, artifact.kind.mime());
    let path = artifact.path().display();
    Err(Failure::new(Kind::BadArguments, message).hint(format!("it is in {path}")))
}

/// Formats matching lines with their numbers.
pub fn format_hits(hits: &SearchResults) -> String {
    let mut text = String::new();
    for (position, hit) in hits.hits.iter().enumerate() {
        let around = hit.before.len() + hit.after.len() > 0;
        if around && position > 0 {
            text.push_str("--\n");
        }
        let first = hit.line - hit.before.len() as u64;
        for (number, line) in (first..).zip(&hit.before) {
            text.push_str(&format!("{number}-{line}\n"));
        }
        text.push_str(&format!("{}:{}\n", hit.line, hit.text));
        for (number, line) in (hit.line + 1..).zip(&hit.after) {
            text.push_str(&format!("{number}-{line}\n"));
        }
    }
    text
}
