//! Kernels that are missing, broken or hostile.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use cellwright_jupyter::kernelspec::{Kernelspec, KernelspecError};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Transport};
use cellwright_kernel::{Ending, Kernel, KernelError, LaunchContext, StopSignal};

use super::{KernelSandbox, kernelspec};
use crate::support::{python, run_code};

/// A spec for ipykernel with this source as `ipykernel_launcher`.
fn launcher(sandbox: &KernelSandbox, source: &str) -> JupyterSpec {
    let dir = sandbox.path().join("modules");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("ipykernel_launcher.py"), source).unwrap();
    let mut spec = sandbox.spec(Kernelspec::ipykernel(&python()));
    spec.env.push(("PYTHONPATH".into(), dir.into()));
    spec
}

async fn error(spec: &JupyterSpec, context: &LaunchContext) -> KernelError {
    match Jupyter::start(spec, context, &StopSignal::never()).await {
        Ok(_) => panic!("the kernel started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_missing_ipykernel_is_reported() {
    let sandbox = KernelSandbox::new();
    let bare = sandbox.path().join("bare");
    let made = std::process::Command::new(python())
        .args(["-m", "venv", "--without-pip"])
        .arg(&bare)
        .status();
    assert!(made.unwrap().success());
    let python = bare.join("bin/python");
    let error = error(
        &sandbox.spec(Kernelspec::ipykernel(&python)),
        &sandbox.context(),
    )
    .await;
    let KernelError::NoIpykernel {
        python: reported, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(*reported, python);
    sandbox.assert_empty().await;
}

#[tokio::test]
async fn a_failed_start_is_reported_with_stderr() {
    let sandbox = KernelSandbox::new();
    let spec = launcher(&sandbox, "raise RuntimeError('no é today')");
    let error = error(&spec, &sandbox.context()).await;
    let KernelError::FailedToStart { exit, stderr } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(exit.code, Some(1));
    assert!(stderr.contains("RuntimeError: no é today"), "{stderr}");
    sandbox.assert_empty().await;
}

#[tokio::test]
async fn an_exit_during_the_start_is_reported_with_the_output() {
    let sandbox = KernelSandbox::new();
    let source = "import os; os.write(1, b'\\xff\\x00 who is there?\\n' * 9)";
    let error = error(&launcher(&sandbox, source), &sandbox.context()).await;
    let KernelError::FailedToStart { exit, stderr } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(exit.code, Some(0));
    assert!(stderr.contains("who is there?"), "{stderr}");
    sandbox.assert_empty().await;
}

#[tokio::test]
async fn a_kernel_that_hangs_at_start_times_out() {
    for transport in [Transport::Ipc, Transport::Tcp] {
        let sandbox = KernelSandbox::new();
        let source = "import sys, time\nprint('hm', file=sys.stderr, flush=True)\ntime.sleep(100)";
        let mut spec = launcher(&sandbox, source);
        spec.transport = transport;
        spec.start_timeout = Duration::from_secs(2);
        let error = error(&spec, &sandbox.context()).await;
        let KernelError::NotReady { after, stderr } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*after, spec.start_timeout);
        assert!(stderr.contains("hm"), "{stderr:?}");
        sandbox.assert_empty().await;
    }
}

/// Answers `kernel_info_request`s, and closes its sockets at the first other request.
const CLOSES_SOCKETS: &str = "
import json, sys, time, zmq
from jupyter_client.session import Session
info = json.load(open(sys.argv[sys.argv.index('-f') + 1]))
session = Session(key=info['key'].encode(), signature_scheme=info['signature_scheme'])
context = zmq.Context()
def bind(kind, name):
    socket = context.socket(kind)
    socket.linger = 0
    dash = '-' if info['transport'] == 'ipc' else ':'
    socket.bind('%s://%s%s%d' % (info['transport'], info['ip'], dash, info[name + '_port']))
    return socket
sockets = [bind(zmq.ROUTER, 'shell'), bind(zmq.ROUTER, 'control'), bind(zmq.ROUTER, 'stdin')]
iopub, heart = bind(zmq.PUB, 'iopub'), bind(zmq.REP, 'hb')
while True:
    identities, request = session.recv(sockets[0], mode=0)
    if request['msg_type'] != 'kernel_info_request':
        break
    session.send(iopub, 'status', {'execution_state': 'busy'}, parent=request)
    about = {'language_info': {'name': 'stubborn', 'version': '1'}, 'protocol_version': '5.3', 'status': 'ok'}
    session.send(sockets[0], 'kernel_info_reply', about, parent=request, ident=identities)
    session.send(iopub, 'status', {'execution_state': 'idle'}, parent=request)
for socket in sockets + [iopub, heart]:
    socket.close()
time.sleep(100)
";

#[tokio::test]
async fn a_kernel_that_closes_its_sockets_is_killed() {
    let sandbox = KernelSandbox::new();
    let spec = launcher(&sandbox, CLOSES_SOCKETS);
    let mut kernel = Jupyter::start(&spec, &sandbox.context(), &StopSignal::never())
        .await
        .unwrap();
    let (_, outcome) = run_code(&mut kernel, "1").await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, KernelError::Protocol { .. }), "{error:?}");
    assert!(!kernel.is_alive());
    drop(kernel);
    sandbox.assert_empty().await;
}

