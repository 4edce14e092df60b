//! Code on real kernels of Jupyter's: those of the tests' interpreter.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::context::CommandOutput;
use crate::host::{TestHost, signal, wait_until};
use crate::survivors::runs;

/// A cell that says that it has begun, by making the file `begun`, and then runs for long.
const LONG: &str = "open('begun', 'w').close()\nimport time\ntime.sleep(100)";

/// A host, an interpreter that has ipykernel, and a runtime folder.
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

    /// `eval` on ipykernel, by the name of its kernelspec.
    fn eval(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["eval", "--python", &self.python, "--kernel", "python3"];
        all.extend(arguments);
        self.run(&all)
    }

    /// `eval` on a session, for which nothing is said about the kernel.
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
        list.as_array().unwrap().clone()
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
            .current_dir(self.host.context.folder())
            .env("HOME", self.host.context.home())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let whole = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            serde_json::from_str::<Value>(&text).is_ok()
        };
        wait_until("the kernel writes no connection file", whole);
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

    fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for ExternalKernel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn text(answer: &Value) -> &str {
    answer["cells"][0]["text"].as_str().unwrap().trim_end()
}

fn notices(answer: &Value) -> Vec<&str> {
    let notices = answer["notices"].as_array().unwrap().iter();
    notices
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn code_runs_on_ipykernel_and_leaves_nothing() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let code = "import os; print(os.getpid(), os.environ['CELLWRIGHT_SESSION']); 6 * 7";
    for arguments in [&["--kernel", "python3"][..], &["--backend", "jupyter"]] {
        let mut all = vec!["eval", "--json", "--python", &fixture.python, code];
        all.extend(arguments);
        let answer = fixture.run(&all).exits(0).json();
        let kernel = &answer["kernel"];
        assert_eq!(
            (&kernel["backend"], &kernel["language"]),
            (&"jupyter".into(), &"python".into())
        );
        let (first, last) = text(&answer).split_once('\n').unwrap();
        let (pid, session) = first.split_once(' ').unwrap();
        assert_eq!((session, last), ("per-call", "42"));
        assert_eq!(kernel["pid"], pid.parse::<u32>().unwrap());
        assert!(!runs(pid.parse().unwrap()));
        assert_eq!(fixture.connection_files(), Vec::<PathBuf>::new());
    }
}

#[test]
fn several_cells_share_the_kernel_and_an_error_ends_the_run() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let ran = fixture.eval(&[
        "--cell", "x = 6", "--cell", "x * 7", "--cell", "1 / 0", "--cell", "x",
    ]);
    let ran = ran.exits(1);
    assert_eq!(ran.stdout, "42\n");
    assert!(ran.stderr.contains("ZeroDivisionError"), "{}", ran.stderr);
}

/// A process that stands still as long as this is there.
struct Still(u32);

impl Still {
    fn new(pid: u32) -> Self {
        signal(pid, "-STOP");
        Self(pid)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        signal(self.0, "-CONT");
    }
}

/// Kernels drop what their clients are too slow to take, unless they are told to keep it.
#[test]
fn a_command_that_stood_still_has_missed_nothing() {
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
    let still = Still::new(child.id());
    fixture.host.context.file("go", "");
    let done = fixture.host.context.path("done");
    wait_until("the cell does not end", || done.exists());
    drop(still);
    let output = child.wait_with_output().unwrap();
    let answer = CommandOutput::new(&fixture.host.context, &output)
        .exits(0)
        .json();
    let outputs = answer["cells"][0]["outputs"].as_array().unwrap();
    let numbers = outputs
        .iter()
        .map(|output| output["data"]["text/plain"][0].as_str().unwrap());
    let expected: Vec<_> = (0..3000).map(|number| number.to_string()).collect();
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
}

#[test]
fn a_session_keeps_its_kernel_and_lists_it_for_others() {
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
    // Whoever does not care gets the one there is.
    assert_eq!(fixture.eval_in("s", &["x"]).exits(0).stdout, "41\n");
    let pid = u32::try_from(kernels[0]["pid"].as_u64().unwrap()).unwrap();
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    assert!(!runs(pid));
    assert_eq!(fixture.connection_files().len(), 0);
}

#[test]
fn a_reset_gives_a_fresh_kernel_of_the_same_sort() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 1"]).exits(0);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    fixture.eval(&["--session", "s", "x"]).exits(1);
    fixture.eval(&["--session", "s", "x = 2"]).exits(0);
    let answer = fixture
        .eval_in("s", &["--reset", "--json", "'x' in globals()"])
        .exits(0)
        .json();
    assert_eq!(
        (text(&answer), &answer["kernel"]["backend"]),
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
        .eval_in("s", &["--background", "--timeout", "0", LONG])
        .exits(0)
        .stdout;
    fixture.wait_until_started();
    fixture.run(&["kernels", "interrupt", "s"]).exits(0);
    let ended = fixture.run(&["runs", "wait", run.trim_end()]);
    assert_ne!(ended.code, Some(0), "{}", ended.stdout);
    let answer = fixture
        .eval_in("s", &["--timeout", "2", "--json", LONG])
        .exits(124)
        .json();
    assert_eq!(notices(&answer), ["interrupted"]);
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
    let ran = fixture.eval(&[code, "--answer", "World"]).exits(0);
    assert!(ran.stdout.ends_with("Hello World\n"), "{}", ran.stdout);
    let ran = fixture.eval(&[code, "--timeout", "60"]).exits(1);
    assert!(ran.stderr.contains("Who?"), "{}", ran.stderr);
}

