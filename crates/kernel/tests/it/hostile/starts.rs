//! Kernels that fail to start.

use std::path::Path;
use std::time::Duration;

use cellwright_kernel::backend::jupyter::{Jupyter, Transport};
use cellwright_kernel::{Kernel as _, KernelError, StopReason, StopSignal};

use super::{HostileKernel, assert_exits, run_all, spec, within_timeout};
use crate::support::{eventually, launch_context};

/// Starts a kernel with this timeout. Returns the error.
async fn start_error(script: &str, millis: u64) -> String {
    let dir = tempfile::tempdir().unwrap();
    // The script writes its process id to a file.
    let script = format!("open('pid', 'w').write(str(os.getpid()))\n{script}");
    let mut spec = spec(&script, dir.path());
    spec.start_timeout = Duration::from_millis(millis);
    let context = launch_context(dir.path());
    let started = within_timeout(Jupyter::start(&spec, &context, &StopSignal::never())).await;
    let error = started.err().expect("the kernel started");
    for file in ["pid", "child"] {
        if let Ok(pid) = std::fs::read_to_string(dir.path().join(file)) {
            assert_exits(pid.parse().unwrap()).await;
        }
    }
    assert_eq!(connection_files(dir.path()), 0, "{script}");
    error.to_string()
}

