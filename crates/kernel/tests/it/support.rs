//! What these tests share: supervisors, interpreters, a sink that remembers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::process::Supervisor;
use cellwright_kernel::python::{Interpreter, Origin};
use cellwright_kernel::{Kernel, KernelError, Outcome, Request, Stop};
use cellwright_output::{Data, Event, Sink, Stream, Traceback};

pub(crate) fn supervisor() -> Supervisor {
    Supervisor {
        program: env!("CARGO_BIN_EXE_cellwright-supervisor").into(),
        arguments: Vec::new(),
    }
}

pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| name == "PATH" || name == "HOME" || name == "LANG")
        .collect()
}

/// Every interpreter to test with: those of `CELLWRIGHT_TEST_PYTHONS`, else `python3`.
pub(crate) fn interpreters() -> Vec<PathBuf> {
    match std::env::var_os("CELLWRIGHT_TEST_PYTHONS") {
        Some(list) if !list.is_empty() => std::env::split_paths(&list).collect(),
        _ => vec![python()],
    }
}

/// The interpreter of the test environment, else `python3` of the search path.
pub(crate) fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        return python.into();
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("python3"))
        .find(|program| program.exists())
        .expect("python3 is needed")
}

pub(crate) fn spec(python: &Path, cwd: &Path) -> RunnerSpec {
    RunnerSpec {
        interpreter: Interpreter {
            program: python.to_owned(),
            origin: Origin::Explicit,
            environment: None,
            rejected: Vec::new(),
        },
        cwd: cwd.to_owned(),
        env: environment(),
        supervisor: supervisor(),
        // Shared by all tests, as by all kernels of a user.
        staging: vec![Path::new(env!("CARGO_TARGET_TMPDIR")).join("runner")],
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(2),
        trace: None,
    }
}

/// A runner in a folder of its own.
pub(crate) async fn runner(python: &Path) -> (Runner, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let runner = Runner::start(&spec(python, folder.path()), &Stop::never())
        .await
        .unwrap();
    (runner, folder)
}

/// What was heard, in order, streams joined as long as nothing comes between.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) events: Vec<Told>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Out(Vec<u8>),
    Err(Vec<u8>),
    /// MIME types and text of a display; `result` is its number.
    Display {
        data: Vec<(String, Data)>,
        id: Option<String>,
        result: Option<u32>,
    },
    Update {
        data: Vec<(String, Data)>,
        id: String,
    },
    Aside(bool),
    Clear(bool),
    Raised(Traceback),
    Refused(String),
}

impl Sink for Heard {
    fn push(&mut self, event: Event<'_>) {
        let told = match event {
            Event::Text { stream, bytes } => match (stream, self.events.last_mut()) {
                (Stream::Stdout, Some(Told::Out(last)))
                | (Stream::Stderr, Some(Told::Err(last))) => {
                    last.extend_from_slice(bytes);
                    return;
                }
                (Stream::Stdout, _) => Told::Out(bytes.to_vec()),
                (Stream::Stderr, _) => Told::Err(bytes.to_vec()),
            },
            Event::Display { bundle, id, result } => Told::Display {
                data: bundle.data,
                id,
                result,
            },
            Event::Update { bundle, id } => Told::Update {
                data: bundle.data,
                id,
            },
            Event::Clear { wait } => Told::Clear(wait),
            Event::Aside(aside) => Told::Aside(aside),
            Event::Raised(traceback) => Told::Raised(traceback),
            Event::InputRefused { prompt } => Told::Refused(prompt),
        };
        self.events.push(told);
    }
}

impl Heard {
    /// Everything in one line: `out:… err:… [text/plain] !Name`.
    pub(crate) fn line(&self) -> String {
        let parts: Vec<String> = self.events.iter().map(Told::words).collect();
        parts.join(" ")
    }

    pub(crate) fn out(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for event in &self.events {
            if let Told::Out(bytes) = event {
                all.extend_from_slice(bytes);
            }
        }
        all
    }
}

impl Told {
    fn words(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Out(bytes) => format!("out:{:?}", text(bytes)),
            Self::Err(bytes) => format!("err:{:?}", text(bytes)),
            Self::Display { data, result, .. } => {
                let mark = if result.is_some() { "=" } else { "" };
                format!("{mark}[{}]", plain(data))
            }
            Self::Update { data, .. } => format!("update[{}]", plain(data)),
            Self::Clear(wait) => format!("clear({wait})"),
            Self::Aside(aside) => format!("aside({aside})"),
            Self::Raised(traceback) => format!("!{}", traceback.name),
            Self::Refused(prompt) => format!("refused:{prompt:?}"),
        }
    }
}

fn plain(data: &[(String, Data)]) -> String {
    data.iter()
        .find_map(|(mime, data)| match data {
            Data::Text(text) if mime == "text/plain" => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

/// Runs code to its end and returns what was heard.
pub(crate) async fn run(
    kernel: &mut dyn Kernel,
    code: &str,
) -> (Heard, Result<Outcome, KernelError>) {
    run_until(kernel, &Request::new(code), &Stop::never()).await
}

pub(crate) async fn run_until(
    kernel: &mut dyn Kernel,
    request: &Request,
    stop: &Stop,
) -> (Heard, Result<Outcome, KernelError>) {
    let mut heard = Heard::default();
    let outcome = kernel.execute(request, &mut heard, stop).await;
    (heard, outcome)
}

/// Waits until something holds, for at most `patience`.
pub(crate) async fn eventually(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while Instant::now() < until {
        if holds() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    holds()
}

/// Whether a process runs (a zombie does not).
pub(crate) fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state != Some('Z') && state != Some('X')
}
