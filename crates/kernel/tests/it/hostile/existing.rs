//! Kernels that others have started, and that we only visit.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cellwright_jupyter::connection::{Connection, ConnectionFile};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Source};
use cellwright_kernel::{Kernel as _, Stop};

use super::{FINE, FINE_TOLD, Odd, bounded, program, spec, together};
use crate::support::{eventually, python, runs};

/// A kernel of somebody else.
struct Theirs {
    process: Child,
    spec: JupyterSpec,
    _file: ConnectionFile,
    folder: tempfile::TempDir,
}

impl Theirs {
    fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::new_ipc(folder.path().join("k")).unwrap();
        let file = ConnectionFile::write(folder.path(), &connection).unwrap();
        let process = Command::new(python())
            .args(["-I", "-S"])
            .arg(program())
            .arg(file.path())
            .arg(script)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let source = Source::Existing {
            connection_file: file.path().to_owned(),
        };
        let spec = JupyterSpec {
            source,
            ..spec("", folder.path())
        };
        Self {
            process,
            spec,
            _file: file,
            folder,
        }
    }

    async fn visit(&self) -> Odd {
        // Its last socket: it runs.
        let last = self.folder.path().join("k-5");
        let opened = || UnixStream::connect(&last).is_ok();
        assert!(eventually(Duration::from_secs(20), opened).await);
        let kernel = bounded(Jupyter::start(&self.spec, &Stop::never())).await;
        Odd {
            kernel: kernel.unwrap(),
            _folder: tempfile::tempdir_in(self.folder.path()).unwrap(),
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// We go, and it stays.
async fn leave(odd: Odd, theirs: &Theirs) {
    bounded(Box::new(odd.kernel).shutdown(Stop::never())).await;
    assert!(runs(theirs.process.id()));
}

#[tokio::test]
async fn a_kernel_of_others_outlives_what_we_think_of_it() {
    // It does not react, and says things without end: it is of no use to us, and theirs still.
    let deaf = "def on_interrupt(): pass\nFLOOD = bundle(message('iopub', 'stream', {})) * 1000";
    let cases = [
        (
            deaf,
            "begin(); out('a'); time.sleep(60)",
            "out:\"a\" | lost",
        ),
        (
            deaf,
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
            "out:\"a\" | the kernel broke the protocol: it was idle again and had not replied",
        ),
    ];
    together(cases, |(start, script, told)| async move {
        let theirs = Theirs::start(start);
        let mut odd = theirs.visit().await;
        let line = if start == deaf {
            odd.stopped(script, 500).await
        } else {
            odd.told(script).await
        };
        assert_eq!(line, told, "{script}");
        assert!(!odd.kernel.is_alive());
        leave(odd, &theirs).await;
    })
    .await;
}

#[tokio::test]
async fn a_kernel_of_others_whose_heart_stops_is_gone() {
    let theirs = Theirs::start("");
    let mut odd = theirs.visit().await;
    assert_eq!(odd.told(FINE).await, FINE_TOLD);
    // As if the machine it is on had been switched off.
    let pid = rustix::process::Pid::from_child(&theirs.process);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let error = bounded(odd.kernel.attend()).await;
    assert_eq!(error.to_string(), "the kernel died (nobody saw how)");
    assert!(!odd.kernel.is_alive());
    leave(odd, &theirs).await;
}

#[tokio::test]
async fn a_kernel_of_others_that_dies_is_gone() {
    let theirs = Theirs::start("");
    let mut odd = theirs.visit().await;
    assert_eq!(
        odd.told("begin(); out('a'); os._exit(0)").await,
        "out:\"a\" | died"
    );
    assert!(!odd.kernel.is_alive());
    assert_eq!(odd.told(FINE).await, "died unbegun");
    bounded(Box::new(odd.kernel).shutdown(Stop::never())).await;
    // Nobody is there any more.
    let error = bounded(Jupyter::start(&theirs.spec, &Stop::never())).await;
    let error = error.err().unwrap().to_string();
    assert!(error.ends_with("(it may have ended)"), "{error}");
}