/// The number of connection files.
fn connection_files(dir: &Path) -> usize {
    std::fs::read_dir(dir.join(".runtime")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_kernel_that_is_not_ready_in_time_is_killed() {
    run_all(
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
            // It sends many messages, but no reply.
            "def on_info():\n    junk = encode_message(message('iopub', 'stream', {})) * 1000\n    while True: raw('iopub', junk)",
        ],
        |script| async move {
            let error = start_error(script, 2000).await;
            assert_eq!(error, "the kernel was not ready after 2 s", "{script}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_that_exits_or_uses_another_protocol_fails_at_once() {
    run_all(
        [
            ("os._exit(0)", "the kernel ended while starting (exit code 0)"),
            ("os._exit(1)", "the kernel ended while starting (exit code 1)"),
            (
                "os.kill(os.getpid(), signal.SIGTERM)",
                "the kernel ended while starting (signal 15, SIGTERM)",
            ),
            ("def on_info(): os._exit(7)", "the kernel ended while starting (exit code 7)"),
            (
                // The child must not serve: its reply could arrive before the exit of its parent.
                "child = os.fork()\nif child: open('child', 'w').write(str(child)); os._exit(0)\ntime.sleep(60)",
                "the kernel ended while starting (exit code 0)",
            ),
            (
                "def on_accept(channel, connection): connection.recv(100); connection.sendall(b'HTTP/1.1 400 Bad Request\\r\\n' * 9); time.sleep(60)",
                "the kernel violated the protocol: the peer does not use ZMTP 3",
            ),
            (
                "MECHANISM = b'CURVE'",
                "the kernel violated the protocol: the peer requires the security mechanism CURVE",
            ),
            (
                "SOCKET_TYPES['shell'] = b'PULL'",
                "the kernel violated the protocol: the peer is a socket of type PULL",
            ),
            (
                "def on_accept(channel, connection): handshake(channel, connection); connection.close()",
                "the kernel violated the protocol: it closed its connection",
            ),
            (
                "def on_accept(channel, connection): handshake(channel, connection); connection.sendall(b'\\xff' * 100); time.sleep(60)",
                "the kernel violated the protocol: invalid frame: unknown flags",
            ),
        ],
        |(script, expected)| async move {
            assert_eq!(start_error(script, 20_000).await, expected, "{script}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_with_minor_protocol_violations_is_ready() {
    const AS_INSTALLED: (Option<&str>, &str) = (Some("spec"), "");
    const REPORTED: (Option<&str>, &str) = (Some("odd"), "");
    run_all(
        [
            ("", REPORTED),
            ("CHANNELS[:] = ['shell', 'iopub']", REPORTED),
            ("def on_info(): info(b'junk')", AS_INSTALLED),
            ("def on_info(): info(None and 0)", REPORTED),
            ("INFO = None\ndef on_info(): info(b'null')", AS_INSTALLED),
            ("del INFO['language_info']", AS_INSTALLED),
            ("INFO['language_info'] = 5", AS_INSTALLED),
            ("INFO['language_info'] = {'name': 5, 'version': None}", AS_INSTALLED),
            ("INFO = {'status': 'error', 'ename': 'E'}", AS_INSTALLED),
            ("INFO['protocol_version'] = '5.0'", REPORTED),
            ("INFO['protocol_version'] = '5.5'", REPORTED),
            ("INFO['protocol_version'] = '4.1'", (Some("odd"), "protocol_version")),
            ("INFO['protocol_version'] = '6.0'", (Some("odd"), "protocol_version")),
            ("INFO['protocol_version'] = 5", REPORTED),
            (
                "def on_accept(channel, connection):\n    handshake(channel, connection)\n    if channel == 'iopub': connection.sendall(encode_message(message('iopub', 'iopub_welcome', {'subscription': ''})))",
                REPORTED,
            ),
            ("for _ in range(1000): os.write(2, b'x' * 10000)", REPORTED),
            ("os.close(1); os.close(2)", REPORTED),
            ("time.sleep(1)", REPORTED),
        ],
        |(script, (language, notice))| async move {
            let mut kernel = HostileKernel::start(script).await;
            let description = kernel.jupyter.description();
            assert_eq!(description.language.as_deref(), language, "{script}");
            let notices = kernel.jupyter.take_notices();
            let kinds: Vec<&str> = notices.iter().map(|notice| notice.kind.as_str()).collect();
            assert_eq!(kinds.join(" "), notice, "{script}");
            kernel.assert_works().await;
            kernel.assert_shuts_down().await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_kernel_that_publishes_nothing_runs_cells_without_output() {
    let silent =
        "loud = raw\ndef raw(channel, data):\n    if channel != 'iopub': loud(channel, data)";
    let mut kernel = HostileKernel::start(silent).await;
    let summary = kernel.run("begin(); out('lost'); end()").await;
    assert_eq!(summary, "done | output_incomplete");
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn a_kernel_without_ipc_is_started_over_tcp_only_on_request() {
    let script = "if CONNECTION['transport'] == 'ipc': os._exit(1)";
    let dir = tempfile::tempdir().unwrap();
    let (spec, context) = (spec(script, dir.path()), launch_context(dir.path()));
    let started = within_timeout(Jupyter::start(&spec, &context, &StopSignal::never())).await;
    let Err(KernelError::OverIpc { source }) = started else {
        panic!("the kernel started over IPC")
    };
    assert!(
        matches!(*source, KernelError::FailedToStart { .. }),
        "{source:?}"
    );
    let mut kernel =
        HostileKernel::start_with(script, |spec| spec.transport = Transport::Tcp).await;
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn a_stopped_start_leaves_no_process_or_files() {
    let dir = tempfile::tempdir().unwrap();
    let script = "open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid'); time.sleep(60)";
    let (spec, context) = (spec(script, dir.path()), launch_context(dir.path()));
    let pid = dir.path().join("pid");
    let (stopper, stop) = StopSignal::new();
    let begun = async {
        assert!(eventually(Duration::from_secs(20), || pid.exists()).await);
        stopper.stop(StopReason::Cancelled);
        std::future::pending::<()>().await;
    };
    let started = tokio::select! {
        started = within_timeout(Jupyter::start(&spec, &context, &stop)) => started,
        () = begun => unreachable!(),
    };
    let reason = StopReason::Cancelled;
    match started.err().unwrap() {
        KernelError::StoppedEarly { reason: reported } => assert_eq!(reported, reason),
        other => panic!("{other:?}"),
    }
    let pid = std::fs::read_to_string(pid).unwrap();
    assert_exits(pid.parse().unwrap()).await;
    assert_eq!(connection_files(dir.path()), 0);
}
