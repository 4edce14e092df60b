//! Sessions of a host, as people and programs use them: from several terminals, for several owners,
//! with commands, kernels and hosts that get killed.

mod crowds;
mod deaths;
mod limits;
mod looks;
mod owners;
mod readers;
mod runs;
mod spares;
mod terminals;
mod trouble;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;

use crate::context::CommandOutput;
use crate::host::{TestHost, signal, wait_until};

/// A cell that says that it has begun, by making the file `begun`, and then runs for long.
const LONG: &str = "open('begun', 'w').close()\nimport time\ntime.sleep(100)";

/// A host with its own settings, which ends with the test.
struct SessionFixture {
    host: TestHost,
    settings: Vec<(String, OsString)>,
}

impl SessionFixture {
    fn new() -> Self {
        Self::with(&[])
    }

    /// With these settings, such as `sessions.max`.
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

    /// Any command.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.context.command(arguments);
        command.envs(self.settings.iter().cloned());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        CommandOutput::new(&self.host.context, &output)
    }

    /// `eval` on a session.
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

    /// What code prints.
    fn eval_stdout(&self, session: &str, code: &str) -> String {
        self.eval(session, &[code]).exits(0).stdout
    }

    /// A second terminal, in which `eval` runs on a session.
    fn terminal(&self, session: &str, arguments: &[&str]) -> Terminal<'_> {
        Terminal::new(self, self.eval_command(session, arguments))
    }

    /// A second terminal with a cell that runs for long; it has begun.
    fn start_busy(&self, session: &str) -> Terminal<'_> {
        std::fs::remove_file(self.path("begun")).ok();
        let terminal = self.terminal(session, &[LONG, "--timeout", "0"]);
        self.wait_until_started();
        terminal
    }

    /// A run in the background; its name.
    fn start_background(&self, session: &str, arguments: &[&str]) -> String {
        let mut all = vec!["--background"];
        all.extend(arguments);
        let ran = self.eval(session, &all).exits(0);
        ran.stdout.trim_end().to_owned()
    }

    /// Waits until a cell has made the file `begun`.
    fn wait_until_started(&self) {
        wait_until("the cell does not begin", || self.path("begun").exists());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.host.context.path(name)
    }

    /// What `kernels list` says.
    fn kernels(&self) -> Vec<Value> {
        let list = self.run(&["kernels", "list", "--json"]).exits(0).json();
        list.as_array().unwrap().clone()
    }

    /// What it says of one session, which is the only one of its name.
    fn kernel(&self, session: &str) -> Value {
        let mut named = self.kernels();
        named.retain(|kernel| kernel["session"] == session);
        assert_eq!(named.len(), 1, "{named:?}");
        named.remove(0)
    }

    /// Waits until `count` calls wait for a session.
    fn wait_for_queue(&self, session: &str, count: u64) {
        wait_until("the queue of the session has this length", || {
            self.kernel(session)["waiting"] == count
        });
    }

    fn host_pid(&self) -> u32 {
        number(&self.host.status()["pid"])
    }

    /// Kills the host, and is sure that it is gone.
    fn kill_host(&self) {
        let pid = self.host_pid();
        signal(pid, "-KILL");
        wait_until("the host does not die", || !crate::survivors::runs(pid));
    }
}

/// A command in another process, killed when dropped.
struct Terminal<'a> {
    fixture: &'a SessionFixture,
    child: Option<Child>,
}

impl<'a> Terminal<'a> {
    fn new(fixture: &'a SessionFixture, mut command: Command) -> Self {
        let child = Some(command.spawn().unwrap());
        Self { fixture, child }
    }

    fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap().id(), name);
    }

    /// Whether it has ended.
    fn has_exited(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// How it ended.
    fn end(mut self) -> CommandOutput {
        let child = self.child.take().unwrap();
        CommandOutput::new(
            &self.fixture.host.context,
            &child.wait_with_output().unwrap(),
        )
    }

    /// Kills it, as the system does when it needs memory.
    fn kill(self) {
        self.signal("-KILL");
        self.end();
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The kinds of the notices in an answer.
fn notices(answer: &Value) -> Vec<&str> {
    let notices = answer["notices"].as_array().unwrap().iter();
    notices
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// The text of a cell in an answer.
fn text(answer: &Value) -> &str {
    answer["cells"][0]["text"].as_str().unwrap().trim_end()
}
