//! The echo kernel in its own process, driven by Jupyter's Python client.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cellwright_jupyter::client::{ClientEvent, ClientOptions, KernelClient};
use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::server::{self, Server};

use crate::support::{connection_file_json, ipc, oracle_script, python, tcp, within};

/// The path of the example, which is built with the tests.
fn echo_kernel_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let program = built.join("examples/echo_kernel");
    assert!(
        program.is_file(),
        "{} is missing: build the examples too",
        program.display()
    );
    program
}

/// A connection whose ports or names were just free.
async fn free_connection(any: &Connection) -> Connection {
    let options = server::ServerOptions::default();
    let server = within(Server::bind(any, &options)).await.unwrap();
    server.connection().clone()
}

struct EchoKernel(Child, Connection);

impl EchoKernel {
    async fn start(dir: &Path, any: &Connection) -> Self {
        let connection = free_connection(any).await;
        let path = dir.join("connection.json");
        std::fs::write(&path, connection_file_json(&connection).to_string()).unwrap();
        let child = Command::new(echo_kernel_program())
            .arg(path)
            .spawn()
            .unwrap();
        Self(child, connection)
    }
}

impl Drop for EchoKernel {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().unwrap();
    }
}

async fn drive_with_python(dir: &Path, any: &Connection) {
    let mut echo = EchoKernel::start(dir, any).await;
    let python = Command::new(python())
        .arg(oracle_script("drive.py"))
        .arg(dir.join("connection.json"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&python.stderr);
    assert!(python.status.success(), "{errors}");
    assert_eq!(python.stdout, b"ok\n", "{errors}");
    assert!(echo.0.wait().unwrap().success());
}

#[tokio::test]
async fn jupyter_client_finds_no_faults_over_tcp() {
    let dir = tempfile::tempdir().unwrap();
    drive_with_python(dir.path(), &tcp()).await;
}

#[tokio::test]
async fn jupyter_client_finds_no_faults_over_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    drive_with_python(dir.path(), &ipc(dir.path())).await;
}

#[tokio::test]
async fn every_channel_reports_a_killed_process() {
    let dir = tempfile::tempdir().unwrap();
    for any in [tcp(), ipc(dir.path())] {
        let echo = EchoKernel::start(dir.path(), &any).await;
        let mut client = KernelClient::open(&echo.1, &ClientOptions::default()).unwrap();
        let mut open = 0;
        while open < 4 {
            if let ClientEvent::Opened(_) = within(client.next()).await {
                open += 1;
            }
        }
        drop(echo);
        let mut missing = vec![
            Channel::Shell,
            Channel::Iopub,
            Channel::Stdin,
            Channel::Control,
        ];
        while !missing.is_empty() {
            if let ClientEvent::Closed(channel, _) = within(client.next()).await {
                missing.retain(|other| *other != channel);
            }
        }
    }
}
