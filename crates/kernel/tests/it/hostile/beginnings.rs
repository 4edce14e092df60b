//! Kernels that do not start as they should.

use std::path::Path;
use std::time::Duration;

use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Kernel as _, KernelError, Stop, StopReason};

use super::{Odd, bounded, is_gone, spec, together};
use crate::support::eventually;

/// Starts one that has so long to be ready; the error.
async fn failed(script: &str, millis: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    // Wherever it ends up, its number is there.
    let script = format!("open('pid', 'w').write(str(os.getpid()))\n{script}");
    let mut spec = spec(&script, folder.path());
    spec.start_timeout = Duration::from_millis(millis);
    let started = bounded(Jupyter::start(&spec, &Stop::never())).await;
    let error = started.err().expect("it must not start");
    for file in ["pid", "child"] {
        if let Ok(pid) = std::fs::read_to_string(folder.path().join(file)) {
            is_gone(pid.parse().unwrap()).await;
        }
    }
    assert_eq!(listed(folder.path()), 0, "{script}");
    error.to_string()
}

/// How many connection files there are.
fn listed(folder: &Path) -> usize {
    std::fs::read_dir(folder.join(".runtime")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_kernel_that_is_not_ready_in_time_is_ended() {
    together(
        [
            "time.sleep(60)",
            "CHANNELS.clear()",
            "CHANNELS[:] = ['shell', 'stdin', 'control', 'hb']",
            "CHANNELS[:] = ['iopub', 'stdin', 'control', 'hb']",
            "def on_info(): pass",
            "def on_info(): status('busy'); status('idle')",
            "def on_info(): info(key=b'guess')",
            "def on_info(): send('shell', 'execute_reply', {}); status('idle')",
            "def on_accept(channel, connection): time.sleep(60)",
            "def on_accept(channel, connection): connection.sendall(b'\\xff'); time.sleep(60)",
            "def on_accept(channel, connection): connection.close()",
            // It says much, but not what was asked.
            "def on_info():\n    junk = bundle(message('iopub', 'stream', {})) * 1000\n    while True: raw('iopub', junk)",
        ],
        |script| async move {
            let error = failed(script, 2000).await;
            assert_eq!(error, "the kernel was not ready after 2s", "{script}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_that_ends_or_speaks_another_language_is_told_at_once() {
    together(
        [
            ("os._exit(0)", "the kernel ended while starting (exit code 0)"),
            ("os._exit(1)", "the kernel ended while starting (exit code 1)"),
            (
                "os.kill(os.getpid(), signal.SIGTERM)",
                "the kernel ended while starting (signal 15, SIGTERM)",
            ),
            ("def on_info(): os._exit(7)", "the kernel ended while starting (exit code 7)"),
            (
                "child = os.fork()\nif child: open('child', 'w').write(str(child)); os._exit(0)",
                "the kernel ended while starting (exit code 0)",
            ),
            (
                "def on_accept(channel, connection): connection.recv(100); connection.sendall(b'HTTP/1.1 400 Bad Request\\r\\n' * 9); time.sleep(60)",
                "the kernel broke the protocol: the other side does not speak ZMTP 3",
            ),
            (
                "MECHANISM = b'CURVE'",
                "the kernel broke the protocol: the other side wants the security mechanism CURVE",
            ),
            (
                "ROLES['shell'] = b'PULL'",
                "the kernel broke the protocol: the other side is a socket of type PULL",
            ),
            (
                "def on_accept(channel, connection): greet(channel, connection); connection.close()",
                "the kernel broke the protocol: it closed its connection",
            ),
            (
                "def on_accept(channel, connection): greet(channel, connection); connection.sendall(b'\\xff' * 100); time.sleep(60)",
                "the kernel broke the protocol: what came is no frame: its flags are unknown",
            ),
        ],
        |(script, told)| async move {
            assert_eq!(failed(script, 20_000).await, told, "{script}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_that_is_a_little_odd_is_ready() {
    const AS_INSTALLED: (Option<&str>, &str) = (Some("spec"), "");
    const TOLD: (Option<&str>, &str) = (Some("odd"), "");
    together(
        [
            ("", TOLD),
            ("CHANNELS[:] = ['shell', 'iopub']", TOLD),
            ("def on_info(): info(b'junk')", AS_INSTALLED),
            ("def on_info(): info(None and 0)", TOLD),
            ("INFO = None\ndef on_info(): info(b'null')", AS_INSTALLED),
            ("del INFO['language_info']", AS_INSTALLED),
            ("INFO['language_info'] = 5", AS_INSTALLED),
            ("INFO['language_info'] = {'name': 5, 'version': None}", AS_INSTALLED),
            ("INFO = {'status': 'error', 'ename': 'E'}", AS_INSTALLED),
            ("INFO['protocol_version'] = '5.0'", TOLD),
            ("INFO['protocol_version'] = '5.5'", TOLD),
            ("INFO['protocol_version'] = '4.1'", (Some("odd"), "protocol_version")),
            ("INFO['protocol_version'] = '6.0'", (Some("odd"), "protocol_version")),
            ("INFO['protocol_version'] = 5", TOLD),
            (
                "def on_accept(channel, connection):\n    greet(channel, connection)\n    if channel == 'iopub': connection.sendall(bundle(message('iopub', 'iopub_welcome', {'subscription': ''})))",
                TOLD,
            ),
            ("for _ in range(1000): os.write(2, b'x' * 10000)", TOLD),
            ("os.close(1); os.close(2)", TOLD),
            ("time.sleep(1)", TOLD),
        ],
        |(script, (language, remark))| async move {
            let mut odd = Odd::start(script).await;
            let description = odd.kernel.description();
            assert_eq!(description.language.as_deref(), language, "{script}");
            let remarks = odd.kernel.take_remarks();
            let kinds: Vec<&str> = remarks.iter().map(|remark| remark.kind.as_str()).collect();
            assert_eq!(kinds.join(" "), remark, "{script}");
            odd.works().await;
            odd.goes().await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_that_publishes_nothing_runs_cells_without_output() {
    let silent =
        "loud = raw\ndef raw(channel, data):\n    if channel != 'iopub': loud(channel, data)";
    let mut odd = Odd::start(silent).await;
    let told = odd.told("begin(); out('nobody hears'); end()").await;
    assert_eq!(told, "done | output_incomplete");
    odd.goes().await;
}

#[tokio::test]
async fn a_kernel_that_cannot_have_its_sockets_in_the_file_system_gets_others() {
    let script = "if CONNECTION['transport'] == 'ipc': os._exit(1)";
    let mut odd = Odd::start_with(script, |spec| spec.transport = Transport::Auto).await;
    odd.works().await;
    odd.goes().await;
}

#[tokio::test]
async fn a_start_that_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid'); time.sleep(60)";
    let spec = spec(script, folder.path());
    let pid = folder.path().join("pid");
    let (stopper, stop) = Stop::new();
    let begun = async {
        assert!(eventually(Duration::from_secs(20), || pid.exists()).await);
        stopper.stop(StopReason::Cancelled);
        std::future::pending::<()>().await;
    };
    let started = tokio::select! {
        started = bounded(Jupyter::start(&spec, &stop)) => started,
        () = begun => unreachable!(),
    };
    let reason = StopReason::Cancelled;
    match started.err().unwrap() {
        KernelError::StoppedEarly { reason: told } => assert_eq!(told, reason),
        other => panic!("{other:?}"),
    }
    let pid = std::fs::read_to_string(pid).unwrap();
    is_gone(pid.parse().unwrap()).await;
    assert_eq!(listed(folder.path()), 0);
}