#[test]
fn a_kernel_that_is_killed_is_told_and_replaced_by_one_of_the_same_sort() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 1"]).exits(0);
    let kill = "import os; print('before', flush=True); os.kill(os.getpid(), 9)";
    let answer = fixture.eval_in("s", &["--json", kill]).exits(2).json();
    assert_eq!(
        (&answer["status"], &answer["died"]["signal"]),
        (&"died".into(), &9.into())
    );
    let answer = fixture
        .eval_in("s", &["--json", "'x' in globals()"])
        .exits(0)
        .json();
    assert_eq!(
        (text(&answer), &answer["kernel"]["backend"]),
        ("False", &"jupyter".into())
    );
    assert_eq!(answer["kernel"]["generation"], 2);
    assert_eq!(
        fixture.connection_files().len(),
        1,
        "that of the dead one is gone"
    );
}

#[test]
fn sessions_on_different_kernels_are_told_apart() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    fixture.eval(&["--session", "s", "x = 'jupyter'"]).exits(0);
    let runner = ["--session", "s", "--backend", "runner", "x = 'runner'"];
    let mut all = vec!["eval", "--python", &fixture.python, "--json"];
    all.extend(runner);
    let answer = fixture.run(&all).exits(0).json();
    assert_eq!(notices(&answer), ["session_other_cwd"]);
    assert_eq!(fixture.kernels().len(), 2);
    assert_eq!(
        fixture.eval(&["--session", "s", "x"]).exits(0).stdout,
        "'jupyter'\n"
    );
}

#[test]
fn a_kernel_that_runs_already_is_joined_and_left_running() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let mut foreign = fixture.start_external();
    fixture
        .run(&["eval", "--existing", foreign.file(), "x = 41"])
        .exits(0);
    assert!(foreign.lives());
    let answer = fixture.run(&["eval", "--existing", foreign.file(), "x + 1", "--json"]);
    let answer = answer.exits(0).json();
    assert_eq!(
        (text(&answer), &answer["kernel"]["language"]),
        ("42", &"python".into())
    );
    // By its name among those that are listed.
    fs::create_dir_all(fixture.runtime()).unwrap();
    fs::copy(foreign.file(), fixture.runtime().join("kernel-77.json")).unwrap();
    assert_eq!(
        fixture
            .run(&["eval", "--existing", "77", "x"])
            .exits(0)
            .stdout,
        "41\n"
    );
    // On a session, too, which cannot be reset and whose end is not the kernel's.
    let joined = ["eval", "--session", "s", "--existing", foreign.file(), "x"];
    assert_eq!(fixture.run(&joined).exits(0).stdout, "41\n");
    let refused = fixture.run(&["kernels", "reset", "s"]).exits(2);
    assert!(
        refused.stderr.contains("started by another program"),
        "{}",
        refused.stderr
    );
    fixture.eval_in("s", &["--reset", "x"]).exits(2);
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    assert!(foreign.lives());
    assert_eq!(
        fixture
            .run(&["eval", "--existing", foreign.file(), "x"])
            .exits(0)
            .stdout,
        "41\n"
    );
}

#[test]
fn a_kernel_that_has_ended_does_not_answer() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let mut foreign = fixture.start_external();
    signal(foreign.child.id(), "-KILL");
    foreign.child.wait().unwrap();
    let ran = fixture
        .run(&["eval", "--existing", foreign.file(), "1"])
        .exits(2);
    assert!(ran.stderr.contains("cannot be reached"), "{}", ran.stderr);
}

#[test]
fn without_ipykernel_it_says_how_to_install_it() {
    let Some(fixture) = JupyterFixture::new() else {
        return;
    };
    let venv = fixture.host.context.path("bare");
    let mut made = Command::new(&fixture.python);
    made.args(["-m", "venv", "--without-pip"]).arg(&venv);
    assert!(made.status().unwrap().success());
    let python = venv.join("bin/python").display().to_string();
    let ran = fixture
        .run(&["eval", "--backend", "jupyter", "--python", &python, "1"])
        .exits(2);
    assert!(ran.stderr.contains("has no ipykernel"), "{}", ran.stderr);
    let hint = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("hint: install it: `"));
    assert!(
        hint.is_some_and(|hint| hint.contains(&python)),
        "{}",
        ran.stderr
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
fn another_language_gets_nothing_of_pythons_and_works() {
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
    // `python` is the interpreter that is named.
    let folder = fixture.host.context.path("jupyter/kernels/shell");
    fs::create_dir_all(&folder).unwrap();
    let spec = r#"{"argv": ["python", "-m", "bash_kernel", "-f", "{connection_file}"], "language": "bash"}"#;
    fs::write(folder.join("kernel.json"), spec).unwrap();
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
    let ran = bash(&["--session", "b", "name=World; echo $CELLWRIGHT_SESSION"]).exits(0);
    assert_eq!((ran.stdout.trim_end(), ran.stderr.as_str()), ("b", ""));
    let ran = bash(&["--session", "b", "echo Hello $name"]).exits(0);
    assert_eq!(ran.stdout.trim_end(), "Hello World");
    let kernel = &fixture.kernels()[0];
    assert_eq!(
        (&kernel["name"], &kernel["language"]),
        (&"shell".into(), &"bash".into())
    );
    let ran = bash(&["--session", "b", "--reset", "echo Hello $name"]).exits(0);
    assert_eq!(ran.stdout.trim_end(), "Hello");
    // Nobody can say which variables there are, and nothing breaks by asking.
    let asked = fixture.run(&["kernels", "variables", "b"]);
    assert_ne!(asked.code, Some(70), "{}", asked.stderr);
    assert_eq!(
        bash(&["--session", "b", "echo well"])
            .exits(0)
            .stdout
            .trim_end(),
        "well"
    );
}
