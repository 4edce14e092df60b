//! Code on ipykernel, with the interpreter of the tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::context::CommandOutput;
use crate::host::{TestHost, signal, wait_until};
use crate::process_cleanup::is_running;

/// A cell that creates the file `begun` and then runs for 100 s.
const LONG_CELL: &str = "open('begun', 'w').close()\nimport time\ntime.sleep(100)";

/// A host, an interpreter that has ipykernel, and a runtime directory.
struct JupyterFixture {
    host: TestHost,
    python: String,
}

impl JupyterFixture {
    /// `None` without the interpreter of the tests.
    fn new() -> Option<Self> {
        let python = cellwright_test_support::python()?;
        Some(Self {
            host: TestHost::new(),
            python: python.into_os_string().into_string().unwrap(),
        })
    }

    fn runtime(&self) -> PathBuf {
        self.host.context.path("runtime")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.host.context.command(arguments);
        command.env("JUPYTER_RUNTIME_DIR", self.runtime());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        CommandOutput::new(&self.host.context, &output)
    }

    /// Runs `eval` on ipykernel, by the name of its kernelspec.
    fn eval(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["eval", "--python", &self.python, "--kernel", "python3"];
        all.extend(arguments);
        self.run(&all)
    }

    /// Runs `eval` on a session without flags for the kernel.
    fn eval_in(&self, session: &str, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["eval", "--session", session];
        all.extend(arguments);
        self.run(&all)
    }

    /// The connection files of the kernels that run.
    fn connection_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runtime()).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
            })
            .collect()
    }

    fn kernels(&self) -> Vec<Value> {
        let list = self.run(&["kernels", "list", "--json"]).exits(0).json();
        list["kernels"].as_array().unwrap().clone()
    }

    fn wait_until_started(&self) {
        let file = self.host.context.path("begun");
        wait_until("the cell does not begin", || file.exists());
        fs::remove_file(file).unwrap();
    }

    /// Starts a kernel with another program.
    fn start_external(&self) -> ExternalKernel {
        let file = self.host.context.path("foreign.json");
        let child = Command::new(&self.python)
            .args(["-m", "ipykernel_launcher", "-f"])
            .arg(&file)
            .current_dir(self.host.context.dir())
            .env("HOME", self.host.context.home())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_complete = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            serde_json::from_str::<Value>(&text).is_ok()
        };
        wait_until("the kernel writes no connection file", is_complete);
        ExternalKernel { child, file }
    }
}

/// A kernel that another program started. It ends with the test.
struct ExternalKernel {
    child: Child,
    file: PathBuf,
}