/// The next cell never gets a reply.
const NO_REPLY: &str = "
kernel = get_ipython().kernel
proper = kernel.do_execute
async def silenced(*arguments, **named):
    kernel.do_execute = proper
    raise ValueError('it went wrong')
kernel.do_execute = silenced
";

#[tokio::test]
async fn a_cell_without_a_reply_fails_and_the_kernel_survives() {
    let sandbox = KernelSandbox::new();
    let mut kernel = sandbox
        .start(Kernelspec::ipykernel(&python()))
        .await
        .unwrap();
    run_code(&mut kernel, NO_REPLY).await.1.unwrap();
    let (recorded, outcome) = run_code(&mut kernel, "1").await;
    let Ending::Raised(traceback) = outcome.unwrap().ending else {
        panic!("{}", recorded.summary())
    };
    assert_eq!(traceback.name, "NoReply");
    assert!(traceback.value.contains("it went wrong"), "{traceback:?}");
    assert_eq!(recorded.summary(), "!NoReply");
    let (recorded, _) = run_code(&mut kernel, "proper is kernel.do_execute").await;
    assert_eq!(recorded.summary(), "=[True]");
}

#[tokio::test]
async fn a_broken_kernelspec_is_reported_with_the_reason() {
    let sandbox = KernelSandbox::new();
    let missing = sandbox.path().join("missing").display().to_string();
    let start_error_of = async |program: &str| {
        let spec = sandbox.spec(kernelspec("k", &[program, "{connection_file}"]));
        error(&spec, &sandbox.context()).await
    };
    for program in [&missing, "no-such-program-anywhere"] {
        let error = start_error_of(program).await;
        let KernelError::BrokenKernelspec { name, source } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(name, "k");
        assert!(
            matches!(source, KernelspecError::NoProgram { .. }),
            "{source:?}"
        );
    }
    let plain = sandbox.path().join("plain");
    std::fs::write(&plain, "\x01 not a program").unwrap();
    let error = start_error_of(plain.to_str().unwrap()).await;
    let is_fault = matches!(
        &error,
        KernelError::BrokenKernelspec {
            source: KernelspecError::NotExecutable { .. },
            ..
        }
    );
    assert!(is_fault, "{error:?}");
    // It is executable, but in no format that the system knows.
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = start_error_of(plain.to_str().unwrap()).await;
    let KernelError::Launch { program, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*program, plain);
    sandbox.assert_empty().await;
}

#[tokio::test]
async fn a_connection_file_that_cannot_be_written_is_an_error() {
    let sandbox = KernelSandbox::new();
    let mut spec = sandbox.spec(Kernelspec::ipykernel(&python()));
    // Not even root can create directories there.
    for runtime in ["/proc/runtime", "/dev/null/runtime"] {
        spec.runtime = runtime.into();
        let error = error(&spec, &sandbox.context()).await;
        assert!(matches!(error, KernelError::Connection { .. }), "{error:?}");
    }
    sandbox.assert_empty().await;
}

#[tokio::test]
async fn without_a_socket_directory_tcp_is_used_only_on_request() {
    let sandbox = KernelSandbox::new();
    let mut spec = sandbox.spec(Kernelspec::ipykernel(&python()));
    let context = LaunchContext {
        sockets: vec![sandbox.path().join("x".repeat(100))],
        ..sandbox.context()
    };
    let refused = error(&spec, &context).await;
    assert!(
        matches!(refused, KernelError::NoSockets { .. }),
        "{refused:?}"
    );
    sandbox.assert_empty().await;

    spec.transport = Transport::Tcp;
    let mut kernel = Jupyter::start(&spec, &context, &StopSignal::never())
        .await
        .unwrap();
    let file = std::fs::read_dir(&spec.runtime).unwrap().next().unwrap();
    let connection = std::fs::read_to_string(file.unwrap().path()).unwrap();
    let connection: serde_json::Value = serde_json::from_str(&connection).unwrap();
    assert_eq!(
        (&connection["transport"], &connection["ip"]),
        (&"tcp".into(), &"127.0.0.1".into())
    );
    let (recorded, outcome) = run_code(&mut kernel, "6 * 7").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(recorded.summary(), "=[42]");
    drop(kernel);
    sandbox.assert_empty().await;
}
