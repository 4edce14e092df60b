//! The MCP server starts and answers whatever is in the temporary directory, and without one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use super::{SharedDir, succeeded};
use crate::context::Context;

/// Time limit for an answer. A server that waits for a pipe never answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Commands that create directories like those of servers that were killed, with pipes and links in place of the lock.
const PIPES: &str = "umask 0
    for n in 1 2 3 4; do
        mkdir cellwright-own-e$n; mkfifo cellwright-own-e$n/alive; touch -d '2 minutes ago' cellwright-own-e$n
    done";

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
    .to_string()
}

/// A server, which is killed with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts a server on stdin and stdout. Returns its first line, or its error.
fn first_answer(command: &mut Command) -> Result<Value, String> {
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Server(child.unwrap());
    // A server that cannot start does not read it.
    let mut stdin = server.0.stdin.take().unwrap();
    stdin
        .write_all(format!("{}\n", initialize()).as_bytes())
        .ok();
    let mut stdout = BufReader::new(server.0.stdout.take().unwrap());
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        stdout.read_line(&mut line).ok();
        sender.send(line).ok();
    });
    let line = lines.recv_timeout(ANSWER_TIMEOUT).unwrap();
    if line.is_empty() {
        drop(stdin);
        let mut error = String::new();
        let mut stderr = server.0.stderr.take().unwrap();
        stderr.read_to_string(&mut error).unwrap();
        return Err(error);
    }
    Ok(serde_json::from_str(&line).unwrap())
}

#[test]
fn pipes_of_another_user_do_not_delay_the_start() {
    let Some(shared) = SharedDir::new(7) else {
        return;
    };
    succeeded(&shared.attack(PIPES));
    let answer = first_answer(&mut shared.command(&["mcp"])).unwrap();
    assert_eq!(answer["id"], 1);
    // Not even if the other user has taken the name of the user's directory.
    fs::remove_dir_all(shared.user_dir()).unwrap();
    let name = shared.user_dir().display().to_string();
    succeeded(&shared.attack(&format!(
        "umask 0; mkdir {name} {name}/own-1; mkfifo {name}/own-1/alive; touch -d '2 minutes ago' {name}/own-1"
    )));
    let answer = first_answer(&mut shared.command(&["mcp"])).unwrap();
    assert_eq!(answer["id"], 1);
}

/// Sends a request and returns the status of the answer.
fn status(address: &str, request: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn pipes_of_another_user_do_not_stop_the_http_server() {
    let Some(shared) = SharedDir::new(8) else {
        return;
    };
    let token = shared.context.path("token");
    fs::write(&token, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::os::unix::fs::chown(&token, Some(shared.user), None).unwrap();
    super::set_mode(&token, 0o600);
    let file = token.to_str().unwrap().to_owned();
    let mut command = shared.command(&["mcp", "--http", "127.0.0.1:0", "--json"]);
    command.args(["--token-file", &file]);
    let mut server = Server(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut printed = String::new();
    let mut stdout = BufReader::new(server.0.stdout.take().unwrap());
    while !printed.trim_end().ends_with('}') {
        assert!(stdout.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let url = printed["url"].as_str().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    succeeded(&shared.attack(PIPES));
    let body = initialize();
    for _ in 0..4 {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(status(address, &request), 200);
    }
    let other = format!("GET /nope HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert_eq!(status(address, &other), 401);
    let ended = Command::new("kill").arg(server.0.id().to_string()).status();
    assert!(ended.unwrap().success());
    // nextest ends a test that waits here without end.
    server.0.wait().unwrap();
}

/// An old directory of a server that was killed, with a lock file.
fn abandoned_dir(base: &Path, name: &str) -> std::path::PathBuf {
    let dir = base.join(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("alive"), "").unwrap();
    dir
}

fn make_old(dir: &Path) {
    let status = Command::new("touch")
        .args(["-d", "2 minutes ago"])
        .arg(dir)
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn only_directories_of_killed_servers_are_removed() {
    let context = Context::new();
    let user = std::os::unix::fs::MetadataExt::uid(&fs::metadata(context.dir()).unwrap());
    let own = context.path(&format!("cellwright-{user}"));
    fs::create_dir(&own).unwrap();
    super::set_mode(&own, 0o700);
    let abandoned = abandoned_dir(&own, "own-abandoned");
    let linked = abandoned_dir(&own, "own-linked");
    let target = context.path("target");
    fs::write(&target, "kept").unwrap();
    fs::remove_file(linked.join("alive")).unwrap();
    symlink(&target, linked.join("alive")).unwrap();
    let piped = abandoned_dir(&own, "own-piped");
    fs::remove_file(piped.join("alive")).unwrap();
    let made = Command::new("mkfifo").arg(piped.join("alive")).status();
    assert!(made.unwrap().success());
    let live = abandoned_dir(&own, "own-live");
    let lock = fs::File::open(live.join("alive")).unwrap();
    lock.lock().unwrap();
    for dir in [&abandoned, &linked, &piped, &live] {
        make_old(dir);
    }
    let elsewhere = context.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, own.join("own-link")).unwrap();
    let mut command = context.command(&["mcp"]);
    command.env("TMPDIR", context.dir());
    // The server waits for the removal before it exits: its stdin is closed.
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!abandoned.exists());
    for kept in [&linked, &piped, &live, &elsewhere, &target] {
        assert!(kept.exists(), "{}", kept.display());
    }
    let names = fs::read_dir(&own).unwrap().count();
    assert_eq!(names, 4, "the directory of the server is removed");
}

#[test]
fn the_server_starts_without_a_temporary_directory() {
    let context = Context::new();
    for missing in ["/nonexistent/dir", "relative"] {
        let mut command = context.command(&["mcp"]);
        let answer = first_answer(command.env("TMPDIR", missing)).unwrap();
        assert_eq!(answer["id"], 1, "{missing}");
    }
    assert!(!Path::new("/nonexistent").exists());
    assert!(!context.path("relative").exists());
}

#[test]
fn without_a_working_directory_the_server_needs_a_root() {
    let context = Context::new();
    let removed = context.path("removed");
    let start = |arguments: &[&str]| {
        fs::create_dir_all(&removed).unwrap();
        let mut command = Command::new("sh");
        let program = context.command(arguments);
        command
            .args(["-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\""])
            .arg(&removed)
            .arg(program.get_program())
            .args(program.get_args())
            .env_clear();
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap());
        }
        first_answer(&mut command)
    };
    let error = start(&["mcp"]).unwrap_err();
    assert!(
        error.contains("The current directory does not exist any more"),
        "{error}"
    );
    assert!(error.contains("`--root`"), "{error}");
    let root = context.dir().to_str().unwrap();
    assert_eq!(start(&["mcp", "--root", root]).unwrap()["id"], 1);
}
