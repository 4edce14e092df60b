//! The shared gateway: one Jupyter Kernel Gateway per user on this machine.

mod recovery;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::context::{CommandOutput, Context};

/// How long a process may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// A user with a shared gateway, which ends with the test.
pub(super) struct GatewayUser {
    pub(super) context: Context,
    pub(super) python: PathBuf,
}

impl GatewayUser {
    /// Reports a skip if the interpreter of the tests has no gateway.
    pub(super) fn new() -> Option<Self> {
        if !cellwright_test_support::Engine::KernelGateway.is_installed() {
            return None;
        }
        let python = cellwright_test_support::python()?;
        let context = Context::new();
        Some(Self { context, python })
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.context.command(arguments);
        command.env("CELLWRIGHT_PYTHON", &self.python);
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::new(&self.context, &self.command(arguments).output().unwrap())
    }

    /// Runs code on the gateway. Returns what it prints.
    pub(super) fn eval(&self, arguments: &[&str]) -> String {
        let all = [&["eval", "--backend", "gateway"], arguments].concat();
        self.run(&all).exits(0).stdout.trim().to_owned()
    }

    /// Starts code on the gateway. Returns the command and the first line that the code prints.
    pub(super) fn start_eval(&self, code: &str) -> (Child, String) {
        let mut command = self.command(&["eval", "--backend", "gateway", "--timeout", "0", code]);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        // Closed with the command.
        child.stdout = Some(stdout.into_inner());
        (child, line.trim().to_owned())
    }

    pub(super) fn status(&self) -> Value {
        self.run(&["gateway", "status", "--json"]).exits(0).json()
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.context.home().join("host/gateway")
    }
}

impl Drop for GatewayUser {
    fn drop(&mut self) {
        self.run(&["gateway", "stop"]);
        self.run(&["host", "stop"]);
    }
}

pub(super) fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until a condition holds.
pub(super) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + END_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn kill(pid: &str) {
    let status = Command::new("kill").args(["-KILL", pid]).status().unwrap();
    assert!(status.success());
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// An environment whose interpreter finds the packages of another one.
fn environment(user: &GatewayUser, name: &str, has_packages: bool) -> PathBuf {
    let dir = user.context.path(name);
    let created = Command::new(&user.python)
        .args(["-m", "venv", "--without-pip"])
        .arg(&dir)
        .status();
    assert!(created.unwrap().success());
    if has_packages {
        let packages = |prefix: &Path| {
            let mut found = fs::read_dir(prefix.join("lib")).unwrap();
            found.next().unwrap().unwrap().path().join("site-packages")
        };
        let source = packages(user.python.parent().unwrap().parent().unwrap());
        let link = packages(&dir).join("shared.pth");
        fs::write(link, source.display().to_string()).unwrap();
    }
    dir.join("bin/python3")
}

#[test]
fn the_gateway_starts_shows_its_state_and_stops() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    assert_eq!(
        user.run(&["gateway", "status"]).exits(0).stdout,
        "no gateway is running\n"
    );
    let started = user.run(&["gateway", "start", "--json"]).exits(0).json();
    assert_eq!(started["started"], true);
    let again = user.run(&["gateway", "start", "--json"]).exits(0).json();
    assert_eq!(again["started"], false);
    assert_eq!(again["pid"], started["pid"]);
    let info = user.dir().join("1/info.json");
    assert_eq!(
        fs::metadata(&info).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let record: Value = serde_json::from_slice(&fs::read(&info).unwrap()).unwrap();
    let token = record["token"].as_str().unwrap();
    let status = user.status();
    let gateway = &status["gateways"][0];
    assert_eq!(
        (&gateway["healthy"], &gateway["url"]),
        (&true.into(), &started["url"])
    );
    // The token is in no command line and in no output.
    let gateway_pid = text(&gateway["gateway_pid"]);
    let command_line = fs::read_to_string(format!("/proc/{gateway_pid}/cmdline")).unwrap();
    assert!(command_line.contains("kernel_gateway") && !command_line.contains(token));
    let shown = user.run(&["gateway", "status"]).exits(0).stdout;
    assert!(
        shown.contains("state: healthy") && !shown.contains(token),
        "{shown}"
    );
    assert!(!format!("{started}{status}").contains(token));
    let pid = text(&started["pid"]);
    let stopped = user.run(&["gateway", "stop"]).exits(0).stdout;
    assert_eq!(stopped, format!("ended: pid {pid}\nended kernels: 0\n"));
    assert!(!is_running(&gateway_pid));
    assert_eq!(
        user.run(&["gateway", "stop"]).exits(0).stdout,
        "no gateway was running\n"
    );
    assert!(!user.dir().join("1").exists());
}

#[test]
fn processes_that_race_start_one_gateway() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let children: Vec<Child> = (0..4)
        .map(|_| {
            user.command(&["gateway", "start", "--json"])
                .spawn()
                .unwrap()
        })
        .collect();
    let outputs = children
        .into_iter()
        .map(|child| child.wait_with_output().unwrap());
    let started: Vec<Value> = outputs
        .map(|output| CommandOutput::new(&user.context, &output).exits(0).json())
        .collect();
    let count = started.iter().filter(|gateway| gateway["started"] == true);
    assert_eq!(count.count(), 1, "{started:?}");
    assert!(
        started
            .iter()
            .all(|gateway| gateway["pid"] == started[0]["pid"])
    );
}

