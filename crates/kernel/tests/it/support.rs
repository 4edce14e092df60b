//! Shared by these tests: supervisors, interpreters, a recording sink.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::{Kernel, KernelError, LaunchContext, Outcome, Request, StopSignal};
use cellwright_output::{Data, Event, Sink, Stream, Traceback};

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::new(env!("CARGO_BIN_EXE_cellwright-supervisor"), Vec::new())
}

pub(crate) fn inherited_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| name == "PATH" || name == "HOME" || name == "LANG")
        .collect()
}

/// All interpreters to test with: those of `CELLWRIGHT_TEST_PYTHONS`, else `python3`.
pub(crate) fn interpreters() -> Vec<PathBuf> {
    match std::env::var_os("CELLWRIGHT_TEST_PYTHONS") {
        Some(list) if !list.is_empty() => std::env::split_paths(&list).collect(),
        _ => vec![python()],
    }
}

/// The interpreter of the test environment, else `python3` on `PATH`.
pub(crate) fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        return python.into();
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("python3"))
        .find(|program| program.exists())
        .expect("python3 is needed")
}

/// Starts kernels in `cwd`.
pub(crate) fn launch_context(cwd: &Path) -> LaunchContext {
    LaunchContext {
        cwd: cwd.into(),
        supervisor: supervisor(),
        // Shared by all tests, as by all kernels of a user.
        staging: vec![Path::new(env!("CARGO_TARGET_TMPDIR")).join("runner")],
        sockets: vec![PathBuf::from("/tmp")],
    }
}

pub(crate) fn runner_spec(python: &Path) -> RunnerSpec {
    RunnerSpec {
        python: python.to_owned(),
        env: inherited_environment(),
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(2),
        trace: None,
    }
}

/// Starts a runner in a temporary directory.
pub(crate) async fn start_runner(python: &Path) -> (Runner, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let context = launch_context(dir.path());
    let runner = Runner::start(&runner_spec(python), &context, &StopSignal::never()).await;
    (runner.unwrap(), dir)
}

/// Records events in order. Consecutive text of one stream is joined.
#[derive(Default)]
pub(crate) struct RecordingSink {
    pub(crate) events: Vec<RecordedEvent>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordedEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// MIME types and data of a display; `result` is its execution count.
    Display {
        data: Vec<(String, Data)>,
        id: Option<String>,
        result: Option<u32>,
    },
    Update {
        data: Vec<(String, Data)>,
        id: String,
    },
    ShowOnly(bool),
    Clear(bool),
    Raised(Traceback),
    InputRefused(String),
}

impl Sink for RecordingSink {
    fn push(&mut self, event: Event<'_>) {
        let recorded = match event {
            Event::Text { stream, bytes } => match (stream, self.events.last_mut()) {
                (Stream::Stdout, Some(RecordedEvent::Stdout(last)))
                | (Stream::Stderr, Some(RecordedEvent::Stderr(last))) => {
                    last.extend_from_slice(bytes);
                    return;
                }
                (Stream::Stdout, _) => RecordedEvent::Stdout(bytes.to_vec()),
                (Stream::Stderr, _) => RecordedEvent::Stderr(bytes.to_vec()),
            },
            Event::Display { bundle, id, result } => RecordedEvent::Display {
                data: bundle.data,
                id,
                result,
            },
            Event::Update { bundle, id } => RecordedEvent::Update {
                data: bundle.data,
                id,
            },
            Event::Clear { wait } => RecordedEvent::Clear(wait),
            Event::ShowOnly(show_only) => RecordedEvent::ShowOnly(show_only),
            Event::Raised(traceback) => RecordedEvent::Raised(traceback),
            Event::InputRefused { prompt } => RecordedEvent::InputRefused(prompt),
            Event::Progress(_) | Event::WidgetState(_) => return,
        };
        self.events.push(recorded);
    }
}

impl RecordingSink {
    /// All events in one line: `out:… err:… [text/plain] !Name`.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self.events.iter().map(RecordedEvent::summary).collect();
        parts.join(" ")
    }

    pub(crate) fn stdout(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for event in &self.events {
            if let RecordedEvent::Stdout(bytes) = event {
                all.extend_from_slice(bytes);
            }
        }
        all
    }
}

impl RecordedEvent {
    fn summary(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Stdout(bytes) => format!("out:{:?}", text(bytes)),
            Self::Stderr(bytes) => format!("err:{:?}", text(bytes)),
            Self::Display { data, result, .. } => {
                let prefix = if result.is_some() { "=" } else { "" };
                format!("{prefix}[{}]", plain_text(data))
            }
            Self::Update { data, .. } => format!("update[{}]", plain_text(data)),
            Self::Clear(wait) => format!("clear({wait})"),
            Self::ShowOnly(show_only) => format!("show_only({show_only})"),
            Self::Raised(traceback) => format!("!{}", traceback.name),
            Self::InputRefused(prompt) => format!("refused:{prompt:?}"),
        }
    }
}

fn plain_text(data: &[(String, Data)]) -> String {
    data.iter()
        .find_map(|(mime, data)| match data {
            Data::Text(text) if mime == "text/plain" => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

/// Runs code to its end and returns its events.
pub(crate) async fn run_code(
    kernel: &mut dyn Kernel,
    code: &str,
) -> (RecordingSink, Result<Outcome, KernelError>) {
    run_request(kernel, &Request::new(code), &StopSignal::never()).await
}

pub(crate) async fn run_request(
    kernel: &mut dyn Kernel,
    request: &Request,
    stop: &StopSignal,
) -> (RecordingSink, Result<Outcome, KernelError>) {
    let mut sink = RecordingSink::default();
    let outcome = kernel.execute(request, &mut sink, stop).await;
    (sink, outcome)
}

/// Waits until a condition holds, for at most `timeout`.
pub(crate) async fn eventually(timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    holds()
}

/// Whether a process runs (a zombie does not).
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state != Some('Z') && state != Some('X')
}
