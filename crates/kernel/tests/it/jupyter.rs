//! Real Jupyter kernels, and the behaviour that only they have.

mod attaching;
mod failures;
mod jupyter_client;
mod language_snippets;
mod languages;
mod many_kernels;
mod sharing;
mod shutdown;
mod starts;
mod volume;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_jupyter::kernelspec::{InterruptMode, Kernelspec};
use cellwright_kernel::backend::jupyter::{IdentifiedBy, Jupyter, JupyterSpec, Transport};
use cellwright_kernel::{KernelError, LaunchContext, StopSignal};

use crate::support::{eventually, inherited_environment, launch_context, python};

/// A spec for a kernel in `directory`, which also serves as the runtime directory.
pub(crate) fn spec(kernelspec: Kernelspec, dir: &Path) -> JupyterSpec {
    JupyterSpec {
        kernelspec: Box::new(kernelspec),
        python: None,
        identified_by: IdentifiedBy::Kernelspec,
        env: inherited_environment(),
        runtime: dir.join(".runtime"),
        transport: Transport::Ipc,
        start_timeout: Duration::from_mins(1),
        interrupt_grace: Duration::from_secs(2),
    }
}

/// ipykernel in its own directory.
pub(crate) async fn ipykernel() -> (Jupyter, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let kernelspec = Kernelspec::ipykernel(&python());
    let spec = spec(kernelspec, dir.path());
    let context = launch_context(dir.path());
    let started = Jupyter::start(&spec, &context, &StopSignal::never()).await;
    (started.unwrap(), dir)
}

/// A kernelspec with this command line.
fn kernelspec(name: &str, argv: &[&str]) -> Kernelspec {
    Kernelspec {
        name: name.to_owned(),
        dir: PathBuf::new(),
        argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
        display_name: name.to_owned(),
        language: name.to_owned(),
        interrupt: InterruptMode::Signal,
        env: Vec::new(),
        metadata: serde_json::Map::new(),
    }
}

/// A directory for kernels whose processes can be identified by an environment variable, to find leftovers.
struct KernelSandbox {
    dir: tempfile::TempDir,
    marker: String,
}

impl KernelSandbox {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let marker = format!("CELLWRIGHT_TEST_SANDBOX={}", dir.path().display());
        Self { dir, marker }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn runtime(&self) -> PathBuf {
        self.path().join("runtime")
    }

    fn spec(&self, kernelspec: Kernelspec) -> JupyterSpec {
        let mut spec = spec(kernelspec, self.path());
        let (name, value) = self.marker.split_once('=').unwrap();
        spec.env.push((name.into(), value.into()));
        spec.runtime = self.runtime();
        spec
    }

    fn context(&self) -> LaunchContext {
        let context = launch_context(self.path());
        let marker = self.marker.split_once('=');
        let env = marker.map(|(name, value)| (name.into(), value.into()));
        LaunchContext {
            sockets: vec![self.path().join("sockets")],
            // So that `processes` finds it.
            supervisor: context.supervisor.with_env(env.into_iter().collect()),
            ..context
        }
    }

    async fn start(&self, kernelspec: Kernelspec) -> Result<Jupyter, KernelError> {
        let (spec, context) = (self.spec(kernelspec), self.context());
        Jupyter::start(&spec, &context, &StopSignal::never()).await
    }

    /// The ids of the running processes of kernels and supervisors.
    fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|pid| {
                let env = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                env.split(|&byte| byte == 0)
                    .any(|variable| variable == self.marker.as_bytes())
            })
            .collect()
    }

    /// Everything that kernels have left: processes, connection files, socket directories.
    fn leftovers(&self) -> Vec<String> {
        let mut leftovers: Vec<String> = self
            .processes()
            .iter()
            .map(|&pid| command_line(pid))
            .collect();
        for dir in [self.runtime(), self.path().join("sockets")] {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            leftovers.extend(entries.map(|entry| entry.path().display().to_string()));
        }
        leftovers
    }

    /// Fails the test unless all leftovers disappear soon.
    async fn assert_empty(&self) {
        let empty = eventually(Duration::from_secs(10), || self.leftovers().is_empty()).await;
        assert!(empty, "left over: {:#?}", self.leftovers());
    }
}

/// The id and command line of a process.
fn command_line(pid: u32) -> String {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("{pid}: {command}")
}

/// Prints a result of a test that is run by hand.
#[expect(clippy::print_stdout, reason = "shown by the test harness only")]
fn print_result(text: &str) {
    println!("{text}");
}