#[test]
fn each_kernel_has_its_own_directory_environment_and_interpreter() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let code = "import os, sys\nprint(os.getppid(), sys.prefix, os.getcwd(), os.environ.get('STAGE'), 'KERNEL_CELLWRIGHT_OWNER' in os.environ)";
    let mut parents = Vec::new();
    for (name, stage) in [("one", "a"), ("zwei ä", "b")] {
        let python = environment(&user, &format!("env-{stage}"), true);
        let project = user.context.path(name);
        fs::create_dir(&project).unwrap();
        let output = user
            .command(&["eval", "--backend", "gateway", code])
            .env("CELLWRIGHT_PYTHON", &python)
            .env("STAGE", stage)
            .current_dir(&project)
            .output()
            .unwrap();
        let output = CommandOutput::new(&user.context, &output).exits(0).stdout;
        let (parent, rest) = output.split_once(' ').unwrap();
        parents.push(parent.to_owned());
        let prefix = python.parent().unwrap().parent().unwrap();
        let expected = format!("{} {} {stage} False", prefix.display(), project.display());
        assert_eq!(rest.trim(), expected);
    }
    assert_eq!(parents[0], parents[1], "the kernels have one gateway");
    let status = user.status();
    assert_eq!(status["gateways"].as_array().unwrap().len(), 1);
    assert_eq!(
        status["gateways"][0]["kernels"].as_array().unwrap().len(),
        0
    );
}

#[test]
fn a_session_keeps_its_kernel_and_status_names_its_owner() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    user.eval(&["--session", "work", "x = 41"]);
    assert_eq!(user.eval(&["--session", "work", "print(x + 1)"]), "42");
    let status = user.status();
    let kernel = &status["gateways"][0]["kernels"][0];
    assert_eq!(kernel["session"], "work");
    let host = user.run(&["host", "status", "--json"]).exits(0).json();
    assert_eq!(kernel["owner_pid"], host["pid"]);
    // After the end of the gateway, the session gets a new kernel on a new one. A call that comes before the host has
    // noticed the end fails: its code may have begun to run.
    let stopped = user.run(&["gateway", "stop", "--json"]).exits(0).json();
    assert_eq!(stopped["kernels"], 1);
    user.run(&["eval", "--backend", "gateway", "--session", "work", "1"]);
    assert_eq!(
        user.eval(&["--session", "work", "print('x' in globals())"]),
        "False"
    );
}

#[test]
fn missing_packages_are_reported_with_the_command_that_installs_them() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let python = environment(&user, "bare", false);
    for arguments in [
        &["gateway", "start"][..],
        &["eval", "--backend", "gateway", "1"],
    ] {
        let output = user
            .command(arguments)
            .env("CELLWRIGHT_PYTHON", &python)
            .output()
            .unwrap();
        let failed = CommandOutput::new(&user.context, &output).exits(2);
        let python = python.display();
        let expected = format!(
            "kernel_gateway (jupyter-kernel-gateway) or ipykernel not installed. Run: {python} -m ensurepip && {python} -m pip install jupyter_kernel_gateway ipykernel"
        );
        assert!(failed.stderr.contains(&expected), "{}", failed.stderr);
    }
    assert_eq!(user.status()["running"], false);
}

#[test]
fn a_gateway_without_kernels_ends_after_the_idle_time() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    let mut start = user.command(&["gateway", "start", "--json"]);
    start.env("CELLWRIGHT_GATEWAY_IDLE_TIMEOUT", "1");
    let started = CommandOutput::new(&user.context, &start.output().unwrap()).exits(0);
    let pid = text(&started.json()["pid"]);
    wait_until("the gateway ends", || !is_running(&pid));
    assert_eq!(user.status()["running"], false);
}

#[test]
fn a_gateway_that_does_not_start_is_reported_with_its_log() {
    let Some(user) = GatewayUser::new() else {
        return;
    };
    // A module that shadows one of the gateway fails when it is imported.
    let dir = user.context.path("modules");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("tornado.py"), "raise RuntimeError('broken here')").unwrap();
    let mut start = user.command(&["gateway", "start"]);
    start.env("PYTHONPATH", &dir);
    let failed = CommandOutput::new(&user.context, &start.output().unwrap()).exits(2);
    assert!(
        failed
            .stderr
            .contains("The shared gateway could not be started"),
        "{}",
        failed.stderr
    );
    assert!(
        failed.stderr.contains("RuntimeError: broken here"),
        "{}",
        failed.stderr
    );
    assert_eq!(user.eval(&["print(1)"]), "1");
}
