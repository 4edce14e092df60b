//! `artifact`, and `read artifact://N`: full outputs, kept beside what was shown.

use std::ops::Range;
use std::time::SystemTime;

use cellwright_notebook::select::{self, Lines, Part, View};
use cellwright_output::{
    Artifact, ArtifactError, ArtifactId, Artifacts, Bytes, Entry, Hits, Kind as ArtifactKind, Live,
    Pattern, Search, Target, clean,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::screen::{Outlet, Screen};

/// Largest artifact that `--json` puts into its answer as a whole: it would have to fit into memory,
/// here and at the reader's.
const MAX_JSON_BYTES: u64 = 8 << 20;

/// What is read at a time.
const PIECE: usize = 1 << 20;

/// Arguments of `artifact`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cellwright artifact list
  cellwright artifact show 12:1-40
  cellwright artifact show 12 --grep Traceback --context 5
  less $(cellwright artifact path 12)")]
pub(crate) struct ArtifactArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is kept, oldest first
    List,
    /// Print an artifact or a part of it, as `read artifact://N` does
    Show(ShowArgs),
    /// Print where an artifact is
    Path {
        /// Its number, or `artifact://N`
        id: String,
    },
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Its number, or `artifact://N`, with lines behind it if only a part is wanted
    #[arg(value_name = "N[:LINES]")]
    id: String,
    /// Only lines that contain this text, with their numbers
    #[arg(long, value_name = "TEXT", conflicts_with = "regex")]
    grep: Option<String>,
    /// Only lines that match this regular expression, with their numbers
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// Lines to show around each match
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    context: usize,
    /// How many matches to show; the others are counted
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    most: usize,
}

/// Does what the action says.
pub(crate) fn artifact(
    args: &ArtifactArgs,
    engine: &Engine,
    screen: &Screen,
) -> Result<(), Failure> {
    let store = store(engine)?;
    match &args.action {
        Action::List => list(store, screen),
        Action::Path { id } => {
            let artifact = store.open(id.parse()?)?;
            let path = artifact.path().display().to_string();
            if screen.json {
                return screen
                    .document(&json!({"artifact": artifact.id.to_string(), "path": path}));
            }
            screen.data(&format!("{path}\n"))
        }
        Action::Show(show) => {
            let pattern = match (&show.grep, &show.regex) {
                (Some(text), _) => Pattern::Plain(text.clone()),
                (None, Some(text)) => Pattern::Regex(text.clone()),
                (None, None) => return read(&show.id, engine, screen),
            };
            let (id, _) = address(&show.id)?;
            let search = Search {
                most_hits: show.most,
                context: show.context,
                ..Search::default()
            };
            let hits = store.open(id)?.search(&pattern, &search)?;
            show_hits(id, &hits, screen)
        }
    }
}

