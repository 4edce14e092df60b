//! `host`: shows, starts and stops the background process that owns sessions.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_engine::engine::Engine;
use cellwright_engine::runtime_dir::{self, RuntimeDir};
use cellwright_host::error::HostError;
use cellwright_host::hello::PROTOCOL;
use cellwright_host::stop::StopOutcome;
use cellwright_host::{find, idle_exit, log, stop};
use cellwright_output::ByteSize;
use cellwright_stdext::rfc3339;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::console::Console;

/// Time limit for the status of a host that answers.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `host`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sessions that outlive a command belong to the host, one background process per user. Commands start it when they \
need it. It exits after ten minutes without work.

Examples:
  cellwright host status
  cellwright host stop
  cellwright host log --lines 20")]
pub(crate) struct HostArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print whether a host runs, and its sessions
    #[command(after_help = "\
Exit codes: 0 a host answers, or none runs; 2 a host does not answer.

Examples:
  cellwright host status
  cellwright host status --json")]
    Status,
    /// Stop the host and all its sessions, and wait until it has exited
    #[command(after_help = "\
A host that does not answer is stopped with signals if its identity is certain.

Exit codes: 0 no host runs now; 2 the host could not be stopped.

Example:
  cellwright host stop")]
    Stop,
    /// Start a host if none runs
    #[command(after_help = "\
Commands start a host themselves when they need one.

Example:
  cellwright host start")]
    Start,
    /// Print the end of the host's log
    #[command(after_help = "\
Examples:
  cellwright host log
  cellwright host log --lines 500")]
    Log(LogArgs),
}

/// Arguments of `host log`.
#[derive(Debug, Args)]
struct LogArgs {
    /// Number of lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    lines: usize,
}

/// Carries out an action and prints its result.
pub(crate) fn host(args: &HostArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    match &args.action {
        Action::Status => status(console),
        Action::Stop => stop(console),
        Action::Start => start(engine, console),
        Action::Log(args) => show_log(args, console),
    }
}

fn status(console: &Console) -> Result<(), Failure> {
    let path = runtime_dir::default_path();
    let status = block_on(async {
        let Some(dir) = RuntimeDir::open(&path)? else {
            return Ok(None);
        };
        let Some(mut client) = find::connect_existing(&dir).await? else {
            return Ok(None);
        };
        let mut end = client
            .request(&json!({"do": "status"}), STATUS_TIMEOUT)
            .await?;
        Ok(Some(end["status"].take()))
    })?;
    let Some(status) = status else {
        if console.json {
            let dir = path.display().to_string();
            return console.print_json(&HostStatus {
                directory: dir,
                ..HostStatus::default()
            });
        }
        return console.print("no host is running\n");
    };
    if console.json {
        let dir = path.display().to_string();
        return console.print_json(&HostStatus::new(dir, &status));
    }
    console.print(&format_status(&status, &path.display().to_string()))
}

/// Formats a status as text. A host of another version may omit fields.
fn format_status(status: &Value, dir: &str) -> String {
    let number = |name: &str| status[name].as_u64();
    let version = status["version"].as_str().unwrap_or("unknown");
    let mut text = format!(
        "running: pid {}, version {version}\n",
        number("pid").unwrap_or_default()
    );
    if let Some(started) = number("started") {
        let started = UNIX_EPOCH + Duration::from_secs(started);
        text.push_str(&format!("started: {}\n", rfc3339::format_seconds(started)));
    }
    if let Some(bytes) = number("memory_bytes") {
        text.push_str(&format!("memory: {}\n", ByteSize(bytes)));
    }
    if let Some(clients) = number("clients") {
        text.push_str(&format!("clients: {clients}\n"));
    }
    for (name, count) in status["counts"].as_object().into_iter().flatten() {
        text.push_str(&format!("{name}: {count}\n"));
    }
    text.push_str(&format!("directory: {dir}\n"));
    if let Some(protocol) = number("protocol")
        && protocol != u64::from(PROTOCOL)
    {
        text.push_str(&format!(
            "protocol: {protocol}, this command uses {PROTOCOL}; only `cellwright host stop` works\n"
        ));
    }
    text
}

