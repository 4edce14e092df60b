//! A server in this process, and its record.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_jupyter_server::{Located, locate};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a server that replies.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const TOKEN: &str = "secret-token";

/// Directories with a notebook, and the requests to the servers of the test.
pub(crate) struct Machine {
    dir: TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Status and body of a reply, by method and path.
pub(crate) type Handler = fn(&str) -> (u16, Value);

impl Machine {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("runtime")).unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::write(dir.path().join("root/a.ipynb"), "{}").unwrap();
        Self {
            dir,
            requests: Arc::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn own_pid() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    /// The record of a server with this port.
    pub(crate) fn record(&self, pid: i32, port: u16) -> Value {
        json!({
            "pid": pid, "port": port, "sock": "", "base_url": "/", "secure": false, "password": false,
            "root_dir": self.path("root"), "token": TOKEN, "hostname": "localhost",
            "url": format!("http://localhost:{port}/"), "version": "2.21.1",
        })
    }

    /// Writes a record as a server does. Returns its path.
    pub(crate) fn write_record(&self, record: &Value) -> PathBuf {
        let path = self.record_path(record["pid"].as_i64().unwrap());
        write_private(&path, record.to_string().as_bytes());
        path
    }

    pub(crate) fn record_path(&self, pid: impl std::fmt::Display) -> PathBuf {
        self.path(&format!("runtime/jpserver-{pid}.json"))
    }

    /// Starts a server with a TCP port. Returns the port.
    pub(crate) fn serve(&self, handler: Handler) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::clone(&self.requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&requests);
                std::thread::spawn(move || reply_all(stream, &requests, handler));
            }
        });
        port
    }

    /// Starts a server with a Unix socket. Returns its path.
    pub(crate) fn serve_unix(&self, handler: Handler) -> PathBuf {
        let path = self.path("server.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let requests = Arc::clone(&self.requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let requests = Arc::clone(&requests);
                std::thread::spawn(move || reply_all(stream, &requests, handler));
            }
        });
        path
    }

    /// Asks about the notebook.
    pub(crate) fn locate(&self) -> Located {
        self.locate_within(TIMEOUT)
    }

    pub(crate) fn locate_within(&self, timeout: Duration) -> Located {
        locate(&self.path("runtime"), &self.path("root/a.ipynb"), timeout)
    }

    /// What the servers of the test have received.
    pub(crate) fn requests(&self) -> String {
        self.requests.lock().unwrap().join("\n")
    }
}

/// Writes a file that only this user can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Replies to requests until the client closes the connection.
fn reply_all(mut stream: impl Read + Write, requests: &Mutex<Vec<String>>, handler: Handler) {
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((head, rest)) = text.split_once("\r\n\r\n") else {
            match stream.read(&mut chunk) {
                Ok(count) if count > 0 => received.extend_from_slice(&chunk[..count]),
                _ => return,
            }
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().unwrap());
        // The client sends a request in one piece.
        received = rest.as_bytes()[length..].to_vec();
        requests.lock().unwrap().push(head.to_owned());
        let line = head.lines().next().unwrap();
        let (status, body) = handler(line.strip_suffix(" HTTP/1.1").unwrap());
        if status == 0 {
            // Never replies.
            continue;
        }
        let body = body.to_string();
        let size = body.len();
        let reply = format!("HTTP/1.1 {status} X\r\nContent-Length: {size}\r\n\r\n{body}");
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}