impl ExternalKernel {
    fn file(&self) -> &str {
        self.file.to_str().unwrap()
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for ExternalKernel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn text(report: &Value) -> &str {
    report["cells"][0]["text"].as_str().unwrap().trim_end()
}

fn notices(report: &Value) -> Vec<&str> {
    let notices = report["notices"].as_array().unwrap().iter();
    notices
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn code_runs_on_ipykernel_and_leaves_no_process_or_file() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let code = "import os; print(os.getpid(), os.environ['CELLWRIGHT_SESSION']); 6 * 7";
    for arguments in [&["--kernel", "python3"][..], &["--backend", "jupyter"]] {
        let mut all = vec!["eval", "--json", "--python", &fixture.python, code];
        all.extend(arguments);
        let report = fixture.run(&all).exits(0).json();
        let kernel = &report["kernel"];
        assert_eq!(
            (&kernel["backend"], &kernel["language"]),
            (&"jupyter".into(), &"python".into())
        );
        let (first, last) = text(&report).split_once('\n').unwrap();
        let (pid, session) = first.split_once(' ').unwrap();
        assert_eq!((session, last), ("per-call", "42"));
        assert_eq!(kernel["pid"], pid.parse::<u32>().unwrap());
        assert!(!is_running(pid.parse().unwrap()));
        assert_eq!(fixture.connection_files(), Vec::<PathBuf>::new());
    }
}

#[test]
fn several_cells_share_the_kernel_and_an_error_ends_the_run() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let result = fixture.eval(&[
        "--cell", "x = 6", "--cell", "x * 7", "--cell", "1 / 0", "--cell", "x",
    ]);
    let result = result.exits(1);
    assert_eq!(result.stdout, "42\n");
    assert!(
        result.stderr.contains("ZeroDivisionError"),
        "{}",
        result.stderr
    );
}

/// A process that is stopped with SIGSTOP until the value is dropped.
struct StoppedProcess(u32);

impl StoppedProcess {
    fn new(pid: u32) -> Self {
        signal(pid, "-STOP");
        Self(pid)
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        signal(self.0, "-CONT");
    }
}

/// By default, a kernel drops messages for slow clients. Cellwright configures it to keep them.
#[test]
fn a_stopped_command_receives_all_messages() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let code = "import os, time\nopen('begun', 'w').close()\n\
        while not os.path.exists('go'): time.sleep(0.01)\n\
        for n in range(3000): display({'text/plain': str(n)}, raw=True)\n\
        open('done', 'w').close()";
    let arguments = ["eval", "--json", "--python", &fixture.python, code];
    let mut command = fixture.command(&arguments);
    command.args(["--kernel", "python3"]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    fixture.wait_until_started();
    let stopped = StoppedProcess::new(child.id());
    fixture.host.context.file("go", "");
    let done = fixture.host.context.path("done");
    wait_until("the cell does not end", || done.exists());
    drop(stopped);
    let output = child.wait_with_output().unwrap();
    let report = CommandOutput::new(&fixture.host.context, &output)
        .exits(0)
        .json();
    let outputs = report["cells"][0]["outputs"].as_array().unwrap();
    let numbers = outputs
        .iter()
        .map(|output| output["data"]["text/plain"][0].as_str().unwrap());
    let expected: Vec<_> = (0..3000).map(|number| number.to_string()).collect();
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
}

#[test]
fn a_session_keeps_its_kernel_and_its_connection_file() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 41"]).exits(0);
    assert_eq!(
        fixture.eval(&["--session", "s", "x + 1"]).exits(0).stdout,
        "42\n"
    );
    let kernels = fixture.kernels();
    assert_eq!(kernels.len(), 1, "{kernels:?}");
    assert_eq!(
        (&kernels[0]["backend"], &kernels[0]["name"]),
        (&"jupyter".into(), &"python3".into())
    );
    let files = fixture.connection_files();
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(&fixture.runtime())), (0o600, 0o700));
    // A call without flags for the kernel uses the kernel of the session.
    assert_eq!(fixture.eval_in("s", &["x"]).exits(0).stdout, "41\n");
    let pid = u32::try_from(kernels[0]["pid"].as_u64().unwrap()).unwrap();
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    assert!(!is_running(pid));
    assert_eq!(fixture.connection_files().len(), 0);
}

#[test]
fn a_reset_starts_a_kernel_with_the_same_kernelspec() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 1"]).exits(0);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    fixture.eval(&["--session", "s", "x"]).exits(1);
    fixture.eval(&["--session", "s", "x = 2"]).exits(0);
    let report = fixture
        .eval_in("s", &["--reset", "--json", "'x' in globals()"])
        .exits(0)
        .json();
    assert_eq!(
        (text(&report), &report["kernel"]["backend"]),
        ("False", &"jupyter".into())
    );
}

#[test]
fn an_interrupt_and_a_timeout_leave_the_variables() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 1"]).exits(0);
    let run = fixture
        .eval_in("s", &["--background", "--timeout", "0", LONG_CELL])
        .exits(0)
        .stdout;
    fixture.wait_until_started();
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    let ended = fixture.run(&["runs", "wait", run.trim_end()]);
    assert_ne!(ended.code, Some(0), "{}", ended.stdout);
    let report = fixture
        .eval_in("s", &["--timeout", "2", "--json", LONG_CELL])
        .exits(124)
        .json();
    assert_eq!(notices(&report), ["interrupted"]);
    assert_eq!(fixture.eval_in("s", &["x"]).exits(0).stdout, "1\n");
}

#[test]
fn a_run_continues_in_the_background() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let code = "import time\nfor n in range(3): print(n); time.sleep(0.1)\n'done'";
    let run = fixture
        .eval(&["--session", "s", "--background", code])
        .exits(0)
        .stdout;
    let ended = fixture.run(&["runs", "wait", run.trim_end()]).exits(0);
    assert_eq!(ended.stdout, "0\n1\n2\n'done'\n");
}

