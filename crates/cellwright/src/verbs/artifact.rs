//! `artifact`, and `read artifact://N`: prints full outputs.

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::artifact::{
    SearchReport, SearchRequest, current_project_store, find_artifact, format_hits, list_artifacts,
    open_artifact, refuse_binary, search_artifact,
};
use cellwright_operations::table::count;
use cellwright_output::{ArtifactId, ByteSize, LiveTarget, LiveText, Pattern, SearchResults};
use clap::{Args, Subcommand};

use crate::console::{Console, StdStream};

/// Arguments of `artifact`.
#[derive(Debug, Args)]
#[command(after_help = "\
An artifact is a full output on disk. Cellwright stores one when it shows or saves only a part of an output. The artifact belongs to the project in which the command runs: the nearest directory with `.cellwright` or `.git`, else the current directory.

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
    /// List the artifacts of the project, oldest first
    #[command(after_help = "\
Examples:
  cellwright artifact list --json
  cellwright artifact list --all")]
    List {
        /// List the artifacts of all projects
        #[arg(long)]
        all: bool,
    },
    /// Print an artifact or a part of it, like `cellwright read artifact://N`
    #[command(after_help = "\
Examples:
  cellwright artifact show 12:1-40
  cellwright artifact show 12 --grep Traceback --context 5")]
    Show(ShowArgs),
    /// Print the path of an artifact's file
    #[command(after_help = "\
Example:
  less $(cellwright artifact path 12)")]
    Path {
        /// Number, or `artifact://N`
        id: String,
    },
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Number, or `artifact://N`, with an optional line range
    #[arg(value_name = "N[:LINES]")]
    id: String,
    /// Print only lines that contain this text, with their numbers
    #[arg(long, value_name = "TEXT", conflicts_with = "regex")]
    grep: Option<String>,
    /// Print only lines that match this regular expression, with their numbers
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// Lines to print around each match
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    context: usize,
    /// Maximum number of matches to print; the others are counted
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    most: usize,
}

/// Carries out an action and prints its result.
pub(crate) fn artifact(
    args: &ArtifactArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    match &args.action {
        Action::List { all } => list(*all, engine, console),
        Action::Path { id } => {
            let found = find_artifact(id, &current_project_store(engine)?)?;
            if console.json {
                return console.print_json(&found);
            }
            console.print(&format!("{}\n", found.path))
        }
        Action::Show(show) => {
            let pattern = match (&show.grep, &show.regex) {
                (Some(text), _) => Pattern::Plain(text.clone()),
                (None, Some(text)) => Pattern::Regex(text.clone()),
                (None, None) => return print_artifact(&show.id, engine, console),
            };
            let request = SearchRequest {
                address: show.id.clone(),
                pattern,
                context: show.context,
                hits_max: show.most,
            };
            let (id, hits) = search_artifact(&request, &current_project_store(engine)?)?;
            print_hits(id, &hits, console)
        }
    }
}

/// Prints an artifact or some of its lines.
pub(crate) fn print_artifact(
    address: &str,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let content = open_artifact(address, &current_project_store(engine)?)?;
    if console.json {
        return console.print_json(&content.into_report()?);
    }
    if content.is_whole() && console.is_terminal() {
        refuse_binary(&content.artifact)?;
    }
    let mut printer = Printer::new(console);
    content.for_each_chunk(|chunk| printer.push(chunk))?;
    printer.finish()
}

/// Writes bytes unchanged to a pipe, and as text without control sequences to a terminal.
struct Printer<'a> {
    console: &'a Console,
    live: Option<LiveText>,
}

impl<'a> Printer<'a> {
    fn new(console: &'a Console) -> Self {
        let target = console.target(StdStream::Stdout);
        let live = (target != LiveTarget::Pipe).then(|| LiveText::new(target));
        Self { console, live }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(live) = &mut self.live else {
            return self.console.write_bytes(bytes);
        };
        let mut text = String::new();
        live.push(bytes, &mut text);
        Ok(self.console.write_styled(StdStream::Stdout, &text)?)
    }

    fn finish(mut self) -> Result<(), Failure> {
        let mut text = String::new();
        if let Some(live) = &mut self.live {
            live.finish(&mut text);
        }
        Ok(self.console.write_styled(StdStream::Stdout, &text)?)
    }
}

fn print_hits(id: ArtifactId, hits: &SearchResults, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(&SearchReport::new(id, hits));
    }
    console.print(&format_hits(hits))?;
    let shown = hits.hits.len() as u64;
    let (total, lines) = (hits.total, hits.lines_searched);
    let matches = if total == 1 { "match" } else { "matches" };
    let plural = if lines == 1 { "" } else { "s" };
    console.note(&format!(
        "{shown} of {total} {matches} in {lines} line{plural}"
    ));
    Ok(())
}

fn list(all: bool, engine: &Engine, console: &Console) -> Result<(), Failure> {
    let list = list_artifacts(&current_project_store(engine)?, all)?;
    if console.json {
        return console.print_json(&list);
    }
    if !list.artifacts.is_empty() {
        console.print_table(&list.table(all))?;
    }
    let total: u64 = list.artifacts.iter().map(|entry| entry.bytes).sum();
    console.note(&format!(
        "{}, {} in {}",
        count(list.artifacts.len(), "artifact"),
        ByteSize(total),
        list.directory
    ));
    if list.hidden > 0 {
        console.note(&format!(
            "artifacts outside of this project: {} (list them with `--all`)",
            list.hidden
        ));
    }
    Ok(())
}
