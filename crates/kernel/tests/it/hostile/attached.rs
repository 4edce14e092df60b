//! Attached kernels: another program has started them.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cellwright_jupyter::connection::{Connection, ConnectionFile};
use cellwright_kernel::backend::jupyter::{AttachedSpec, Jupyter};
use cellwright_kernel::{Kernel as _, KernelError, StopSignal};

use super::{GOOD_CELL, GOOD_CELL_SUMMARY, HostileKernel, program, run_all, within_timeout};
use crate::support::{eventually, is_running, launch_context, python};

/// A kernel process that was not started by the backend.
struct ExternalKernel {
    process: Child,
    spec: AttachedSpec,
    _file: ConnectionFile,
    dir: tempfile::TempDir,
}

impl ExternalKernel {
    fn start(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::new_ipc(dir.path().join("k")).unwrap();
        let file = ConnectionFile::write(dir.path(), &connection).unwrap();
        let process = Command::new(python())
            .args(["-I", "-S"])
            .arg(program())
            .arg(file.path())
            .arg(script)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let spec = AttachedSpec {
            connection_file: file.path().to_owned(),
            start_timeout: Duration::from_secs(30),
            interrupt_grace: Duration::from_secs(1),
        };
        Self {
            process,
            spec,
            _file: file,
            dir,
        }
    }

    async fn try_attach(&self) -> Result<Jupyter, KernelError> {
        let context = launch_context(self.dir.path());
        Jupyter::attach(&self.spec, &context, &StopSignal::never()).await
    }

    async fn attach(&self) -> HostileKernel {
        // The kernel opens this socket last.
        let last = self.dir.path().join("k-5");
        let opened = || UnixStream::connect(&last).is_ok();
        assert!(eventually(Duration::from_secs(20), opened).await);
        let kernel = within_timeout(self.try_attach()).await;
        HostileKernel {
            jupyter: kernel.unwrap(),
            _folder: tempfile::tempdir_in(self.dir.path()).unwrap(),
        }
    }
}

impl Drop for ExternalKernel {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Detaches, and checks that the process still runs.
async fn detach(kernel: HostileKernel, external: &ExternalKernel) {
    within_timeout(Box::new(kernel.jupyter).shutdown(StopSignal::never())).await;
    assert!(is_running(external.process.id()));
}

#[tokio::test]
async fn an_unusable_attached_kernel_keeps_running() {
    // It ignores interrupts or sends forever: it is unusable, but must keep running.
    let ignores_interrupts =
        "def on_interrupt(): pass\nFLOOD = encode_message(message('iopub', 'stream', {})) * 1000";
    let cases = [
        (
            ignores_interrupts,
            "begin(); out('a'); time.sleep(60)",
            "out:\"a\" | lost",
        ),
        (
            ignores_interrupts,
            "begin(); out('a')\nwhile True: raw('iopub', FLOOD)",
            "out:\"a\" | lost | messages_refused",
        ),
        (
            "",
            "begin(); out('a'); drop('iopub'); time.sleep(60)",
            "out:\"a\" | died",
        ),
        (
            "",
            "begin(); out('a'); status('idle'); time.sleep(60)",
            "out:\"a\" | the kernel violated the protocol: it went idle without sending `execute_reply`",
        ),
    ];
    run_all(cases, |(setup, script, expected)| async move {
        let external = ExternalKernel::start(setup);
        let mut kernel = external.attach().await;
        let summary = if setup == ignores_interrupts {
            kernel.run_and_stop(script, 500).await
        } else {
            kernel.run(script).await
        };
        assert_eq!(summary, expected, "{script}");
        assert!(!kernel.jupyter.is_alive());
        detach(kernel, &external).await;
    })
    .await;
}

#[tokio::test]
async fn an_attached_kernel_without_heartbeat_is_dead() {
    let external = ExternalKernel::start("");
    let mut kernel = external.attach().await;
    assert_eq!(kernel.run(GOOD_CELL).await, GOOD_CELL_SUMMARY);
    // Like a machine that was switched off.
    let pid = rustix::process::Pid::from_child(&external.process);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let error = within_timeout(kernel.jupyter.drain_while_idle()).await;
    assert_eq!(error.to_string(), "the kernel died (exit status unknown)");
    assert!(!kernel.jupyter.is_alive());
    detach(kernel, &external).await;
}

#[tokio::test]
async fn an_attached_kernel_that_exits_is_dead() {
    let external = ExternalKernel::start("");
    let mut kernel = external.attach().await;
    assert_eq!(
        kernel.run("begin(); out('a'); os._exit(0)").await,
        "out:\"a\" | died"
    );
    assert!(!kernel.jupyter.is_alive());
    assert_eq!(kernel.run(GOOD_CELL).await, "died unbegun");
    within_timeout(Box::new(kernel.jupyter).shutdown(StopSignal::never())).await;
    let error = within_timeout(external.try_attach()).await;
    let error = error.err().unwrap().to_string();
    assert!(error.ends_with("(it may have ended)"), "{error}");
}