#[test]
fn input_is_answered_or_refused_at_once() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let code = "print('Hello', input('Who? '))";
    let result = fixture.eval(&[code, "--answer", "World"]).exits(0);
    assert!(
        result.stdout.ends_with("Hello World\n"),
        "{}",
        result.stdout
    );
    let result = fixture.eval(&[code, "--timeout", "60"]).exits(1);
    assert!(result.stderr.contains("Who?"), "{}", result.stderr);
}

#[test]
fn a_killed_kernel_is_reported_and_replaced_with_the_same_kernelspec() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 1"]).exits(0);
    let kill = "import os; print('before', flush=True); os.kill(os.getpid(), 9)";
    let report = fixture.eval_in("s", &["--json", kill]).exits(2).json();
    assert_eq!(
        (&report["status"], &report["died"]["signal"]),
        (&"died".into(), &9.into())
    );
    let report = fixture
        .eval_in("s", &["--json", "'x' in globals()"])
        .exits(0)
        .json();
    assert_eq!(
        (text(&report), &report["kernel"]["backend"]),
        ("False", &"jupyter".into())
    );
    assert_eq!(report["kernel"]["generation"], 2);
    assert_eq!(
        fixture.connection_files().len(),
        1,
        "the connection file of the killed kernel is removed"
    );
}

#[test]
fn sessions_with_different_kernels_are_separate() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 'jupyter'"]).exits(0);
    let runner = ["--session", "s", "--backend", "runner", "x = 'runner'"];
    let mut all = vec!["eval", "--python", &fixture.python, "--json"];
    all.extend(runner);
    let report = fixture.run(&all).exits(0).json();
    assert_eq!(notices(&report), ["session_other_cwd"]);
    assert_eq!(fixture.kernels().len(), 2);
    assert_eq!(
        fixture.eval(&["--session", "s", "x"]).exits(0).stdout,
        "'jupyter'\n"
    );
}

#[test]
fn an_external_kernel_is_used_and_not_stopped() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let mut external = fixture.start_external();
    fixture
        .run(&["eval", "--existing", external.file(), "x = 41"])
        .exits(0);
    assert!(external.is_alive());
    let report = fixture.run(&["eval", "--existing", external.file(), "x + 1", "--json"]);
    let report = report.exits(0).json();
    assert_eq!(
        (text(&report), &report["kernel"]["language"]),
        ("42", &"python".into())
    );
    // The connection file is found by its id in the runtime directory.
    fs::create_dir_all(fixture.runtime()).unwrap();
    fs::copy(external.file(), fixture.runtime().join("kernel-77.json")).unwrap();
    assert_eq!(
        fixture
            .run(&["eval", "--existing", "77", "x"])
            .exits(0)
            .stdout,
        "41\n"
    );
    // A session can use the kernel, but can neither reset nor stop it.
    let on_session = ["eval", "--session", "s", "--existing", external.file(), "x"];
    assert_eq!(fixture.run(&on_session).exits(0).stdout, "41\n");
    let refused = fixture.run(&["kernels", "reset", "s"]).exits(2);
    assert!(
        refused.stderr.contains("started by another program"),
        "{}",
        refused.stderr
    );
    fixture.eval_in("s", &["--reset", "x"]).exits(2);
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    assert!(external.is_alive());
    assert_eq!(
        fixture
            .run(&["eval", "--existing", external.file(), "x"])
            .exits(0)
            .stdout,
        "41\n"
    );
}

