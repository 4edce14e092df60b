//! The process of the host: start, status, stop, files, environment, and replacement after its end.

mod peers;
mod recovery;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use cellwright_test_support::skip;
use serde_json::{Value, json};

use crate::context::{CommandOutput, Context};

/// A context whose host ends with the test, also if the test fails.
pub(crate) struct TestHost {
    pub(crate) context: Context,
    dir: PathBuf,
}

impl TestHost {
    pub(crate) fn new() -> Self {
        let context = Context::new();
        let dir = context.home().join("host");
        Self { context, dir }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["host"];
        all.extend(arguments);
        self.context.run(&all)
    }

    /// Starts a host. Returns its process id.
    pub(crate) fn start(&self) -> u32 {
        let reply = self.run(&["start", "--json"]).exits(0).json();
        pid_in(&reply)
    }

    pub(crate) fn status(&self) -> Value {
        self.run(&["status", "--json"]).exits(0).json()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The record of the running host in `host.json`.
    fn record(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.file("host.json")).unwrap()).unwrap()
    }

    pub(crate) fn log(&self) -> String {
        self.run(&["log", "--lines", "1000"]).exits(0).stdout
    }

    fn connect(&self) -> HostConnection {
        HostConnection::new(UnixStream::connect(self.file("host.sock")).unwrap())
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        // Stops the host with a command, and kills the process in its lock file if that fails.
        let lock = fs::read_to_string(self.file("host.lock")).unwrap_or_default();
        self.run(&["stop"]);
        let record: Value = serde_json::from_str(&lock).unwrap_or_default();
        if let Some(pid) = record["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
            && is_host(pid, &self.dir.display().to_string())
        {
            signal(pid, "-KILL");
        }
    }
}

/// A connection to a host without the client library.
struct HostConnection {
    reader: BufReader<UnixStream>,
}

impl HostConnection {
    fn new(stream: UnixStream) -> Self {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    fn send_json(&mut self, value: &Value) {
        self.send(format!("{value}\n").as_bytes());
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Reads to the end of the connection.
    fn read_to_end(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }
}

fn pid_in(reply: &Value) -> u32 {
    u32::try_from(reply["pid"].as_u64().unwrap()).unwrap()
}

pub(crate) fn signal(pid: u32, signal: &str) {
    Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
}

/// Whether a process is a host of this directory.
fn is_host(pid: u32, dir: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    line.contains("__host") && line.contains(dir)
}

/// The process ids of the hosts of a directory.
fn hosts(dir: &str) -> Vec<u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| is_host(pid, dir))
        .collect()
}

/// Waits until `is_true` returns true. Fails with `message` after 20 s.
pub(crate) fn wait_until(message: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "{message}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_host_is_started_once_and_stopped() {
    let test_host = TestHost::new();
    assert_eq!(test_host.status()["running"], false);
    let result = test_host.run(&["status"]).exits(0);
    assert_eq!(result.stdout, "no host is running\n");
    assert!(!test_host.dir.exists(), "`status` creates no directory");

    let pid = test_host.start();
    let again = test_host.run(&["start", "--json"]).exits(0).json();
    assert_eq!(again, json!({"version": 1, "pid": pid, "started": false}));
    let status = test_host.status();
    assert_eq!(status["running"], true);
    assert_eq!(status["pid"], pid);
    assert_eq!(status["protocol"], 6);
    assert_eq!(status["clients"], 0);
    assert_eq!(status["instance"], test_host.record()["instance"]);
    assert!(status["memory_bytes"].as_u64().unwrap() < 20_000_000);
    let result = test_host.run(&["status"]).exits(0);
    assert!(
        result
            .stdout
            .starts_with(&format!("running: pid {pid}, version "))
    );

    let result = test_host.run(&["stop"]).exits(0);
    assert_eq!(result.stdout, format!("ended: pid {pid}\n"));
    assert!(!is_host(pid, ""), "the host still runs after `stop`");
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
    let result = test_host.run(&["stop"]).exits(0);
    assert_eq!(result.stdout, "no host was running\n");
    let log = test_host.log();
    assert!(
        log.contains("started: pid") && log.ends_with("info  ended\n"),
        "{log}"
    );
    assert_eq!(test_host.run(&["log", "-n", "1"]).stdout.lines().count(), 1);
}

#[test]
fn host_files_are_private() {
    let test_host = TestHost::new();
    let pid = test_host.start();
    let mode = |name: &str| {
        let meta = fs::metadata(test_host.dir.join(name)).unwrap();
        meta.permissions().mode() & 0o777
    };
    assert_eq!(mode("."), 0o700);
    for name in [
        "host.sock",
        "host.json",
        "host.lock",
        "start.lock",
        "host.log",
    ] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    // The host has a separate process session and no files of the command that started it.
    let process = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs::read_to_string(process.join("stat")).unwrap();
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, pid.to_string());
    let link_target = |name: &str| fs::read_link(process.join(name)).unwrap();
    assert_eq!(link_target("cwd"), PathBuf::from("/"));
    assert_eq!(link_target("fd/0"), PathBuf::from("/dev/null"));
    assert_eq!(link_target("fd/1"), PathBuf::from("/dev/null"));
    assert_eq!(
        link_target("fd/2"),
        test_host.file("host.log").canonicalize().unwrap()
    );
}

