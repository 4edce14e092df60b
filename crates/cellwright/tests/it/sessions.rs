//! Sessions of a host: several clients, several owners, limits, and clients, kernels and hosts that are killed.

mod inspection;
mod limits;
mod many_sessions;
mod owners;
mod process_death;
mod robustness;
mod runs;
mod several_clients;
mod slow_readers;
mod spare_kernels;
mod suspended;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;

use crate::context::CommandOutput;
use crate::host::{TestHost, signal, wait_until};

/// A cell that creates the file `begun` and then runs for 100 s.
const LONG_CELL: &str = "open('begun', 'w').close()\nimport time\ntime.sleep(100)";

/// A host with settings. The host ends with the test.
struct SessionFixture {
    host: TestHost,
    settings: Vec<(String, OsString)>,
}

impl SessionFixture {
    fn new() -> Self {
        Self::with(&[])
    }

    /// A fixture with these settings, such as `sessions.max`.
    fn with(settings: &[(&str, &str)]) -> Self {
        let variable = |name: &str| {
            let name = name.replace('.', "_").to_uppercase();
            format!("CELLWRIGHT_{name}")
        };
        let settings = settings.iter();
        Self {
            host: TestHost::new(),
            settings: settings
                .map(|(name, value)| (variable(name), value.into()))
                .collect(),
        }
    }

    /// A command with the settings of the fixture.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.context.command(arguments);
        command.envs(self.settings.iter().cloned());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        CommandOutput::new(&self.host.context, &output)
    }

    /// An `eval` command on a session.
    fn eval_command(&self, session: &str, arguments: &[&str]) -> Command {
        let mut all = vec!["--session", session];
        all.extend(arguments);
        let mut command = self.host.context.eval_command(&all);
        command.envs(self.settings.iter().cloned());
        command
    }

    fn eval(&self, session: &str, arguments: &[&str]) -> CommandOutput {
        let output = self.eval_command(session, arguments).output().unwrap();
        CommandOutput::new(&self.host.context, &output)
    }

    /// The JSON report of `eval --json` with this exit code.
    fn eval_json(&self, session: &str, arguments: &[&str], code: i32) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.eval(session, &all).exits(code).json()
    }

    /// Runs code. Returns its stdout.
    fn eval_stdout(&self, session: &str, code: &str) -> String {
        self.eval(session, &[code]).exits(0).stdout
    }

    /// Starts `eval` on a session in another process.
    fn start_client(&self, session: &str, arguments: &[&str]) -> ClientProcess<'_> {
        ClientProcess::new(self, self.eval_command(session, arguments))
    }

    /// Starts a client whose cell runs for 100 s. Returns after the start of the cell.
    fn start_busy(&self, session: &str) -> ClientProcess<'_> {
        std::fs::remove_file(self.path("begun")).ok();
        let client = self.start_client(session, &[LONG_CELL, "--timeout", "0"]);
        self.wait_until_started();
        client
    }

    /// Starts a run in the background. Returns its id.
    fn start_background(&self, session: &str, arguments: &[&str]) -> String {
        let mut all = vec!["--background"];
        all.extend(arguments);
        let result = self.eval(session, &all).exits(0);
        result.stdout.trim_end().to_owned()
    }

    /// Waits until a cell has created the file `begun`.
    fn wait_until_started(&self) {
        wait_until("the cell does not begin", || self.path("begun").exists());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.host.context.path(name)
    }

    /// The entries of `kernels list`.
    fn kernels(&self) -> Vec<Value> {
        let list = self.run(&["kernels", "list", "--json"]).exits(0).json();
        list["kernels"].as_array().unwrap().clone()
    }

    /// The entry of `kernels list` for a session. Fails if several sessions have the name.
    fn kernel(&self, session: &str) -> Value {
        let mut matching = self.kernels();
        matching.retain(|kernel| kernel["session"] == session);
        assert_eq!(matching.len(), 1, "{matching:?}");
        matching.remove(0)
    }

    /// Waits until `count` calls wait for a session.
    fn wait_for_queue(&self, session: &str, count: u64) {
        wait_until("the queue of the session does not have this length", || {
            self.kernel(session)["waiting"] == count
        });
    }

    fn host_pid(&self) -> u32 {
        number(&self.host.status()["pid"])
    }

    /// Kills the host and waits for the end of its process.
    fn kill_host(&self) {
        let pid = self.host_pid();
        signal(pid, "-KILL");
        wait_until("the host still runs", || {
            !crate::process_cleanup::is_running(pid)
        });
    }
}

/// A command in another process. It is killed when the value is dropped.
struct ClientProcess<'a> {
    fixture: &'a SessionFixture,
    child: Option<Child>,
}

impl<'a> ClientProcess<'a> {
    fn new(fixture: &'a SessionFixture, mut command: Command) -> Self {
        let child = Some(command.spawn().unwrap());
        Self { fixture, child }
    }

    fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap().id(), name);
    }

    /// Whether the process has ended.
    fn has_exited(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for the end of the process. Returns its exit code and output.
    fn wait(mut self) -> CommandOutput {
        let child = self.child.take().unwrap();
        CommandOutput::new(
            &self.fixture.host.context,
            &child.wait_with_output().unwrap(),
        )
    }

    /// Sends SIGKILL and waits for the end of the process.
    fn kill(self) {
        self.signal("-KILL");
        self.wait();
    }
}

impl Drop for ClientProcess<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The kinds of the notices in a report.
fn notices(report: &Value) -> Vec<&str> {
    let notices = report["notices"].as_array().unwrap().iter();
    notices
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// The text of the first cell in a report.
fn text(report: &Value) -> &str {
    report["cells"][0]["text"].as_str().unwrap().trim_end()
}