#[test]
fn an_external_kernel_that_has_ended_is_an_error() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let mut external = fixture.start_external();
    signal(external.child.id(), "-KILL");
    external.child.wait().unwrap();
    let result = fixture
        .run(&["eval", "--existing", external.file(), "1"])
        .exits(2);
    assert!(
        result.stderr.contains("cannot be reached"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_missing_ipykernel_is_an_error_with_a_hint() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let venv = fixture.host.context.path("bare");
    let mut made = Command::new(&fixture.python);
    made.args(["-m", "venv", "--without-pip"]).arg(&venv);
    assert!(made.status().unwrap().success());
    let python = venv.join("bin/python").display().to_string();
    let result = fixture
        .run(&["eval", "--backend", "jupyter", "--python", &python, "1"])
        .exits(2);
    assert!(
        result.stderr.contains("has no ipykernel"),
        "{}",
        result.stderr
    );
    let hint = result
        .stderr
        .lines()
        .find(|line| line.starts_with("hint: install it: `"));
    assert!(
        hint.is_some_and(|hint| hint.contains(&python)),
        "{}",
        result.stderr
    );
    assert_eq!(fixture.connection_files().len(), 0);
}

#[test]
fn a_python_kernel_has_modules_and_the_bridge() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let modules = fixture
        .host
        .context
        .home()
        .join(".config/cellwright/modules");
    fs::create_dir_all(&modules).unwrap();
    fs::write(modules.join("mine.py"), "def greet(): return 'hello'\n").unwrap();
    assert_eq!(fixture.eval(&["print(greet())"]).exits(0).stdout, "hello\n");
    let code =
        "import os; print(os.environ['CELLWRIGHT_BRIDGE_URL'].startswith('http://127.0.0.1'))";
    assert_eq!(fixture.eval(&[code]).exits(0).stdout, "True\n");
    let notebook = "print('# %% [code]' in tool.read('a.ipynb'))";
    fixture
        .host
        .context
        .file("a.ipynb", crate::context::THREE_CELLS);
    assert_eq!(fixture.eval(&[notebook]).exits(0).stdout, "True\n");
}

#[test]
fn an_export_names_the_kernel() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "6 * 7"]).exits(0);
    fixture
        .run(&["kernels", "export", "s", "out.ipynb"])
        .exits(0);
    let notebook: Value = serde_json::from_str(&fixture.host.context.content("out.ipynb")).unwrap();
    assert_eq!(notebook["metadata"]["kernelspec"]["name"], "python3");
    assert_eq!(notebook["metadata"]["language_info"]["name"], "python");
}

#[test]
fn a_kernel_of_another_language_receives_no_python_setup() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let has = Command::new(&fixture.python)
        .args(["-c", "import bash_kernel"])
        .output();
    if !has.unwrap().status.success() {
        cellwright_test_support::skip("python", "there is no kernel for Bash");
        return;
    }
    // `python` in `argv` is the interpreter of `--python`.
    let dir = fixture.host.context.path("jupyter/kernels/shell");
    fs::create_dir_all(&dir).unwrap();
    let spec = r#"{"argv": ["python", "-m", "bash_kernel", "-f", "{connection_file}"], "language": "bash"}"#;
    fs::write(dir.join("kernel.json"), spec).unwrap();
    let modules = fixture
        .host
        .context
        .home()
        .join(".config/cellwright/modules");
    fs::create_dir_all(&modules).unwrap();
    fs::write(modules.join("mine.py"), "def greet(): return 'hello'\n").unwrap();
    let bash = |arguments: &[&str]| {
        let mut all = vec!["eval", "--python", &fixture.python, "--kernel", "shell"];
        all.extend(arguments);
        let mut command = fixture.command(&all);
        command.env("JUPYTER_PATH", fixture.host.context.path("jupyter"));
        CommandOutput::new(&fixture.host.context, &command.output().unwrap())
    };
    let result = bash(&["--session", "b", "name=World; echo $CELLWRIGHT_SESSION"]).exits(0);
    assert_eq!(
        (result.stdout.trim_end(), result.stderr.as_str()),
        ("b", "")
    );
    let result = bash(&["--session", "b", "echo Hello $name"]).exits(0);
    assert_eq!(result.stdout.trim_end(), "Hello World");
    let kernel = &fixture.kernels()[0];
    assert_eq!(
        (&kernel["name"], &kernel["language"]),
        (&"shell".into(), &"bash".into())
    );
    let result = bash(&["--session", "b", "--reset", "echo Hello $name"]).exits(0);
    assert_eq!(result.stdout.trim_end(), "Hello");
    // The kernel cannot list variables, and the request is no internal error.
    let variables = fixture.run(&["kernels", "variables", "b"]);
    assert_ne!(variables.code, Some(70), "{}", variables.stderr);
    assert_eq!(
        bash(&["--session", "b", "echo well"])
            .exits(0)
            .stdout
            .trim_end(),
        "well"
    );
}