fn stop(console: &Console) -> Result<(), Failure> {
    let stopped = block_on(stop::stop(runtime_dir::default_path()))?;
    let (pid, forced, ended) = match stopped {
        StopOutcome::NotRunning => (None, false, Map::new()),
        StopOutcome::Stopped { pid, ended } => (Some(pid), false, ended),
        StopOutcome::Forced { pid } => (Some(pid), true, Map::new()),
    };
    if console.json {
        return console.print_json(&StoppedHost {
            pid,
            forced,
            ended: counts(&ended),
        });
    }
    let Some(pid) = pid else {
        return console.print("no host was running\n");
    };
    let mut text = format!("ended: pid {pid}");
    if forced {
        text.push_str(" by force, because it did not answer");
    }
    text.push('\n');
    for (name, count) in ended {
        text.push_str(&format!("ended {name}: {count}\n"));
    }
    console.print(&text)
}

fn start(engine: &Engine, console: &Console) -> Result<(), Failure> {
    let settings = engine.settings(&cellwright_engine::kernels::working_directory(None)?)?;
    let idle_exit = idle_exit(&settings);
    let found = block_on(find::find_or_start(runtime_dir::default_path(), idle_exit))?;
    let (pid, started) = (found.client.host.pid, found.started);
    if console.json {
        return console.print_json(&StartedHost { pid, started });
    }
    let word = if started {
        "started"
    } else {
        "already running"
    };
    console.print(&format!("{word}: pid {pid}\n"))
}

fn show_log(args: &LogArgs, console: &Console) -> Result<(), Failure> {
    let path = runtime_dir::default_path();
    let text = match RuntimeDir::open(&path)? {
        Some(dir) => log::last_lines(&dir, args.lines).map_err(|source| HostError::File {
            step: "read the log in",
            path: path.clone(),
            source,
        })?,
        None => String::new(),
    };
    if console.json {
        return console.print_json(&HostLog {
            directory: path.display().to_string(),
            lines: text.lines().map(str::to_owned).collect(),
        });
    }
    if text.is_empty() {
        console.note("there is no log yet");
    }
    console.print(&text)
}

/// The state of the host.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct HostStatus {
    /// Whether a host is running; if not, the following fields are `null`.
    running: bool,
    /// The directory of the host.
    directory: String,
    /// Process id.
    pid: Option<u64>,
    /// Version of the host.
    host_version: Option<String>,
    /// Version of its protocol.
    protocol: Option<u64>,
    /// A random name that identifies this host.
    instance: Option<String>,
    /// Start of the host.
    #[schemars(with = "Option<Timestamp>")]
    started_at: Option<String>,
    /// Time since the start, in milliseconds.
    uptime_ms: Option<u64>,
    /// Memory of the host, in bytes.
    memory_bytes: Option<u64>,
    /// Number of connected clients.
    clients: Option<u64>,
    /// Number of sessions, busy sessions and runs.
    counts: BTreeMap<String, u64>,
}

impl HostStatus {
    /// The document of the reply of a host. A host of another version may omit fields.
    fn new(directory: String, status: &Value) -> Self {
        let number = |name: &str| status[name].as_u64();
        let text = |name: &str| status[name].as_str().map(str::to_owned);
        Self {
            running: true,
            directory,
            pid: number("pid"),
            host_version: text("version"),
            protocol: number("protocol"),
            instance: text("instance"),
            started_at: number("started")
                .map(|seconds| rfc3339::format_seconds(UNIX_EPOCH + Duration::from_secs(seconds))),
            uptime_ms: number("uptime_seconds").map(|seconds| seconds * 1000),
            memory_bytes: number("memory_bytes"),
            clients: number("clients"),
            counts: status["counts"].as_object().map(counts).unwrap_or_default(),
        }
    }
}

/// The numbers of a map.
fn counts(map: &Map<String, Value>) -> BTreeMap<String, u64> {
    let entry = |(name, count): (&String, &Value)| Some((name.clone(), count.as_u64()?));
    map.iter().filter_map(entry).collect()
}

/// A host that was stopped.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StoppedHost {
    /// Process id; `null` if no host was running.
    pid: Option<u32>,
    /// Whether it was killed because it did not answer.
    forced: bool,
    /// Number of sessions and runs that ended with it.
    ended: BTreeMap<String, u64>,
}

/// A host that runs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StartedHost {
    /// Process id.
    pid: u32,
    /// Whether this command started it.
    started: bool,
}

/// The log of the host.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HostLog {
    /// The directory of the host.
    directory: String,
    /// The last lines.
    lines: Vec<String>,
}

/// Runs a future on a runtime of this thread.
fn block_on<T>(future: impl Future<Output = Result<T, HostError>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future)?)
}
