//! A whole notebook in one call, on kernels that do what the cells say.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_kernel::backend::scripted::{Scripted, Step};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::Launch;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, Stop, StopReason};
use cellwright_output::{Stream, Traceback};
use cellwright_run::{CellStatus, Choice, Edit, Options, Report, RunError, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{document, laid_out, put_out};

/// Kernels that do what the words of a cell say, and remember what they were given.
#[derive(Clone, Default)]
struct Kernels {
    ran: Arc<Mutex<Vec<String>>>,
    /// Done when one is started.
    meanwhile: Option<Arc<dyn Fn() + Send + Sync>>,
    none: bool,
}

impl Launch for Kernels {
    fn start(&self, _stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let kernels = self.clone();
        Box::pin(async move {
            if let Some(meanwhile) = &kernels.meanwhile {
                meanwhile();
            }
            if kernels.none {
                return Err(KernelError::NoSession);
            }
            let ran = kernels.ran;
            let (kernel, _) = Scripted::playing(move |code| {
                ran.lock().unwrap().push(code.to_owned());
                steps(code)
            });
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

fn steps(code: &str) -> Vec<Step> {
    let killed = Exit {
        signal: Some(9),
        ..Exit::UNKNOWN
    };
    let say = |text: &str| Step::Say(Stream::Stdout, format!("{text}\n"));
    match code.split_once(' ').unwrap_or((code, "")) {
        ("raise", name) => vec![Step::Raise(Traceback {
            name: name.to_owned(),
            ..Traceback::default()
        })],
        ("die", text) => vec![say(text), Step::Die(killed)],
        ("wait", text) => vec![say(text), Step::RunUntilStopped],
        ("late", text) => vec![Step::SayLate(
            Duration::ZERO,
            Stream::Stdout,
            format!("{text}\n"),
        )],
        ("exit", code) => vec![Step::Exit(code.parse().unwrap())],
        (_, text) => vec![say(text)],
    }
}

struct Stand {
    folder: TempDir,
    kernels: Kernels,
}

impl Stand {
    fn with(sources: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("a.ipynb"), laid_out(&document(sources))).unwrap();
        Self {
            folder,
            kernels: Kernels::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, options: Options) -> Result<Report, RunError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let launch = Arc::new(self.kernels.clone());
        runtime.block_on(run(&self.path("a.ipynb"), options, launch, Stop::new()))
    }

    fn ran(&self) -> Vec<String> {
        self.kernels.ran.lock().unwrap().clone()
    }

    fn outputs(&self, name: &str) -> Vec<String> {
        put_out(&read(&self.path(name)))
    }

    fn content(&self) -> String {
        std::fs::read_to_string(self.path("a.ipynb")).unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn statuses(report: &Report) -> Vec<&'static str> {
    let word = |status: &CellStatus| match status {
        CellStatus::NotRun => "not run",
        CellStatus::Completed => "completed",
        CellStatus::Raised(_) => "raised",
        CellStatus::Stopped(_) => "stopped",
        CellStatus::Kernel(_) => "kernel",
        _ => "other",
    };
    report.cells.iter().map(|cell| word(&cell.status)).collect()
}

#[test]
fn cells_run_in_order_and_what_they_say_is_in_the_file() {
    let stand = Stand::with(&["say zero", "", "say two", "late three"]);
    let report = stand.run(Options::default()).unwrap();
    assert_eq!(stand.ran(), ["say zero", "say two", "late three"]);
    assert_eq!(statuses(&report), ["completed"; 3]);
    assert!(report.is_well());
    assert_eq!(stand.outputs("a.ipynb"), ["zero", "old", "two", "three"]);
    assert_eq!(report.cells[1].text, "two\n");
    let document = read(&stand.path("a.ipynb"));
    assert_eq!(
        document["metadata"]["kernelspec"]["name"],
        report.kernel.unwrap().name
    );
}

#[test]
fn a_cell_that_does_not_end_well_is_the_last_and_says_so() {
    for (middle, status, said) in [
        ("raise ValueError", "raised", "!ValueError"),
        ("exit 3", "raised", "!SystemExit"),
        ("die words", "kernel", "words !KernelDied"),
    ] {
        let stand = Stand::with(&["say zero", middle, "say two"]);
        let report = stand.run(Options::default()).unwrap();
        assert_eq!(
            statuses(&report),
            ["completed", status, "not run"],
            "{middle}"
        );
        assert!(!report.is_well());
        assert_eq!(stand.outputs("a.ipynb"), ["zero", said, "old"], "{middle}");
    }
    let stand = Stand::with(&["raise ValueError", "say one"]);
    let report = stand
        .run(Options {
            keep_going: true,
            ..Options::default()
        })
        .unwrap();
    assert_eq!(statuses(&report), ["raised", "completed"]);
}

#[test]
fn time_limits_end_cells_and_the_file_says_so() {
    let limited: [fn(&mut Options); 2] = [
        |options| options.timeout = Some(Duration::from_millis(300)),
        |options| options.total_timeout = Some(Duration::from_millis(300)),
    ];
    for limit in limited {
        let stand = Stand::with(&["say zero", "wait words", "say two"]);
        let mut options = Options::default();
        limit(&mut options);
        let report = stand.run(options).unwrap();
        assert_eq!(statuses(&report), ["completed", "stopped", "not run"]);
        assert!(matches!(
            report.cells[1].status,
            CellStatus::Stopped(StopReason::TimedOut(_))
        ));
        let outputs = stand.outputs("a.ipynb");
        assert!(
            outputs[1].starts_with("words ") && outputs[1].ends_with("!CellTimeout"),
            "{outputs:?}"
        );
        assert_eq!(outputs[2], "old");
    }
}

#[test]
fn whoever_stops_it_has_what_ran() {
    let stand = Stand::with(&["say zero", "wait words", "say two"]);
    let (stopper, stop) = Stop::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let path = stand.path("a.ipynb");
    let launch = Arc::new(stand.kernels.clone());
    let report = runtime.block_on(async {
        let ends = async {
            while stand.ran().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stopper.stop(StopReason::Cancelled);
        };
        tokio::join!(
            run(&path, Options::default(), launch, (stopper.clone(), stop)),
            ends
        )
        .0
    });
    assert_eq!(
        statuses(&report.unwrap()),
        ["completed", "stopped", "not run"]
    );
    let outputs = stand.outputs("a.ipynb");
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("zero", "old"));
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
}

#[test]
fn edits_are_made_when_there_is_a_kernel_and_not_otherwise() {
    let edits = || Options {
        edits: vec![Edit::source("0", "say edited")],
        ..Options::default()
    };
    let mut stand = Stand::with(&["say zero"]);
    let before = stand.content();
    stand.kernels.none = true;
    let error = stand.run(edits()).unwrap_err();
    assert!(matches!(error, RunError::Kernel(_)), "{error}");
    assert_eq!(stand.content(), before);
    stand.kernels.none = false;
    stand.run(edits()).unwrap();
    assert_eq!(stand.outputs("a.ipynb"), ["edited"]);
    let bad = Options {
        edits: vec![Edit::source("7", "say nothing")],
        ..Options::default()
    };
    let before = stand.content();
    assert!(matches!(stand.run(bad), Err(RunError::Look(_))));
    assert_eq!(stand.content(), before);
}

#[test]
fn a_notebook_that_changes_while_the_kernel_starts_runs_only_what_was_read() {
    let mut stand = Stand::with(&["say zero", "say one"]);
    let path = stand.path("a.ipynb");
    let theirs = stand.content().replace("say one", "say theirs");
    let written = theirs.clone();
    stand.kernels.meanwhile = Some(Arc::new(move || std::fs::write(&path, &written).unwrap()));
    let error = stand.run(Options::default()).unwrap_err();
    assert!(matches!(error, RunError::Commit(_)), "{error}");
    assert_eq!(stand.ran(), [""; 0]);
    assert_eq!(stand.content(), theirs);
    // What was not to run may change.
    let stand = Stand {
        kernels: Kernels {
            ran: Arc::default(),
            ..stand.kernels
        },
        ..stand
    };
    let first = Options {
        choice: Choice {
            cells: Some("0".to_owned()),
            ..Choice::default()
        },
        ..Options::default()
    };
    stand.run(first).unwrap();
    assert_eq!(stand.outputs("a.ipynb"), ["zero", "old"]);
    assert!(stand.content().contains("say theirs"));
}

#[test]
fn outputs_go_to_another_file_if_wanted() {
    let stand = Stand::with(&["say zero", "raise Error", "say two"]);
    let before = stand.content();
    let elsewhere = Options {
        output: Some(stand.path("b.ipynb")),
        ..Options::default()
    };
    stand.run(elsewhere).unwrap();
    assert_eq!(stand.content(), before);
    assert_eq!(stand.outputs("b.ipynb"), ["zero", "!Error", ""]);
    // Onto itself it is in place.
    let itself = Options {
        output: Some(stand.path("a.ipynb")),
        ..Options::default()
    };
    stand.run(itself).unwrap();
    assert_eq!(stand.outputs("a.ipynb"), ["zero", "!Error", "old"]);
}
