//! Shared helpers: a Python interpreter with Jupyter, the oracle script, connections and messages.

use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cellwright_jupyter::client::{ClientEvent, KernelClient};
use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use serde::de::DeserializeOwned;
use serde_json::Value;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/oracle.py");

pub(crate) const KEY: &str = "a key that is a key";

/// The interpreter with Jupyter.
pub(crate) fn python() -> PathBuf {
    let configured = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = configured.unwrap_or_else(|| root.join("target/venv/bin/python"));
    assert!(
        python.is_file(),
        "there is no Python with Jupyter at {}: run scripts/test, which makes one, or set \
         CELLWRIGHT_TEST_PYTHON",
        python.display()
    );
    python
}

/// Starts the oracle: an operation of Python's Jupyter on a case.
pub(crate) fn start_oracle(operation: &str, case: &Value) -> Child {
    let child = Command::new(python())
        .args([ORACLE, operation])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.as_ref().unwrap();
    input.write_all(format!("{case}\n").as_bytes()).unwrap();
    child
}

/// Returns the result of the oracle: an operation of Python's Jupyter on a case.
pub(crate) fn run_oracle<T: DeserializeOwned>(operation: &str, case: &Value) -> T {
    let output = start_oracle(operation, case).wait_with_output().unwrap();
    assert!(output.status.success(), "{operation} failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A temporary directory without links in its path.
pub(crate) fn temp_dir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(dir.path()).unwrap();
    (dir, path)
}

/// Whether the tests run as root, for which permissions do not apply.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The path of a Python program in tests/oracle.
pub(crate) fn oracle_script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/oracle")
        .join(name)
}

/// Fails if the future takes longer than a minute.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_mins(1);
    tokio::time::timeout(limit, future)
        .await
        .expect("timed out")
}

pub(crate) fn connection(transport: Transport) -> Connection {
    Connection {
        transport,
        ports: Ports {
            shell: 0,
            iopub: 0,
            stdin: 0,
            control: 0,
            hb: 0,
        },
        key: KEY.to_owned(),
        kernel_name: None,
    }
}

pub(crate) fn tcp() -> Connection {
    connection(Transport::Tcp {
        ip: "127.0.0.1".to_owned(),
    })
}

pub(crate) fn ipc(dir: &Path) -> Connection {
    connection(Transport::Ipc {
        stem: dir.join("kernel"),
    })
}

/// The connection as the JSON of a connection file.
pub(crate) fn connection_file_json(connection: &Connection) -> Value {
    let (transport, ip) = match &connection.transport {
        Transport::Tcp { ip } => ("tcp", ip.clone()),
        Transport::Ipc { stem } => ("ipc", stem.display().to_string()),
    };
    serde_json::json!({
        "transport": transport,
        "ip": ip,
        "shell_port": connection.ports.shell,
        "iopub_port": connection.ports.iopub,
        "stdin_port": connection.ports.stdin,
        "control_port": connection.ports.control,
        "hb_port": connection.ports.hb,
        "key": connection.key,
        "signature_scheme": "hmac-sha256",
        "kernel_name": "",
    })
}

/// The next message on a channel. Events of other channels are ignored.
pub(crate) async fn next_message(client: &mut KernelClient, channel: Channel) -> Message {
    within(async {
        loop {
            match client.next().await {
                ClientEvent::Message(on, message) if on == channel => return *message,
                ClientEvent::Rejected(on, error) => panic!("rejected on {on:?}: {error}"),
                _ => {}
            }
        }
    })
    .await
}

/// The next request of any channel.
pub(crate) async fn next_request(server: &mut Server) -> (Channel, Message) {
    within(async {
        match server.next().await {
            server::ServerEvent::Request(channel, message) => (channel, *message),
            server::ServerEvent::Disconnected(channel, _) => {
                panic!("a client of {channel:?} was disconnected")
            }
        }
    })
    .await
}
