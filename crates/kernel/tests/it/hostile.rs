//! Kernels that violate the protocol, by mistake or on purpose. Each is a process that runs a script of the
//! test (`tests/hostile/kernel.py`). Nothing may hang or panic, unsigned messages are rejected, and reports about the
//! kernel are correct.

mod attached;
mod cells;
mod endings;
mod floods;
mod queries;
mod starts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::kernelspec::{InterruptMode, Kernelspec};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Transport};
use cellwright_kernel::{
    Ending, Kernel, KernelError, KernelState, Outcome, Request, StopReason, StopSignal,
};
use tokio::task::JoinSet;

use crate::support::{RecordingSink, eventually, is_running, launch_context, python, run_request};

/// The time limit of every operation in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(45);

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/kernel.py")
}

fn kernelspec(script: &str) -> Kernelspec {
    let program = program().display().to_string();
    let arguments = ["-I", "-S", &program, "{connection_file}", script];
    Kernelspec {
        name: "odd".to_owned(),
        argv: std::iter::once(python().display().to_string())
            .chain(arguments.map(str::to_owned))
            .collect(),
        language: "spec".to_owned(),
        ..Kernelspec::ipykernel(&python())
    }
}

fn spec(script: &str, dir: &Path) -> JupyterSpec {
    JupyterSpec {
        transport: Transport::Ipc,
        start_timeout: Duration::from_secs(30),
        interrupt_grace: Duration::from_secs(1),
        ..crate::jupyter::spec(kernelspec(script), dir)
    }
}

/// A kernel whose cells are scripts that send arbitrary messages.
struct HostileKernel {
    jupyter: Jupyter,
    _folder: tempfile::TempDir,
}

impl HostileKernel {
    /// Starts a kernel that runs `script` before it opens its sockets.
    async fn start(script: &str) -> Self {
        Self::start_with(script, |_| {}).await
    }

    async fn start_with(script: &str, change: impl FnOnce(&mut JupyterSpec)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut spec = spec(script, dir.path());
        change(&mut spec);
        let context = launch_context(dir.path());
        let kernel = within_timeout(Jupyter::start(&spec, &context, &StopSignal::never())).await;
        Self {
            jupyter: kernel.unwrap(),
            _folder: dir,
        }
    }

    /// Starts a kernel that is interrupted by a message.
    async fn start_with_message_interrupts(script: &str) -> Self {
        Self::start_with(script, |spec| {
            spec.kernelspec.interrupt = InterruptMode::Message;
        })
        .await
    }

    /// Runs a cell. Returns its events, outcome and notices in one line.
    async fn run(&mut self, script: &str) -> String {
        self.run_request(&Request::new(script), &StopSignal::never())
            .await
    }

    async fn run_request(&mut self, request: &Request, stop: &StopSignal) -> String {
        let (recorded, outcome) =
            within_timeout(run_request(&mut self.jupyter, request, stop)).await;
        self.summary(&recorded, &outcome)
    }

    /// Runs a cell, and stops it after `millis` milliseconds.
    async fn run_and_stop(&mut self, script: &str, millis: u64) -> String {
        let stop = StopSignal::never().with_timeout(Duration::from_millis(millis));
        self.run_request(&Request::new(script), &stop).await
    }

    fn summary(
        &mut self,
        recorded: &RecordingSink,
        outcome: &Result<Outcome, KernelError>,
    ) -> String {
        let mut parts = vec![recorded.summary(), outcome_summary(outcome)];
        parts.extend(
            self.jupyter
                .take_notices()
                .into_iter()
                .map(|remark| remark.kind),
        );
        parts.retain(|part| !part.is_empty());
        parts.join(" | ")
    }

    /// Checks that it still runs cells.
    async fn assert_works(&mut self) {
        assert_eq!(self.run(GOOD_CELL).await, GOOD_CELL_SUMMARY);
        assert!(self.jupyter.is_alive());
    }

    /// Checks that it is dead and rejects cells.
    async fn assert_over(mut self) {
        assert!(!self.jupyter.is_alive());
        let (recorded, outcome) = within_timeout(run_request(
            &mut self.jupyter,
            &Request::new(GOOD_CELL),
            &StopSignal::never(),
        ))
        .await;
        assert_eq!(self.summary(&recorded, &outcome), "died unbegun");
        self.assert_shuts_down().await;
    }

    /// Shuts it down, and checks that its process is gone.
    async fn assert_shuts_down(self) {
        let pid = self.jupyter.description().pid.unwrap();
        let deadline = StopSignal::never().with_timeout(Duration::from_millis(500));
        within_timeout(Box::new(self.jupyter).shutdown(deadline)).await;
        assert!(!is_running(pid));
    }
}

const GOOD_CELL: &str = "begin(); out('fine'); end()";
const GOOD_CELL_SUMMARY: &str = "out:\"fine\" | done";

/// Fails the test if the future takes too long.
async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(TEST_TIMEOUT, future).await;
    ended.expect("the operation hangs")
}

/// How a cell ended, in short.
fn outcome_summary(outcome: &Result<Outcome, KernelError>) -> String {
    match outcome {
        Ok(outcome) => match &outcome.ending {
            Ending::Completed => "done".to_owned(),
            Ending::Raised(traceback) => {
                format!("raised {:?} {:?}", traceback.name, traceback.value)
            }
            Ending::Stopped { reason, state } => {
                assert!(matches!(reason, StopReason::TimedOut { .. }), "{reason:?}");
                match state {
                    KernelState::Preserved => "kept".to_owned(),
                    KernelState::Lost => "lost".to_owned(),
                }
            }
        },
        Err(KernelError::Died { begun, .. }) => match begun {
            cellwright_kernel::Begun::No => "died unbegun".to_owned(),
            cellwright_kernel::Begun::Maybe => "died".to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

/// Runs all cases concurrently; one failure fails the test.
async fn run_all<C, F: Future<Output = ()> + Send + 'static>(
    cases: impl IntoIterator<Item = C>,
    run_case: impl Fn(C) -> F,
) {
    let mut set = JoinSet::new();
    for case in cases {
        set.spawn(run_case(case));
    }
    while let Some(done) = set.join_next().await {
        done.unwrap();
    }
}

/// Checks that a process exits soon.
async fn assert_exits(pid: u32) {
    assert!(eventually(Duration::from_secs(5), || !is_running(pid)).await);
}
