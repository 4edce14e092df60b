//! Kernels that break the rules, by mistake or on purpose. Each is a process that plays what the test
//! gives it (`tests/hostile/kernel.py`): whatever it does, nothing hangs or panics, nothing unsigned is
//! believed, and what is said about the kernel is true.

mod beginnings;
mod cells;
mod ends;
mod existing;
mod floods;
mod questions;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::kernelspec::{Interrupt, Kernelspec};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Transport};
use cellwright_kernel::{Ending, Kernel, KernelError, Outcome, Request, State, Stop, StopReason};
use tokio::task::JoinSet;

use crate::support::{Heard, eventually, python, run_until, runs};

/// Longer than anything here may take.
const BOUND: Duration = Duration::from_secs(45);

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

fn spec(script: &str, folder: &Path) -> JupyterSpec {
    JupyterSpec {
        transport: Transport::Ipc,
        start_timeout: Duration::from_secs(30),
        interrupt_grace: Duration::from_secs(1),
        ..crate::jupyter::spec(kernelspec(script), folder)
    }
}

/// A kernel that does what its cells say.
struct Odd {
    kernel: Jupyter,
    _folder: tempfile::TempDir,
}

impl Odd {
    /// One that starts after it has run `script`.
    async fn start(script: &str) -> Self {
        Self::start_with(script, |_| {}).await
    }

    async fn start_with(script: &str, change: impl FnOnce(&mut JupyterSpec)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec(script, folder.path());
        change(&mut spec);
        let kernel = bounded(Jupyter::start(&spec, &Stop::never())).await;
        Self {
            kernel: kernel.unwrap(),
            _folder: folder,
        }
    }

    /// One that is interrupted by a message.
    async fn messaged(script: &str) -> Self {
        Self::start_with(script, |spec| {
            let mut kernelspec = kernelspec(script);
            kernelspec.interrupt = Interrupt::Message;
            *spec = JupyterSpec {
                transport: spec.transport,
                start_timeout: spec.start_timeout,
                interrupt_grace: spec.interrupt_grace,
                ..crate::jupyter::spec(kernelspec, &spec.cwd)
            };
        })
        .await
    }

    /// Runs a cell; everything that is told of it in one line.
    async fn told(&mut self, script: &str) -> String {
        self.told_until(&Request::new(script), &Stop::never()).await
    }

    async fn told_until(&mut self, request: &Request, stop: &Stop) -> String {
        let (heard, outcome) = bounded(run_until(&mut self.kernel, request, stop)).await;
        self.line(&heard, &outcome)
    }

    /// Runs a cell, and stops it after so many milliseconds.
    async fn stopped(&mut self, script: &str, millis: u64) -> String {
        let stop = Stop::never().with_timeout(Duration::from_millis(millis));
        self.told_until(&Request::new(script), &stop).await
    }

    fn line(&mut self, heard: &Heard, outcome: &Result<Outcome, KernelError>) -> String {
        let mut parts = vec![heard.line(), words(outcome)];
        parts.extend(
            self.kernel
                .take_remarks()
                .into_iter()
                .map(|remark| remark.kind),
        );
        parts.retain(|part| !part.is_empty());
        parts.join(" | ")
    }

    /// It runs cells as ever.
    async fn works(&mut self) {
        assert_eq!(self.told(FINE).await, FINE_TOLD);
        assert!(self.kernel.is_alive());
    }

    /// It is over, and says so.
    async fn over(mut self) {
        assert!(!self.kernel.is_alive());
        let (heard, outcome) = bounded(run_until(
            &mut self.kernel,
            &Request::new(FINE),
            &Stop::never(),
        ))
        .await;
        assert_eq!(self.line(&heard, &outcome), "died unbegun");
        self.goes().await;
    }

    /// It leaves nothing behind.
    async fn goes(self) {
        let pid = self.kernel.description().pid.unwrap();
        let patience = Stop::never().with_timeout(Duration::from_millis(500));
        bounded(Box::new(self.kernel).shutdown(patience)).await;
        assert!(!runs(pid));
    }
}

const FINE: &str = "begin(); out('fine'); end()";
const FINE_TOLD: &str = "out:\"fine\" | done";

/// Whatever kernels do, it takes no longer than this.
async fn bounded<T>(future: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(BOUND, future).await;
    ended.expect("it must not hang")
}

/// How a cell ended, in a word or two.
fn words(outcome: &Result<Outcome, KernelError>) -> String {
    match outcome {
        Ok(outcome) => match &outcome.ending {
            Ending::Completed => "done".to_owned(),
            Ending::Raised(traceback) => {
                format!("raised {:?} {:?}", traceback.name, traceback.value)
            }
            Ending::Exited { code } => format!("exited {code}"),
            Ending::Stopped { reason, state } => {
                assert!(matches!(reason, StopReason::TimedOut(_)), "{reason:?}");
                match state {
                    State::Kept => "kept".to_owned(),
                    State::Lost => "lost".to_owned(),
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

/// All cases at once; a failure of one is that of all.
async fn together<C, F: Future<Output = ()> + Send + 'static>(
    cases: impl IntoIterator<Item = C>,
    play: impl Fn(C) -> F,
) {
    let mut set = JoinSet::new();
    for case in cases {
        set.spawn(play(case));
    }
    while let Some(done) = set.join_next().await {
        done.unwrap();
    }
}

/// A process is gone, or soon.
async fn is_gone(pid: u32) {
    assert!(eventually(Duration::from_secs(5), || !runs(pid)).await);
}