/// A script that holds a lock on a descriptor or reads a pipe to its end must not wait for the host.
#[test]
fn a_host_inherits_no_descriptors() {
    let test_host = TestHost::new();
    let script = "exec 7>\"$1\"; exec \"$0\" host start --json";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cellwright")])
        .arg(test_host.context.path("kept"))
        .env("CELLWRIGHT_HOST_DIR", &test_host.dir)
        .output()
        .unwrap();
    let pid = pid_in(&serde_json::from_slice(&output.stdout).unwrap());
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let entry = entry.unwrap();
        let link_target = fs::read_link(entry.path()).unwrap_or_default();
        let link_target = link_target.display().to_string();
        let is_own = link_target == "/dev/null"
            || link_target.starts_with("socket:")
            || link_target.starts_with("anon_inode:")
            || link_target.contains("/host/host.");
        assert!(is_own, "{}: {link_target}", entry.path().display());
    }
}

#[test]
fn the_environment_of_a_host_contains_no_secrets() {
    let test_host = TestHost::new();
    let output = test_host
        .context
        .command(&["host", "start", "--json"])
        .env("OPENAI_API_KEY", "s3cret")
        .env("CELLWRIGHT_GATEWAY_TOKEN", "s3cret")
        .env("SOMETHING", "s3cret")
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let pid = pid_in(&serde_json::from_slice(&output.stdout).unwrap());
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(environment.contains("LC_ALL=C.UTF-8"), "{environment}");
    assert!(!environment.contains("s3cret"), "{environment}");
}

#[test]
fn concurrent_commands_start_one_host() {
    let test_host = TestHost::new();
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut command = test_host.context.command(&["host", "start", "--json"]);
            command.spawn().unwrap()
        })
        .collect();
    let replies: Vec<Value> = children
        .into_iter()
        .map(|child| {
            let result = CommandOutput::new(&test_host.context, &child.wait_with_output().unwrap());
            result.exits(0).json()
        })
        .collect();
    let started = replies.iter().filter(|reply| reply["started"] == true);
    assert_eq!(started.count(), 1);
    assert!(
        replies
            .iter()
            .all(|reply| reply["pid"] == replies[0]["pid"])
    );
    assert_eq!(
        hosts(&test_host.dir.display().to_string()),
        [pid_in(&replies[0])]
    );
}

#[test]
fn an_idle_host_ends() {
    let test_host = TestHost::new();
    let output = test_host
        .context
        .command(&["host", "start", "--json"])
        .env("CELLWRIGHT_HOST_IDLE_EXIT", "0.5")
        .output()
        .unwrap();
    let pid = pid_in(&serde_json::from_slice(&output.stdout).unwrap());
    // A connected client keeps the host running.
    let mut connection = test_host.connect();
    connection.send_json(&json!({"hello": {"protocol": 6, "version": "test"}}));
    assert_eq!(connection.receive()["hello"]["pid"], pid);
    std::thread::sleep(Duration::from_millis(1200));
    connection.send_json(&json!({"do": "status"}));
    assert_eq!(connection.receive()["status"]["pid"], pid);
    drop(connection);
    wait_until("the host does not end", || !is_host(pid, ""));
    assert!(test_host.log().contains("ending: idle"));
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
}

#[test]
fn signals_stop_a_host_and_remove_its_files() {
    for name in ["-TERM", "-INT", "-HUP"] {
        let test_host = TestHost::new();
        let pid = test_host.start();
        signal(pid, name);
        wait_until(name, || !is_host(pid, ""));
        assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
        assert!(test_host.log().ends_with("info  ended\n"));
    }
}

/// There is neither a home directory nor a runtime directory of the login.
#[test]
fn a_host_runs_without_a_home_directory() {
    let test_host = TestHost::new();
    let temporary = test_host.context.dir().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |action: &str| {
        let output = test_host
            .context
            .command(&["host", action, "--json"])
            .env_remove("HOME")
            .env_remove("CELLWRIGHT_HOST_DIR")
            .env("TMPDIR", &temporary)
            .env("XDG_RUNTIME_DIR", "/nowhere/at/all")
            .output()
            .unwrap();
        CommandOutput::new(&test_host.context, &output)
            .exits(0)
            .json()
    };
    let dir = PathBuf::from(run("status")["directory"].as_str().unwrap());
    if !dir.starts_with(&temporary) {
        // A user who is logged in has a runtime directory, and the test must not stop a host in it.
        assert!(dir.starts_with("/run/user"), "{}", dir.display());
        skip("no-login", "this user is logged in");
        return;
    }
    let pid = pid_in(&run("start"));
    assert_eq!(run("status")["pid"], pid);
    assert_eq!(run("stop")["pid"], pid);
    assert!(!is_host(pid, ""));
}

#[test]
fn a_host_runs_in_a_directory_with_a_long_path() {
    let test_host = TestHost::new();
    let long = test_host.context.dir().join("x".repeat(120));
    let run = |action: &str| {
        let output = test_host
            .context
            .command(&["host", action, "--json"])
            .env("CELLWRIGHT_HOST_DIR", &long)
            .env("TMPDIR", test_host.context.home())
            .output()
            .unwrap();
        CommandOutput::new(&test_host.context, &output)
            .exits(0)
            .json()
    };
    let pid = pid_in(&run("start"));
    assert_eq!(run("status")["pid"], pid);
    assert_eq!(run("stop")["pid"], pid);
}
