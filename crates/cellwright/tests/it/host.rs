//! The host as a process: one per user, found again, replaced when it is gone, never mistaken for
//! somebody else.

mod peers;
mod trouble;

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
    folder: PathBuf,
}

impl TestHost {
    pub(crate) fn new() -> Self {
        let context = Context::new();
        let folder = context.home().join("host");
        Self { context, folder }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["host"];
        all.extend(arguments);
        self.context.run(&all)
    }

    /// Starts a host. Returns its process id.
    pub(crate) fn start(&self) -> u32 {
        let answer = self.run(&["start", "--json"]).exits(0).json();
        pid_in(&answer)
    }

    pub(crate) fn status(&self) -> Value {
        self.run(&["status", "--json"]).exits(0).json()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What is written about the living host.
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
        // By its own way, and if that is what is broken by the number that its lock names.
        let lock = fs::read_to_string(self.file("host.lock")).unwrap_or_default();
        self.run(&["stop"]);
        let record: Value = serde_json::from_str(&lock).unwrap_or_default();
        if let Some(pid) = record["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
            && is_host(pid, &self.folder.display().to_string())
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

    /// Everything up to the end.
    fn read_to_end(&mut self) -> String {
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }
}

fn pid_in(answer: &Value) -> u32 {
    u32::try_from(answer["pid"].as_u64().unwrap()).unwrap()
}

pub(crate) fn signal(pid: u32, signal: &str) {
    Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
}

/// Whether a process is a host of this folder.
fn is_host(pid: u32, folder: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    line.contains("__host") && line.contains(folder)
}

/// Hosts of this folder there are.
fn hosts(folder: &str) -> Vec<u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| is_host(pid, folder))
        .collect()
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_is_started_found_again_and_ended() {
    let test_host = TestHost::new();
    assert_eq!(test_host.status()["running"], false);
    let ran = test_host.run(&["status"]).exits(0);
    assert_eq!(ran.stdout, "no host is running\n");
    assert!(!test_host.folder.exists(), "looking makes nothing");

    let pid = test_host.start();
    let again = test_host.run(&["start", "--json"]).exits(0).json();
    assert_eq!(again, json!({"pid": pid, "started": false}));
    let status = test_host.status();
    assert_eq!(status["running"], true);
    assert_eq!(status["pid"], pid);
    assert_eq!(status["protocol"], 3);
    assert_eq!(status["clients"], 0);
    assert_eq!(status["instance"], test_host.record()["instance"]);
    assert!(status["memory_bytes"].as_u64().unwrap() < 20_000_000);
    let ran = test_host.run(&["status"]).exits(0);
    assert!(
        ran.stdout
            .starts_with(&format!("running: pid {pid}, version "))
    );

    let ran = test_host.run(&["stop"]).exits(0);
    assert_eq!(ran.stdout, format!("ended: pid {pid}\n"));
    assert!(!is_host(pid, ""), "it is gone when the command is");
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
    let ran = test_host.run(&["stop"]).exits(0);
    assert_eq!(ran.stdout, "no host was running\n");
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
        let meta = fs::metadata(test_host.folder.join(name)).unwrap();
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
    // In a session of its own, with nothing of its starter's.
    let process = PathBuf::from(format!("/proc/{pid}"));
    let stat = fs::read_to_string(process.join("stat")).unwrap();
    let session = stat.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, pid.to_string());
    let leads_to = |name: &str| fs::read_link(process.join(name)).unwrap();
    assert_eq!(leads_to("cwd"), PathBuf::from("/"));
    assert_eq!(leads_to("fd/0"), PathBuf::from("/dev/null"));
    assert_eq!(leads_to("fd/1"), PathBuf::from("/dev/null"));
    assert_eq!(
        leads_to("fd/2"),
        test_host.file("host.log").canonicalize().unwrap()
    );
}

