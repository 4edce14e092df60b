//! What these tests share: an interpreter with Jupyter in it, questions to it, and both ends of the wire.

use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::link::{Heard, Link};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use serde::de::DeserializeOwned;
use serde_json::Value;

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/oracle.py");

pub(crate) const KEY: &str = "a key that is a key";

/// The interpreter that has Jupyter.
pub(crate) fn python() -> PathBuf {
    let given = std::env::var_os("CELLWRIGHT_TEST_PYTHON").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = given.unwrap_or_else(|| root.join("target/venv/bin/python"));
    assert!(
        python.is_file(),
        "there is no Python with Jupyter at {}: run scripts/test, which makes one, or set \
         CELLWRIGHT_TEST_PYTHON",
        python.display()
    );
    python
}

/// A question to Python's Jupyter, on its way.
pub(crate) fn begin(question: &str, case: &Value) -> Child {
    let child = Command::new(python())
        .args([ORACLE, question])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.as_ref().unwrap();
    input.write_all(format!("{case}\n").as_bytes()).unwrap();
    child
}

/// What Python's Jupyter makes of something.
pub(crate) fn ask<T: DeserializeOwned>(question: &str, case: &Value) -> T {
    let output = begin(question, case).wait_with_output().unwrap();
    assert!(output.status.success(), "{question} failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with no links in its path.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

/// Whether files can be kept from us.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program of Python in tests/oracle.
pub(crate) fn oracle(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/oracle")
        .join(name)
}

/// What takes longer has hung.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_mins(1);
    tokio::time::timeout(limit, future).await.expect("it hangs")
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

pub(crate) fn ipc(folder: &Path) -> Connection {
    connection(Transport::Ipc {
        stem: folder.join("kernel"),
    })
}

/// The same as the file that Jupyter reads.
pub(crate) fn file(connection: &Connection) -> Value {
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

/// The next message on that channel; other channels may say what they like.
pub(crate) async fn message(link: &mut Link, channel: Channel) -> Message {
    within(async {
        loop {
            match link.next().await {
                Heard::Message(on, message) if on == channel => return *message,
                Heard::Refused(on, error) => panic!("refused on {on:?}: {error}"),
                _ => {}
            }
        }
    })
    .await
}

/// The next request.
pub(crate) async fn request(server: &mut Server) -> (Channel, Message) {
    within(async {
        match server.next().await {
            server::Heard::Request(channel, message) => (channel, *message),
            server::Heard::Cut(channel, _) => panic!("a client of {channel:?} was cut off"),
        }
    })
    .await
}
