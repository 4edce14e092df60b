//! A whole notebook in one call, on scripted kernels.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_execution::{
    CellSelection, Edit, ExecutionReport, ExecutionStatus, RunOptions, Stores, run_notebook,
};
use cellwright_kernel::backend::scripted::{ScriptStep, ScriptedKernel};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{BoxFuture, Kernel, KernelError, StopReason, StopSignal};
use cellwright_output::{Stream, Traceback};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{document, jupyter_layout, output_summary};

/// Starts kernels that interpret the first word of a cell as a command, and stores the sources that they run.
#[derive(Clone, Default)]
struct ScriptedLauncher {
    executed: Arc<Mutex<Vec<String>>>,
    /// Called when a kernel is started.
    on_start: Option<Arc<dyn Fn() + Send + Sync>>,
    fails: bool,
}

impl KernelLauncher for ScriptedLauncher {
    fn start(&self, _stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let kernels = self.clone();
        Box::pin(async move {
            if let Some(meanwhile) = &kernels.on_start {
                meanwhile();
            }
            if kernels.fails {
                return Err(KernelError::NoSession);
            }
            let ran = kernels.executed;
            let (kernel, _) = ScriptedKernel::with_script(move |code| {
                ran.lock().unwrap().push(code.to_owned());
                steps(code)
            });
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

fn steps(code: &str) -> Vec<ScriptStep> {
    let killed = Exit {
        signal: Some(9),
        ..Exit::UNKNOWN
    };
    let print = |text: &str| ScriptStep::Print(Stream::Stdout, format!("{text}\n"));
    match code.split_once(' ').unwrap_or((code, "")) {
        ("raise", name) => vec![ScriptStep::Raise(Traceback {
            name: name.to_owned(),
            ..Traceback::default()
        })],
        ("die", text) => vec![print(text), ScriptStep::Die(killed)],
        ("wait", text) => vec![print(text), ScriptStep::RunUntilStopped],
        ("late", text) => vec![ScriptStep::PrintLate(
            Duration::ZERO,
            Stream::Stdout,
            format!("{text}\n"),
        )],
        (_, text) => vec![print(text)],
    }
}

struct RunFixture {
    dir: TempDir,
    kernels: ScriptedLauncher,
}

impl RunFixture {
    fn new(sources: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(
            dir.path().join("a.ipynb"),
            jupyter_layout(&document(sources)),
        )
        .unwrap();
        Self {
            dir,
            kernels: ScriptedLauncher::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, options: RunOptions) -> Result<ExecutionReport, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let launch = Arc::new(self.kernels.clone());
        runtime.block_on(run_notebook(
            &self.path("a.ipynb"),
            options,
            Stores::default(),
            launch,
            StopSignal::new(),
        ))
    }

    fn executed(&self) -> Vec<String> {
        self.kernels.executed.lock().unwrap().clone()
    }

    fn outputs(&self, name: &str) -> Vec<String> {
        output_summary(&read(&self.path(name)))
    }

    fn content(&self) -> String {
        std::fs::read_to_string(self.path("a.ipynb")).unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn statuses(report: &ExecutionReport) -> Vec<&'static str> {
    let status = |cell: &cellwright_execution::CellReport| cell.status.name();
    report.cells.iter().map(status).collect()
}

#[test]
fn cells_run_in_order_and_outputs_are_saved() {
    let fixture = RunFixture::new(&["say zero", "", "say two", "late three"]);
    let report = fixture.run(RunOptions::default()).unwrap();
    assert_eq!(fixture.executed(), ["say zero", "say two", "late three"]);
    assert_eq!(statuses(&report), ["ok"; 3]);
    assert_eq!(report.exit_code(), 0);
    assert_eq!(fixture.outputs("a.ipynb"), ["zero", "old", "two", "three"]);
    assert_eq!(report.cells[1].text(), "two\n");
    let document = read(&fixture.path("a.ipynb"));
    assert_eq!(
        document["metadata"]["kernelspec"]["name"],
        report.kernel.unwrap().name
    );
}

#[test]
fn failed_cell_ends_the_run_with_an_error_output() {
    for (middle, status, summary) in [
        ("raise ValueError", "error", "!ValueError"),
        ("raise SystemExit", "error", "!SystemExit"),
        ("die words", "died", "words !KernelDied"),
    ] {
        let fixture = RunFixture::new(&["say zero", middle, "say two"]);
        let report = fixture.run(RunOptions::default()).unwrap();
        assert_eq!(statuses(&report), ["ok", status, "skipped"], "{middle}");
        assert_ne!(report.exit_code(), 0);
        assert_eq!(
            fixture.outputs("a.ipynb"),
            ["zero", summary, "old"],
            "{middle}"
        );
    }
    let fixture = RunFixture::new(&["raise ValueError", "say one"]);
    let report = fixture
        .run(RunOptions {
            keep_going: true,
            ..RunOptions::default()
        })
        .unwrap();
    assert_eq!(statuses(&report), ["error", "ok"]);
}

#[test]
fn timeouts_stop_cells_and_store_an_error() {
    let limited: [fn(&mut RunOptions); 2] = [
        |options| options.timeout = Some(Duration::from_millis(300)),
        |options| options.total_timeout = Some(Duration::from_millis(300)),
    ];
    for limit in limited {
        let fixture = RunFixture::new(&["say zero", "wait words", "say two"]);
        let mut options = RunOptions::default();
        limit(&mut options);
        let report = fixture.run(options).unwrap();
        assert_eq!(statuses(&report), ["ok", "timeout", "skipped"]);
        assert_eq!(report.status, ExecutionStatus::Timeout);
        let outputs = fixture.outputs("a.ipynb");
        assert!(
            outputs[1].starts_with("words ") && outputs[1].ends_with("!CellTimeout"),
            "{outputs:?}"
        );
        assert_eq!(outputs[2], "old");
    }
}

#[test]
fn stopped_run_keeps_finished_cells() {
    let fixture = RunFixture::new(&["say zero", "wait words", "say two"]);
    let (stopper, stop) = StopSignal::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let path = fixture.path("a.ipynb");
    let launch = Arc::new(fixture.kernels.clone());
    let report = runtime.block_on(async {
        let ends = async {
            while fixture.executed().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stopper.stop(StopReason::Cancelled);
        };
        tokio::join!(
            run_notebook(
                &path,
                RunOptions::default(),
                Stores::default(),
                launch,
                (stopper.clone(), stop)
            ),
            ends
        )
        .0
    });
    assert_eq!(statuses(&report.unwrap()), ["ok", "cancelled", "skipped"]);
    let outputs = fixture.outputs("a.ipynb");
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("zero", "old"));
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
}

#[test]
fn edits_are_applied_only_after_the_kernel_started() {
    let edits = || RunOptions {
        edits: vec![Edit::source("0", "say edited")],
        ..RunOptions::default()
    };
    let mut fixture = RunFixture::new(&["say zero"]);
    let before = fixture.content();
    fixture.kernels.fails = true;
    let error = fixture.run(edits()).unwrap_err();
    assert_eq!(error.kind, Kind::Kernel, "{}", error.message);
    assert_eq!(fixture.content(), before);
    fixture.kernels.fails = false;
    fixture.run(edits()).unwrap();
    assert_eq!(fixture.outputs("a.ipynb"), ["edited"]);
    let bad = RunOptions {
        edits: vec![Edit::source("7", "say nothing")],
        ..RunOptions::default()
    };
    let before = fixture.content();
    assert_eq!(fixture.run(bad).unwrap_err().kind, Kind::BadEdit);
    assert_eq!(fixture.content(), before);
}

#[test]
fn cells_changed_during_kernel_start_do_not_run() {
    let mut fixture = RunFixture::new(&["say zero", "say one"]);
    let path = fixture.path("a.ipynb");
    let edited = fixture.content().replace("say one", "say other");
    let content = edited.clone();
    fixture.kernels.on_start = Some(Arc::new(move || std::fs::write(&path, &content).unwrap()));
    let error = fixture.run(RunOptions::default()).unwrap_err();
    assert_eq!(error.kind, Kind::Conflict, "{}", error.message);
    assert_eq!(fixture.executed(), [""; 0]);
    assert_eq!(fixture.content(), edited);
    // Cells that are not selected may change.
    let fixture = RunFixture {
        kernels: ScriptedLauncher {
            executed: Arc::default(),
            ..fixture.kernels
        },
        ..fixture
    };
    let first = RunOptions {
        selection: CellSelection {
            cells: Some("0".to_owned()),
            ..CellSelection::default()
        },
        ..RunOptions::default()
    };
    fixture.run(first).unwrap();
    assert_eq!(fixture.outputs("a.ipynb"), ["zero", "old"]);
    assert!(fixture.content().contains("say other"));
}

#[test]
fn outputs_can_be_written_to_another_file() {
    let fixture = RunFixture::new(&["say zero", "raise Error", "say two"]);
    let before = fixture.content();
    let elsewhere = RunOptions {
        output: Some(fixture.path("b.ipynb")),
        ..RunOptions::default()
    };
    fixture.run(elsewhere).unwrap();
    assert_eq!(fixture.content(), before);
    assert_eq!(fixture.outputs("b.ipynb"), ["zero", "!Error", ""]);
    // The notebook itself as output means in place.
    let itself = RunOptions {
        output: Some(fixture.path("a.ipynb")),
        ..RunOptions::default()
    };
    fixture.run(itself).unwrap();
    assert_eq!(fixture.outputs("a.ipynb"), ["zero", "!Error", "old"]);
}