/// Prints an artifact or some of its lines.
pub(crate) fn read(address_text: &str, engine: &Engine, screen: &Screen) -> Result<(), Failure> {
    let (id, ranges) = address(address_text)?;
    let mut artifact = store(engine)?.open(id)?;
    if ranges.is_empty() {
        return whole(&artifact, screen);
    }
    let mut spans = Vec::new();
    for range in &ranges {
        let last = range.end.map_or(u64::MAX, |end| end as u64);
        spans.push(artifact.span(range.start as u64..=last)?);
    }
    spans.retain(|span| !span.is_empty());
    if spans.is_empty() {
        let total = artifact.lines()?;
        let message = format!("{id} has {total} lines; none of those asked for is among them");
        return Err(Failure::new(Kind::BadArguments, message));
    }
    if screen.json {
        let total: u64 = spans.iter().map(|span| span.end - span.start).sum();
        check_size(id, total)?;
        let mut bytes = Vec::new();
        for span in spans {
            pieces(&artifact, span, |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
        }
        return screen.document(&Document {
            artifact: id.to_string(),
            mime: artifact.kind.mime(),
            bytes: artifact.bytes(),
            lines: artifact.lines()?,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    let mut printer = Printer::new(screen);
    for span in spans {
        pieces(&artifact, span, |piece| printer.push(piece))?;
    }
    printer.finish()
}

/// A part of an artifact that is small enough for a model.
pub(crate) struct PartOf {
    pub(crate) artifact: String,
    pub(crate) mime: &'static str,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) text: String,
    /// Where to go on, in bytes of what was asked for, if there is more.
    pub(crate) next: Option<usize>,
}

/// Of what is asked for of an artifact, so many bytes from an offset on, without colours; whole lines where
/// that costs little.
pub(crate) fn part(
    address_text: &str,
    engine: &Engine,
    offset: usize,
    most: usize,
) -> Result<PartOf, Failure> {
    let (id, ranges) = address(address_text)?;
    let mut artifact = store(engine)?.open(id)?;
    refuse_binary(&artifact)?;
    let total = artifact.lines()?;
    let span = match ranges.as_slice() {
        [] => 0..artifact.bytes(),
        [only] => {
            let last = only.end.map_or(u64::MAX, |end| end as u64);
            artifact.span(only.start as u64..=last)?
        }
        _ => {
            let message = "Of an artifact one range is read at a time";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(format!("such as {id}:1-40")));
        }
    };
    if span.is_empty() && !ranges.is_empty() {
        let message = format!("{id} has {total} lines; none of those asked for is among them");
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let start = span.start.saturating_add(offset as u64).min(span.end);
    let left = usize::try_from(span.end - start).unwrap_or(usize::MAX);
    let mut bytes = artifact.read_bytes(start, left.min(most))?;
    if left > most
        && let Some(end) = memchr::memrchr(b'\n', &bytes)
        && end >= bytes.len() / 2
    {
        bytes.truncate(end + 1);
    }
    let next = offset + bytes.len();
    Ok(PartOf {
        artifact: id.to_string(),
        mime: artifact.kind.mime(),
        bytes: artifact.bytes(),
        lines: total,
        next: (bytes.len() < left && !bytes.is_empty()).then_some(next),
        text: clean::plain(&String::from_utf8_lossy(&bytes)),
    })
}

/// Hands a part of an artifact over, piece by piece.
fn pieces(
    artifact: &Artifact,
    span: Range<u64>,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut at = span.start;
    while at < span.end {
        let most = usize::try_from(span.end - at).unwrap_or(PIECE).min(PIECE);
        let piece = artifact.read_raw(at, most)?;
        if piece.is_empty() {
            break;
        }
        at += piece.len() as u64;
        take(&piece)?;
    }
    Ok(())
}

fn check_size(id: ArtifactId, bytes: u64) -> Result<(), Failure> {
    if bytes <= MAX_JSON_BYTES {
        return Ok(());
    }
    let size = Bytes(bytes);
    let message = format!("That is too much for one JSON document: {size} of {id}");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint(format!(
        "read it in parts, such as `cellwright read {id}:1-1000 --json`, or search it with \
         `cellwright artifact show {} --grep TEXT`",
        id.0
    )))
}

/// An artifact, as `--json` prints it.
#[derive(Serialize)]
struct Document {
    artifact: String,
    mime: &'static str,
    bytes: u64,
    lines: u64,
    text: String,
}

/// An error if it is no text.
fn refuse_binary(artifact: &Artifact) -> Result<(), Failure> {
    let is_text = !matches!(
        artifact.kind,
        ArtifactKind::Png | ArtifactKind::Jpeg | ArtifactKind::Binary
    );
    if is_text {
        return Ok(());
    }
    let message = format!("{} is {}, not text", artifact.id, artifact.kind.mime());
    let path = artifact.path().display();
    Err(Failure::new(Kind::BadArguments, message).hint(format!("it is in {path}")))
}

fn whole(artifact: &Artifact, screen: &Screen) -> Result<(), Failure> {
    let id = artifact.id;
    if screen.json || screen.on_terminal() {
        refuse_binary(artifact)?;
    }
    let span = 0..artifact.bytes();
    if screen.json {
        check_size(id, artifact.bytes())?;
        let bytes = artifact.read_raw(0, usize::try_from(span.end).unwrap_or(usize::MAX))?;
        return screen.document(&Document {
            artifact: id.to_string(),
            mime: artifact.kind.mime(),
            bytes: artifact.bytes(),
            lines: bytes.split_inclusive(|&byte| byte == b'\n').count() as u64,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
    }
    let mut printer = Printer::new(screen);
    pieces(artifact, span, |piece| printer.push(piece))?;
    printer.finish()
}

/// Bytes as they are into a pipe; on a terminal nothing that could control it.
struct Printer<'a> {
    screen: &'a Screen,
    live: Option<Live>,
}

impl<'a> Printer<'a> {
    fn new(screen: &'a Screen) -> Self {
        let target = screen.target(Outlet::Stdout);
        let live = (target != Target::Pipe).then(|| Live::new(target));
        Self { screen, live }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(live) = &mut self.live else {
            return self.screen.bytes(bytes);
        };
        let mut text = String::new();
        live.push(bytes, &mut text);
        Ok(self.screen.stream(Outlet::Stdout, &text)?)
    }

    fn finish(mut self) -> Result<(), Failure> {
        let mut text = String::new();
        if let Some(live) = &mut self.live {
            live.finish(&mut text);
        }
        Ok(self.screen.stream(Outlet::Stdout, &text)?)
    }
}

fn show_hits(id: ArtifactId, hits: &Hits, screen: &Screen) -> Result<(), Failure> {
    if screen.json {
        let found: Vec<_> = hits
            .hits
            .iter()
            .map(|hit| {
                json!({"line": hit.line, "text": hit.text, "before": hit.before, "after": hit.after})
            })
            .collect();
        return screen.document(&json!({
            "artifact": id.to_string(), "hits": found, "total": hits.total, "lines": hits.lines,
        }));
    }
    screen.data(&hits_text(hits))?;
    let shown = hits.hits.len() as u64;
    let (total, lines) = (hits.total, hits.lines);
    screen.remark(&format!("{shown} of {total} matches in {lines} lines"));
    Ok(())
}

/// Lines that were found, with their numbers.
pub(crate) fn hits_text(hits: &Hits) -> String {
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

fn list(store: &Artifacts, screen: &Screen) -> Result<(), Failure> {
    let entries = store.list()?;
    let now = SystemTime::now();
    let age = |entry: &Entry| {
        let age = now.duration_since(entry.modified).unwrap_or_default();
        age.as_secs()
    };
    if screen.json {
        let artifacts: Vec<_> = entries
            .iter()
            .map(|entry| {
                json!({
                    "artifact": entry.id.to_string(), "mime": entry.kind.mime(),
                    "bytes": entry.bytes, "age_seconds": age(entry),
                    "path": entry.path.display().to_string(),
                })
            })
            .collect();
        let folder = store.dir().display().to_string();
        return screen.document(&json!({"folder": folder, "artifacts": artifacts}));
    }
    let mut text = String::new();
    for entry in &entries {
        text.push_str(&format!(
            "{:<16} {:>10}  {:<24} {}\n",
            entry.id.to_string(),
            Bytes(entry.bytes).to_string(),
            entry.kind.mime(),
            ago(age(entry))
        ));
    }
    screen.data(&text)?;
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    screen.remark(&format!(
        "{} artifacts, {} in {}",
        entries.len(),
        Bytes(total),
        store.dir().display()
    ));
    Ok(())
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s ago"),
        60..=3599 => format!("{} min ago", seconds / 60),
        3600..=86_399 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// The number and the lines in `12`, `artifact://12`, `artifact://12:3-5`.
pub(crate) fn address(text: &str) -> Result<(ArtifactId, Vec<Lines>), Failure> {
    let (name, selector) = select::split(text, &|_| false)?;
    let ranges = match (selector.view, selector.part) {
        (View::Text | View::Raw, Part::All) => Vec::new(),
        (View::Text | View::Raw, Part::Lines(ranges)) => ranges,
        _ => {
            let message = format!("`{text}`: of an artifact only lines can be selected");
            return Err(
                Failure::new(Kind::BadArguments, message).hint("such as artifact://12:1-40")
            );
        }
    };
    Ok((name.parse()?, ranges))
}

pub(crate) fn store(engine: &Engine) -> Result<&Artifacts, Failure> {
    engine.artifacts.as_ref().ok_or_else(|| {
        Failure::new(Kind::BadFile, "There is no folder for artifacts")
            .hint("set HOME, or name one in CELLWRIGHT_ARTIFACTS_DIR")
    })
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        let failure = Self::new(Kind::BadArguments, error.to_string());
        match error {
            ArtifactError::Missing { available, .. } if available.is_empty() => {
                failure.hint("no artifact is kept at the moment")
            }
            ArtifactError::Missing { available, .. } => {
                let last = &available[available.len().saturating_sub(10)..];
                let names: Vec<String> = last.iter().map(ArtifactId::to_string).collect();
                failure.hint(format!("there are {}", names.join(", ")))
            }
            _ => failure,
        }
    }
}
