//! `run`: execution of the cells of a notebook, and the content of the file afterwards.

mod cell_selection;
mod cell_status;
mod concurrent_changes;
mod editing;
mod environment;
mod kernels;
mod nbclient_comparison;
mod notices;
mod process_death;
mod reporting;
mod saved_notebook;
mod session_names;
mod sessions;
mod signals;
mod unwritable;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::context::CommandOutput;
use crate::host::{TestHost, signal, wait_until};

/// The backends that the tests use.
const BACKENDS: [&str; 2] = ["runner", "jupyter"];

/// Creates the file `begun` and waits for the file `go`.
const WAITING_CELL: &str = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('went on')";

/// A directory with notebooks, and a host that ends with the test.
struct RunFixture {
    host: TestHost,
}

impl RunFixture {
    fn new() -> Self {
        Self {
            host: TestHost::new(),
        }
    }

    /// A fixture with `a.ipynb`.
    fn with(cells: &[Value]) -> Self {
        let fixture = Self::new();
        fixture.notebook("a.ipynb", cells);
        fixture
    }

    fn notebook(&self, name: &str, cells: &[Value]) {
        self.host.context.file(name, notebook_json(cells));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.host.context.path(name)
    }

    fn content(&self, name: &str) -> String {
        self.host.context.content(name)
    }

    /// `run a.ipynb` on a backend.
    fn command(&self, backend: &str, arguments: &[&str]) -> Command {
        let mut command = self.host.context.command(&["run", "a.ipynb"]);
        command.args(["--backend", backend]);
        if let Some(python) = python() {
            command.arg("--python").arg(python);
        }
        command.args(arguments);
        command
    }

    fn run_on(&self, backend: &str, arguments: &[&str]) -> CommandOutput {
        let output = self.command(backend, arguments).output().unwrap();
        CommandOutput::new(&self.host.context, &output)
    }

    /// `run a.ipynb` on the runner.
    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_on("runner", arguments)
    }

    /// Starts `run a.ipynb` in another process.
    fn spawn_on(&self, backend: &str, arguments: &[&str]) -> RunProcess<'_> {
        let child = self.command(backend, arguments).spawn().unwrap();
        RunProcess {
            fixture: self,
            child: Some(child),
        }
    }

    /// Starts `run a.ipynb` on the runner. Returns after the start of [`WAITING_CELL`].
    fn start(&self, arguments: &[&str]) -> RunProcess<'_> {
        let running = self.spawn_on("runner", arguments);
        self.wait_until_started();
        running
    }

    /// Waits until a cell has created the file `begun`.
    fn wait_until_started(&self) {
        wait_until("the cell does not begin", || self.path("begun").exists());
    }

    /// Releases [`WAITING_CELL`].
    fn release_cell(&self) {
        fs::write(self.path("go"), "").unwrap();
    }

    /// Runs another command.
    fn run_command(&self, arguments: &[&str]) -> CommandOutput {
        self.host.context.run(arguments)
    }

    fn document(&self, name: &str) -> Value {
        let content = self.content(name);
        serde_json::from_str(&content).unwrap_or_else(|error| panic!("{error}: {content}"))
    }

    /// The outputs of the cells of `a.ipynb`, one line each.
    fn outputs(&self) -> Vec<String> {
        self.outputs_in("a.ipynb")
    }

    fn outputs_in(&self, name: &str) -> Vec<String> {
        let document = self.document(name);
        let cells = document["cells"].as_array().unwrap().iter();
        cells.map(output_line).collect()
    }

    fn counts(&self) -> Vec<Value> {
        let document = self.document("a.ipynb");
        let cells = document["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["execution_count"].clone()).collect()
    }

    /// The text that cells wrote into the file `log`.
    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Changes the notebook as other programs do: reads the file and writes it in place.
    fn rewrite(&self, change: impl FnOnce(&mut Value)) {
        let mut document = self.document("a.ipynb");
        change(&mut document);
        fs::write(self.path("a.ipynb"), jupyter_layout(&document)).unwrap();
    }

    /// Fails unless nbformat validates these notebooks.
    fn assert_valid(&self, names: &[&str]) {
        const CHECK: &str = "import nbformat, sys\nfor path in sys.argv[1:]:\n    with open(path, encoding='utf-8') as file:\n        nbformat.validate(nbformat.reads(file.read(), as_version=nbformat.NO_CONVERT))";
        let output = Command::new(python_with_nbformat())
            .args(["-W", "error", "-c", CHECK])
            .args(names.iter().map(|name| self.path(name)))
            .output()
            .unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{why}");
    }

    /// The names of hidden files in the directory, such as temporary files.
    fn leftover_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.host.context.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect()
    }
}

/// A `run` command in another process. It is killed when the value is dropped.
struct RunProcess<'s> {
    fixture: &'s RunFixture,
    child: Option<Child>,
}

impl RunProcess<'_> {
    fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    fn wait(mut self) -> CommandOutput {
        let child = self.child.take().unwrap();
        let output = child.wait_with_output().unwrap();
        CommandOutput::new(&self.fixture.host.context, &output)
    }
}

