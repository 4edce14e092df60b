//! `artifact`, and `read artifact://N`: full outputs, kept beside what was shown.

use std::ops::Range;
use std::time::SystemTime;

use cellwright_output::{
    Artifact, ArtifactId, ArtifactInfo, Artifacts, ByteSize, LiveTarget, LiveText, Pattern,
    SearchOptions, SearchResults,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use crate::console::{Console, StdStream};
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::operations::artifact::{format_hits, parse_address, refuse_binary, store};

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
    screen: &Console,
) -> Result<(), Failure> {
    let store = store(engine)?;
    match &args.action {
        Action::List => list(store, screen),
        Action::Path { id } => {
            let artifact = store.open(id.parse()?)?;
            let path = artifact.path().display().to_string();
            if screen.json {
                return screen
                    .print_json(&json!({"artifact": artifact.id.to_string(), "path": path}));
            }
            screen.print(&format!("{path}\n"))
        }
        Action::Show(show) => {
            let pattern = match (&show.grep, &show.regex) {
                (Some(text), _) => Pattern::Plain(text.clone()),
                (None, Some(text)) => Pattern::Regex(text.clone()),
                (None, None) => return print_artifact(&show.id, engine, screen),
            };
            let (id, _) = parse_address(&show.id)?;
            let search = SearchOptions {
                max_hits: show.most,
                context: show.context,
                ..SearchOptions::default()
            };
            let hits = store.open(id)?.search(&pattern, &search)?;
            show_hits(id, &hits, screen)
        }
    }
}

/// Prints an artifact or some of its lines.
pub(crate) fn print_artifact(
    address_text: &str,
    engine: &Engine,
    screen: &Console,
) -> Result<(), Failure> {
    let (id, ranges) = parse_address(address_text)?;
    let mut artifact = store(engine)?.open(id)?;
    if ranges.is_empty() {
        return whole(&artifact, screen);
    }
    let mut spans = Vec::new();
    for range in &ranges {
        let last = range.end.map_or(u64::MAX, |end| end as u64);
        spans.push(artifact.byte_range(range.start as u64..=last)?);
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
        return screen.print_json(&Report {
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
    let size = ByteSize(bytes);
    let message = format!("That is too much for one JSON document: {size} of {id}");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint(format!(
        "read it in parts, such as `cellwright read {id}:1-1000 --json`, or search it with \
         `cellwright artifact show {} --grep CELL_TEXT_MIN`",
        id.0
    )))
}

/// An artifact, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    artifact: String,
    mime: &'static str,
    bytes: u64,
    lines: u64,
    text: String,
}

fn whole(artifact: &Artifact, screen: &Console) -> Result<(), Failure> {
    let id = artifact.id;
    if screen.json || screen.is_terminal() {
        refuse_binary(artifact)?;
    }
    let span = 0..artifact.bytes();
    if screen.json {
        check_size(id, artifact.bytes())?;
        let bytes = artifact.read_raw(0, usize::try_from(span.end).unwrap_or(usize::MAX))?;
        return screen.print_json(&Report {
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
    screen: &'a Console,
    live: Option<LiveText>,
}

impl<'a> Printer<'a> {
    fn new(screen: &'a Console) -> Self {
        let target = screen.target(StdStream::Stdout);
        let live = (target != LiveTarget::Pipe).then(|| LiveText::new(target));
        Self { screen, live }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(live) = &mut self.live else {
            return self.screen.write_bytes(bytes);
        };
        let mut text = String::new();
        live.push(bytes, &mut text);
        Ok(self.screen.write(StdStream::Stdout, &text)?)
    }

    fn finish(mut self) -> Result<(), Failure> {
        let mut text = String::new();
        if let Some(live) = &mut self.live {
            live.finish(&mut text);
        }
        Ok(self.screen.write(StdStream::Stdout, &text)?)
    }
}

fn show_hits(id: ArtifactId, hits: &SearchResults, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        let found: Vec<_> = hits
            .hits
            .iter()
            .map(|hit| {
                json!({"line": hit.line, "text": hit.text, "before": hit.before, "after": hit.after})
            })
            .collect();
        return screen.print_json(&json!({
            "artifact": id.to_string(), "hits": found, "total": hits.total, "lines": hits.lines_searched,
        }));
    }
    screen.print(&format_hits(hits))?;
    let shown = hits.hits.len() as u64;
    let (total, lines) = (hits.total, hits.lines_searched);
    screen.note(&format!("{shown} of {total} matches in {lines} lines"));
    Ok(())
}

fn list(store: &Artifacts, screen: &Console) -> Result<(), Failure> {
    let entries = store.list()?;
    let now = SystemTime::now();
    let age = |entry: &ArtifactInfo| {
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
        return screen.print_json(&json!({"folder": folder, "artifacts": artifacts}));
    }
    let mut text = String::new();
    for entry in &entries {
        text.push_str(&format!(
            "{:<16} {:>10}  {:<24} {}\n",
            entry.id.to_string(),
            ByteSize(entry.bytes).to_string(),
            entry.kind.mime(),
            ago(age(entry))
        ));
    }
    screen.print(&text)?;
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    screen.note(&format!(
        "{} artifacts, {} in {}",
        entries.len(),
        ByteSize(total),
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