/// A script that holds a lock on a descriptor, or reads a pipe to its end, must not wait for it.
#[test]
fn it_keeps_no_descriptor_of_its_starter() {
    let test_host = TestHost::new();
    let script = "exec 7>\"$1\"; exec \"$0\" host start --json";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cellwright")])
        .arg(test_host.context.path("kept"))
        .env("CELLWRIGHT_HOST_DIR", &test_host.folder)
        .output()
        .unwrap();
    let pid = pid_in(&serde_json::from_slice(&output.stdout).unwrap());
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let entry = entry.unwrap();
        let leads_to = fs::read_link(entry.path()).unwrap_or_default();
        let leads_to = leads_to.display().to_string();
        let own = leads_to == "/dev/null"
            || leads_to.starts_with("socket:")
            || leads_to.starts_with("anon_inode:")
            || leads_to.contains("/host/host.");
        assert!(own, "{}: {leads_to}", entry.path().display());
    }
}

#[test]
fn its_environment_holds_no_secrets() {
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
fn many_commands_at_once_start_exactly_one() {
    let test_host = TestHost::new();
    let children: Vec<_> = (0..20)
        .map(|_| {
            let mut command = test_host.context.command(&["host", "start", "--json"]);
            command.spawn().unwrap()
        })
        .collect();
    let answers: Vec<Value> = children
        .into_iter()
        .map(|child| {
            let ran = CommandOutput::new(&test_host.context, &child.wait_with_output().unwrap());
            ran.exits(0).json()
        })
        .collect();
    let started = answers.iter().filter(|answer| answer["started"] == true);
    assert_eq!(started.count(), 1);
    assert!(answers.iter().all(|one| one["pid"] == answers[0]["pid"]));
    assert_eq!(
        hosts(&test_host.folder.display().to_string()),
        [pid_in(&answers[0])]
    );
}

#[test]
fn it_ends_when_there_is_nothing_to_do() {
    let test_host = TestHost::new();
    let output = test_host
        .context
        .command(&["host", "start", "--json"])
        .env("CELLWRIGHT_HOST_IDLE_EXIT", "0.5")
        .output()
        .unwrap();
    let pid = pid_in(&serde_json::from_slice(&output.stdout).unwrap());
    // A client that is there keeps it.
    let mut line = test_host.connect();
    line.send_json(&json!({"hello": {"protocol": 3, "version": "test"}}));
    assert_eq!(line.receive()["hello"]["pid"], pid);
    std::thread::sleep(Duration::from_millis(1200));
    line.send_json(&json!({"do": "status"}));
    assert_eq!(line.receive()["status"]["pid"], pid);
    drop(line);
    wait_until("it does not end", || !is_host(pid, ""));
    assert!(test_host.log().contains("ending: idle"));
    assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
}

#[test]
fn signals_end_it_in_order() {
    for name in ["-TERM", "-INT", "-HUP"] {
        let test_host = TestHost::new();
        let pid = test_host.start();
        signal(pid, name);
        wait_until(name, || !is_host(pid, ""));
        assert!(!test_host.file("host.json").exists() && !test_host.file("host.sock").exists());
        assert!(test_host.log().ends_with("info  ended\n"));
    }
}

/// Without a home, without a folder of the login's.
#[test]
fn it_needs_no_home() {
    let test_host = TestHost::new();
    let temporary = test_host.context.folder().join("tmp");
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
    let folder = PathBuf::from(run("status")["folder"].as_str().unwrap());
    if !folder.starts_with(&temporary) {
        // Whoever is logged in has a folder, and perhaps a host in it that is not ours to end.
        assert!(folder.starts_with("/run/user"), "{}", folder.display());
        skip("no-login", "this user is logged in");
        return;
    }
    let pid = pid_in(&run("start"));
    assert_eq!(run("status")["pid"], pid);
    assert_eq!(run("stop")["pid"], pid);
    assert!(!is_host(pid, ""));
}

#[test]
fn a_long_path_is_no_obstacle() {
    let test_host = TestHost::new();
    let long = test_host.context.folder().join("x".repeat(120));
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
