//! Our server as a kernel in a process of its own, driven by Jupyter's own client.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cellwright_jupyter::connection::{Channel, Connection};
use cellwright_jupyter::link::{Heard, Link, Options};
use cellwright_jupyter::server::{self, Server};

use crate::support::{file, ipc, oracle, python, tcp, within};

/// The example, which is built along with the tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let program = built.join("examples/echo_kernel");
    assert!(
        program.is_file(),
        "{} is missing: build the examples, too",
        program.display()
    );
    program
}

/// Ports, or names, that were free a moment ago.
async fn free(any: &Connection) -> Connection {
    let options = server::Options::default();
    let server = within(Server::bind(any, &options)).await.unwrap();
    server.connection().clone()
}

struct Echo(Child, Connection);

impl Echo {
    async fn start(folder: &Path, any: &Connection) -> Self {
        let connection = free(any).await;
        let path = folder.join("connection.json");
        std::fs::write(&path, file(&connection).to_string()).unwrap();
        let child = Command::new(program()).arg(path).spawn().unwrap();
        Self(child, connection)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().unwrap();
    }
}

async fn is_driven_by_python(folder: &Path, any: &Connection) {
    let mut echo = Echo::start(folder, any).await;
    let python = Command::new(python())
        .arg(oracle("drive.py"))
        .arg(folder.join("connection.json"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&python.stderr);
    assert!(python.status.success(), "{errors}");
    assert_eq!(python.stdout, b"all well\n", "{errors}");
    assert!(echo.0.wait().unwrap().success());
}

#[tokio::test]
async fn jupyters_own_client_finds_nothing_wrong_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    is_driven_by_python(folder.path(), &tcp()).await;
}

#[tokio::test]
async fn jupyters_own_client_finds_nothing_wrong_through_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    is_driven_by_python(folder.path(), &ipc(folder.path())).await;
}

#[tokio::test]
async fn every_channel_hears_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for any in [tcp(), ipc(folder.path())] {
        let echo = Echo::start(folder.path(), &any).await;
        let mut link = Link::open(&echo.1, &Options::default()).unwrap();
        let mut open = 0;
        while open < 4 {
            if let Heard::Open(_) = within(link.next()).await {
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
            if let Heard::Closed(channel, _) = within(link.next()).await {
                missing.retain(|other| *other != channel);
            }
        }
    }
}