impl Drop for RunProcess<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The interpreter of the tests.
fn python() -> Option<PathBuf> {
    std::env::var_os("CELLWRIGHT_TEST_PYTHON").map(PathBuf::from)
}

fn python_with_nbformat() -> PathBuf {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    python().unwrap_or_else(default)
}

/// A code cell that has not run.
fn code(source: &str) -> Value {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    json!({"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": lines})
}

/// A code cell with an output of an earlier run.
fn executed(source: &str) -> Value {
    let mut cell = code(source);
    cell["execution_count"] = json!(99);
    cell["outputs"] = json!([{"name": "stdout", "output_type": "stream", "text": ["old\n"]}]);
    cell
}

fn tagged(source: &str, tags: &[&str]) -> Value {
    let mut cell = executed(source);
    cell["metadata"]["tags"] = json!(tags);
    cell
}

fn markdown(source: &str) -> Value {
    json!({"cell_type": "markdown", "metadata": {}, "source": [source]})
}

/// A notebook of these cells, each with the id `c` and its index, as Jupyter writes it.
fn notebook_json(cells: &[Value]) -> String {
    let cells: Vec<Value> = cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            let mut cell = cell.clone();
            cell["id"] = json!(format!("c{index}"));
            cell
        })
        .collect();
    jupyter_layout(&json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
}

/// JSON with one space for each level.
fn jupyter_layout(document: &Value) -> String {
    use serde::Serialize;
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    document.serialize(&mut serializer).unwrap();
    out.push(b'\n');
    String::from_utf8(out).unwrap()
}

/// The outputs of a cell on one line: text unchanged, exceptions by name.
fn output_line(cell: &Value) -> String {
    let lines = |text: &Value| match text {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let outputs = cell["outputs"].as_array().into_iter().flatten();
    let texts: Vec<String> = outputs
        .map(|output| match output["output_type"].as_str() {
            Some("stream") => lines(&output["text"])
                .replace('\n', " ")
                .trim_end()
                .to_owned(),
            Some("error") => format!("!{}", output["ename"].as_str().unwrap_or_default()),
            _ => format!("={}", lines(&output["data"]["text/plain"])),
        })
        .collect();
    texts.join(" ")
}

/// The status of each cell in a report.
fn statuses(report: &Value) -> Vec<&str> {
    let cells = report["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["status"].as_str().unwrap()).collect()
}

/// The kinds of the notices in a report.
/// The indexes of the cells in a report.
fn indexes(report: &Value) -> Vec<u64> {
    let cells = report["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["index"].as_u64().unwrap()).collect()
}

fn notices(report: &Value) -> Vec<&str> {
    let notices = report["notices"].as_array().unwrap().iter();
    notices
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect()
}

/// The output of a command without parts that differ between runs and versions of Python: the durations of cells
/// and the marks under lines of source.
fn masked_output(result: &CommandOutput) -> String {
    let text = result.output_masked();
    let is_no_mark = |line: &&str| {
        let mark = line.trim();
        mark.is_empty() || mark.bytes().any(|byte| !matches!(byte, b'^' | b'~'))
    };
    let mut lines = String::new();
    for line in text.lines().filter(is_no_mark) {
        // A status line may end with the first line of the cell.
        let (status, source) = match line.split_once(" · ") {
            Some((status, source)) => (status, format!(" · {source}")),
            None => (line, String::new()),
        };
        match status
            .strip_suffix(" s")
            .and_then(|status| status.rsplit_once(", "))
        {
            Some((before, time)) if line.starts_with('[') && is_time(time) => {
                lines.push_str(before);
                lines.push_str(&source);
            }
            _ => lines.push_str(&without_time(line)),
        }
        lines.push('\n');
    }
    lines
}

/// The line with its duration and its interpreter masked, such as `ran 2 cells in 0.1 s on python3 (runner), /bin/python3`.
fn without_time(line: &str) -> String {
    let duration = line.split_once(" in ").filter(|_| line.starts_with("ran "));
    match duration.and_then(|(start, rest)| Some((start, rest.split_once(" s")?))) {
        Some((start, (time, rest))) if is_time(time) => {
            let place = rest.split_once("), ").map(|(kernel, rest)| {
                let end = rest.find(':').unwrap_or(rest.len());
                format!("{kernel}), [PYTHON]{}", &rest[end..])
            });
            format!("{start} in [TIME] s{}", place.as_deref().unwrap_or(rest))
        }
        _ => line.to_owned(),
    }
}

fn is_time(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Number of repetitions of a test that depends on timing; `CELLWRIGHT_TEST_FACTOR` multiplies it.
fn repetitions(number: usize) -> usize {
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    number * factor.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Random numbers, with a new seed for every run unless `CELLWRIGHT_TEST_SEED` is set.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn new() -> Self {
        let given = std::env::var("CELLWRIGHT_TEST_SEED").ok();
        let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.unwrap().as_nanos().try_into().unwrap_or(7)
        });
        eprintln!("CELLWRIGHT_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
