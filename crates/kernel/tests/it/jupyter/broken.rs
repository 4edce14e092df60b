//! Kernels that are missing, broken, or of ill will.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use cellwright_jupyter::kernelspec::{Fault, Kernelspec};
use cellwright_kernel::backend::jupyter::{Jupyter, JupyterSpec, Transport};
use cellwright_kernel::{Ending, Kernel, KernelError, Stop};

use super::{Room, kernelspec};
use crate::support::{python, run};

/// The kernel of an interpreter in which this is `ipykernel_launcher`.
fn launcher(room: &Room, source: &str) -> JupyterSpec {
    let folder = room.path().join("modules");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("ipykernel_launcher.py"), source).unwrap();
    let mut spec = room.spec(Kernelspec::ipykernel(&python()));
    spec.env.push(("PYTHONPATH".into(), folder.into()));
    spec
}

async fn error(spec: &JupyterSpec) -> KernelError {
    match Jupyter::start(spec, &Stop::never()).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_interpreter_without_ipykernel_is_told() {
    let room = Room::new();
    let bare = room.path().join("bare");
    let made = std::process::Command::new(python())
        .args(["-m", "venv", "--without-pip"])
        .arg(&bare)
        .status();
    assert!(made.unwrap().success());
    let python = bare.join("bin/python");
    let error = error(&room.spec(Kernelspec::ipykernel(&python))).await;
    let KernelError::NoIpykernel { python: told } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*told, python);
    room.empties().await;
}

#[tokio::test]
async fn a_kernel_that_fails_is_told_with_what_it_said() {
    let room = Room::new();
    let error = error(&launcher(&room, "raise RuntimeError('no é today')")).await;
    let KernelError::FailedToStart { exit, stderr } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(exit.code, Some(1));
    assert!(stderr.contains("RuntimeError: no é today"), "{stderr}");
    room.empties().await;
}

#[tokio::test]
async fn a_kernel_that_talks_nonsense_and_goes_is_told_with_what_it_said() {
    let room = Room::new();
    let source = "import os; os.write(1, b'\\xff\\x00 who is there?\\n' * 9)";
    let error = error(&launcher(&room, source)).await;
    let KernelError::FailedToStart { exit, stderr } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(exit.code, Some(0));
    assert!(stderr.contains("who is there?"), "{stderr}");
    room.empties().await;
}

#[tokio::test]
async fn a_kernel_that_hangs_is_not_waited_for_for_ever() {
    for transport in [Transport::Auto, Transport::Tcp] {
        let room = Room::new();
        let source = "import sys, time\nprint('hm', file=sys.stderr, flush=True)\ntime.sleep(100)";
        let mut spec = launcher(&room, source);
        spec.transport = transport;
        spec.start_timeout = Duration::from_secs(2);
        let error = error(&spec).await;
        let KernelError::NotReady { after, stderr } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*after, spec.start_timeout);
        assert!(stderr.contains("hm"), "{stderr:?}");
        room.empties().await;
    }
}

/// Answers what it is asked at the start, and lets go of its sockets when it is to run something.
const LETS_GO: &str = "
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
async fn a_kernel_that_lets_go_of_its_sockets_is_ended() {
    let room = Room::new();
    let spec = launcher(&room, LETS_GO);
    let mut kernel = Jupyter::start(&spec, &Stop::never()).await.unwrap();
    let (_, outcome) = run(&mut kernel, "1").await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, KernelError::Protocol { .. }), "{error:?}");
    assert!(!kernel.is_alive());
    drop(kernel);
    room.empties().await;
}

/// The code of the next cell never gets an answer.
const SILENCED: &str = "
kernel = get_ipython().kernel
proper = kernel.do_execute
async def silenced(*arguments, **named):
    kernel.do_execute = proper
    raise ValueError('it went wrong')
kernel.do_execute = silenced
";

#[tokio::test]
async fn a_cell_that_is_never_answered_has_failed_and_the_kernel_stays() {
    let room = Room::new();
    let mut kernel = room.start(Kernelspec::ipykernel(&python())).await.unwrap();
    run(&mut kernel, SILENCED).await.1.unwrap();
    let (heard, outcome) = run(&mut kernel, "1").await;
    let Ending::Raised(traceback) = outcome.unwrap().ending else {
        panic!("{}", heard.line())
    };
    assert_eq!(traceback.name, "NoReply");
    assert!(traceback.value.contains("it went wrong"), "{traceback:?}");
    assert_eq!(heard.line(), "!NoReply");
    let (heard, _) = run(&mut kernel, "proper is kernel.do_execute").await;
    assert_eq!(heard.line(), "=[True]");
}

#[tokio::test]
async fn a_kernelspec_that_cannot_be_started_says_why() {
    let room = Room::new();
    let missing = room.path().join("missing").display().to_string();
    let error_of = async |program: &str| {
        error(&room.spec(kernelspec("k", &[program, "{connection_file}"]))).await
    };
    for program in [&missing, "no-such-program-anywhere"] {
        let error = error_of(program).await;
        let KernelError::BrokenKernelspec { name, fault } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(name, "k");
        assert!(matches!(fault, Fault::NoProgram { .. }), "{fault:?}");
    }
    let plain = room.path().join("plain");
    std::fs::write(&plain, "\x01 not a program").unwrap();
    let error = error_of(plain.to_str().unwrap()).await;
    let is_fault = matches!(
        &error,
        KernelError::BrokenKernelspec {
            fault: Fault::NotExecutable { .. },
            ..
        }
    );
    assert!(is_fault, "{error:?}");
    // It may be executed, but the system does not know how.
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = error_of(plain.to_str().unwrap()).await;
    let KernelError::Launch { program, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*program, plain);
    room.empties().await;
}

#[tokio::test]
async fn a_connection_file_that_cannot_be_written_is_told() {
    let room = Room::new();
    let mut spec = room.spec(Kernelspec::ipykernel(&python()));
    // Not even root can make folders there.
    for runtime in ["/proc/runtime", "/dev/null/runtime"] {
        spec.runtime = runtime.into();
        let error = error(&spec).await;
        assert!(matches!(error, KernelError::Connection { .. }), "{error:?}");
    }
    room.empties().await;
}

#[tokio::test]
async fn without_a_place_for_sockets_they_are_on_loopback() {
    let room = Room::new();
    let mut spec = room.spec(Kernelspec::ipykernel(&python()));
    spec.sockets = vec![room.path().join("x".repeat(100))];
    let mut kernel = Jupyter::start(&spec, &Stop::never()).await.unwrap();
    let file = std::fs::read_dir(&spec.runtime).unwrap().next().unwrap();
    let connection = std::fs::read_to_string(file.unwrap().path()).unwrap();
    let connection: serde_json::Value = serde_json::from_str(&connection).unwrap();
    assert_eq!(
        (&connection["transport"], &connection["ip"]),
        (&"tcp".into(), &"127.0.0.1".into())
    );
    let (heard, outcome) = run(&mut kernel, "6 * 7").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(heard.line(), "=[42]");
    drop(kernel);
    room.empties().await;

    spec.transport = Transport::Ipc;
    let error = error(&spec).await;
    assert!(matches!(error, KernelError::NoSockets { .. }), "{error:?}");
}
