//! `host`: shows, starts and stops the background process that owns sessions.

use std::time::{Duration, UNIX_EPOCH};

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::runtime_dir::{self, RuntimeDir};
use cellwright_host::error::HostError;
use cellwright_host::hello::PROTOCOL;
use cellwright_host::stop::StopOutcome;
use cellwright_host::{find, idle_exit, log, stop};
use cellwright_output::ByteSize;
use cellwright_stdext::rfc3339;
use clap::{Args, Subcommand};
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
        let Some(dir) = RuntimeDir::open(path.clone())? else {
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
            return console.print_json(&json!({"running": false, "directory": dir}));
        }
        return console.print("no host is running\n");
    };
    if console.json {
        let mut document = Map::new();
        document.insert("running".to_owned(), true.into());
        document.insert("directory".to_owned(), path.display().to_string().into());
        if let Value::Object(members) = status {
            document.extend(members);
        }
        return console.print_json(&document);
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
        return console.print_json(&json!({"pid": pid, "forced": forced, "ended": ended}));
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
        return console.print_json(&json!({"pid": pid, "started": started}));
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
    let text = match RuntimeDir::open(path.clone())? {
        Some(dir) => log::last_lines(&dir, args.lines).map_err(|source| HostError::File {
            step: "read the log in",
            path: path.clone(),
            source,
        })?,
        None => String::new(),
    };
    if console.json {
        let lines: Vec<&str> = text.lines().collect();
        let dir = path.display().to_string();
        return console.print_json(&json!({"directory": dir, "lines": lines}));
    }
    if text.is_empty() {
        console.note("there is no log yet");
    }
    console.print(&text)
}

/// Runs a future on a runtime of this thread.
fn block_on<T>(future: impl Future<Output = Result<T, HostError>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future)?)
}
