//! Jupyter kernels: real ones, and what only they can do.

mod broken;
mod endings;
mod languages;
mod other;
mod sharing;
mod snippets;
mod starts;
mod storm;
mod visiting;
mod volume;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::kernelspec::{Interrupt, Kernelspec};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source, Transport};
use cellwright_kernel::{KernelError, Stop};

use crate::support::{environment, eventually, python, supervisor};

/// How to start a kernel in `folder`, which also holds what Jupyter would keep elsewhere.
pub(crate) fn spec(kernelspec: Kernelspec, folder: &Path) -> JupyterSpec {
    JupyterSpec {
        source: Source::Start {
            kernelspec: Box::new(kernelspec),
            python: None,
        },
        cwd: folder.to_owned(),
        env: environment(),
        supervisor: supervisor(),
        runtime: folder.join(".runtime"),
        sockets: vec![PathBuf::from("/tmp")],
        staging: vec![Path::new(env!("CARGO_TARGET_TMPDIR")).join("runner")],
        transport: Transport::Auto,
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(2),
    }
}

/// ipykernel in a folder of its own.
pub(crate) async fn ipykernel() -> (Jupyter, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let kernelspec = Kernelspec::ipykernel(&python());
    let started = Jupyter::start(&spec(kernelspec, folder.path()), &Stop::never()).await;
    (started.unwrap(), folder)
}

/// A kernel that is started with these arguments.
fn kernelspec(name: &str, argv: &[&str]) -> Kernelspec {
    Kernelspec {
        name: name.to_owned(),
        folder: PathBuf::new(),
        argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
        display_name: name.to_owned(),
        language: name.to_owned(),
        interrupt: Interrupt::Signal,
        env: Vec::new(),
        metadata: serde_json::Map::new(),
    }
}

/// A place where kernels are started that can be told from all others, to see what is left of them.
struct Room {
    folder: tempfile::TempDir,
    mark: String,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("CELLWRIGHT_TEST_ROOM={}", folder.path().display());
        Self { folder, mark }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn runtime(&self) -> PathBuf {
        self.path().join("runtime")
    }

    fn spec(&self, kernelspec: Kernelspec) -> JupyterSpec {
        let mut spec = spec(kernelspec, self.path());
        let (name, value) = self.mark.split_once('=').unwrap();
        spec.env.push((name.into(), value.into()));
        spec.runtime = self.runtime();
        spec.sockets = vec![self.path().join("sockets")];
        spec
    }

    async fn start(&self, kernelspec: Kernelspec) -> Result<Jupyter, KernelError> {
        Jupyter::start(&self.spec(kernelspec), &Stop::never()).await
    }

    /// The processes of kernels and supervisors that run, by their numbers.
    fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|pid| {
                let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                env.split(|&byte| byte == 0)
                    .any(|variable| variable == self.mark.as_bytes())
            })
            .collect()
    }

    /// Everything that there is of kernels: processes, connection files, folders of sockets.
    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = self
            .processes()
            .iter()
            .map(|&pid| command_of(pid))
            .collect();
        for folder in [self.runtime(), self.path().join("sockets")] {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path().display().to_string()));
        }
        left
    }

    /// Fails the test unless there is soon nothing left of any kernel.
    async fn empties(&self) {
        let empty = eventually(Duration::from_secs(10), || self.left().is_empty()).await;
        assert!(empty, "left over: {:#?}", self.left());
    }
}

/// What a process was started as.
fn command_of(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("{pid}: {command}")
}

/// Says something to whoever runs a test by hand.
#[expect(clippy::print_stdout, reason = "shown by the test harness only")]
fn tell(words: &str) {
    println!("{words}");
}
