//! Notebooks that are open in a real JupyterLab, with and without jupyter-collaboration.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::context::{CommandOutput, Context};
use crate::mcp::client::Client;

const TWO_CELLS: &str = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "one",
   "metadata": {},
   "outputs": [],
   "source": [
    "x = 1"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "two",
   "metadata": {},
   "outputs": [],
   "source": [
    "y = 2"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3 (ipykernel)",
   "language": "python",
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

/// A JupyterLab that serves the directory of a test.
struct JupyterLab {
    context: Context,
    python: PathBuf,
    server: Child,
}

/// A process that behaves like a page of JupyterLab.
struct Page {
    process: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl JupyterLab {
    fn start(collaboration: bool) -> Option<Self> {
        let python = cellwright_test_support::python()?;
        let context = Context::new();
        context.file("a.ipynb", TWO_CELLS);
        let extensions = format!(
            "--ServerApp.jpserver_extensions=jupyter_server_ydoc={}",
            if collaboration { "True" } else { "False" }
        );
        let mut command = python_command(&context, &python);
        command
            .args(["-m", "jupyterlab", "--no-browser", "--allow-root"])
            .args(["--ip=127.0.0.1", "--port=0", &extensions])
            // Rooms take over a new file at once, and never save on their own.
            .arg("--YDocExtension.file_poll_interval=0.1")
            .arg("--YDocExtension.document_save_delay=3600")
            .arg(format!("--ServerApp.root_dir={}", context.dir().display()))
            .stdout(Stdio::null())
            .stderr(fs::File::create(context.home().join("server.log")).unwrap());
        let server = command.spawn().unwrap();
        Some(Self {
            context,
            python,
            server,
        })
    }

    /// A page. Waits until the server replies.
    fn page(&self) -> Page {
        let script =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/open_notebooks/page.py");
        let mut process = python_command(&self.context, &self.python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut page = Page {
            commands: process.stdin.take().unwrap(),
            replies: BufReader::new(process.stdout.take().unwrap()),
            process,
        };
        assert_eq!(page.reply(), "ready", "{}", self.log());
        page
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.context.command(arguments);
        command.env("JUPYTER_RUNTIME_DIR", self.runtime_dir());
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::new(&self.context, &self.command(arguments).output().unwrap())
    }

    fn runtime_dir(&self) -> PathBuf {
        self.context.home().join("jupyter-runtime")
    }

    /// The token of the server. No output may contain it.
    fn token(&self) -> String {
        let name = format!("jpserver-{}.json", self.server.id());
        let record = fs::read(self.runtime_dir().join(name)).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        record["token"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.context.home().join("server.log")).unwrap()
    }
}

fn python_command(context: &Context, python: &PathBuf) -> Command {
    let mut command = Command::new(python);
    command
        .current_dir(context.dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", context.home())
        .env(
            "JUPYTER_RUNTIME_DIR",
            context.home().join("jupyter-runtime"),
        )
        .stdin(Stdio::null());
    command
}

impl Drop for JupyterLab {
    fn drop(&mut self) {
        // An orderly end also ends its kernels.
        let pid = self.server.id().to_string();
        Command::new("kill").arg(pid).status().ok();
        self.server.wait().ok();
    }
}

impl Page {
    fn send(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Waits until a condition holds.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the room has this text in its second cell.
fn wait_for_text(page: &mut Page, text: &str, lab: &JupyterLab) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while page.send("text") != text {
        assert!(
            Instant::now() < deadline,
            "the room has kept the text: {}",
            lab.log()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kinds(output: &CommandOutput) -> Vec<String> {
    let notices = output.json()["notices"].as_array().unwrap().clone();
    let kind = |notice: &serde_json::Value| notice["kind"].as_str().unwrap().to_owned();
    notices.iter().map(kind).collect()
}

#[test]
fn text_that_is_typed_in_a_collaboration_room_is_not_overwritten() {
    let Some(lab) = JupyterLab::start(true) else {
        return;
    };
    let mut page = lab.page();
    // A server runs, but no page has the notebook open.
    let edited = lab.run(&[
        "edit", "a.ipynb", "--old", "x = 1", "--new", "x = 11", "--json",
    ]);
    assert_eq!(kinds(&edited.exits(0)), [""; 0]);

    assert_eq!(page.send("join a.ipynb"), "joined");
    assert_eq!(page.send("type  + typed"), "typed");
    let before = lab.context.content("a.ipynb");
    let refused = lab
        .run(&["edit", "a.ipynb", "--old", "x = 11", "--new", "x = 12"])
        .exits(3);
    assert!(
        refused.stderr.contains("live collaboration room"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("http://127.0.0.1:"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("`--force`"), "{}", refused.stderr);
    assert!(!refused.stderr.contains(&lab.token()));
    // Other writers of the file.
    lab.run(&["notebook", "insert", "a.ipynb", "--source", "z"])
        .exits(3);
    let run = lab.run(&["run", "a.ipynb", "--python", lab.python.to_str().unwrap()]);
    assert!(run.exits(3).stderr.contains("nothing was written"));
    assert_eq!(lab.context.content("a.ipynb"), before);
    assert_eq!(page.send("text"), "y = 2 + typed");
    let located = lab.run(&["notebook", "where", "a.ipynb"]).exits(0);
    assert!(located.stdout.contains("live"), "{}", located.stdout);

    // Over MCP, and from code in a cell.
    let mut server = lab.command(&["mcp"]);
    server.env("CELLWRIGHT_PYTHON", &lab.python);
    let mut client = Client::of(server);
    client.initialize(&json!({}));
    let arguments = json!({"path": "a.ipynb", "old": "x = 11", "new": "x = 12"});
    let refused = client.call("edit", arguments.clone()).error_text();
    for part in ["live collaboration room", "http://127.0.0.1:", "`force`"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains(&lab.token()));
    let located = client.call("notebook", json!({"action": "where", "path": "a.ipynb"}));
    assert!(located.text().contains("live"), "{}", located.text());
    assert!(!located.text().contains(&lab.token()));
    let code = "tool.edit('a.ipynb', old='x = 11', new='x = 12')";
    let raised = lab.run(&["eval", code, "--python", lab.python.to_str().unwrap()]);
    let raised = raised.exits(1).stderr;
    assert!(raised.contains("live collaboration room"), "{raised}");
    assert_eq!(lab.context.content("a.ipynb"), before);
    assert_eq!(page.send("text"), "y = 2 + typed");
    let mut arguments = arguments;
    arguments["force"] = json!(true);
    arguments["new"] = json!("x = 11 + 0");
    let forced = client.call("edit", arguments).ok();
    assert_eq!(forced.notices(), ["open_in_room"]);
    assert!(lab.context.content("a.ipynb").contains("x = 11 + 0"));
    drop(client);
    wait_for_text(&mut page, "y = 2", &lab);
    assert_eq!(page.send("type  + typed"), "typed");

    // What the refusal prevents: the room takes over the file, and the typed text is lost.
    let forced = [
        "edit",
        "a.ipynb",
        "--old",
        "x = 11 + 0",
        "--new",
        "x = 13",
        "--force",
        "--json",
    ];
    assert_eq!(kinds(&lab.run(&forced).exits(0)), ["open_in_room"]);
    wait_for_text(&mut page, "y = 2", &lab);
}

#[test]
fn outputs_of_a_run_go_to_an_artifact_if_a_room_opens_meanwhile() {
    let Some(lab) = JupyterLab::start(true) else {
        return;
    };
    let mut page = lab.page();
    let wait = "import os, time\\nopen('started', 'w').close()\\nwhile not os.path.exists('joined'):\\n    time.sleep(0.02)\\nprint('result')";
    lab.context
        .file("a.ipynb", TWO_CELLS.replace("x = 1", wait));
    let run = lab
        .command(&[
            "run",
            "a.ipynb",
            "--json",
            "--python",
            lab.python.to_str().unwrap(),
        ])
        .spawn()
        .unwrap();
    wait_until("the cell runs", || lab.context.path("started").exists());
    assert_eq!(page.send("join a.ipynb"), "joined");
    let before = lab.context.content("a.ipynb");
    fs::write(lab.context.path("joined"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    let output = CommandOutput::new(&lab.context, &output).exits(3);
    let artifact = output.json()["notebook"]["artifact"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(lab.context.content("a.ipynb"), before);
    let kept = lab.run(&["read", &artifact]).exits(0);
    assert!(kept.stdout.contains("result"), "{}", kept.stdout);
}

#[test]
fn a_page_without_collaboration_shows_the_old_text() {
    let Some(lab) = JupyterLab::start(false) else {
        return;
    };
    let mut page = lab.page();
    page.send("open a.ipynb");
    let edit = |old: &str, new: &str| {
        let result = lab.run(&["edit", "a.ipynb", "--old", old, "--new", new, "--json"]);
        result.exits(0)
    };
    let edited = edit("x = 1", "x = 11");
    assert_eq!(kinds(&edited), ["open_in_page"]);
    let text = edited.json()["notices"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    for label in [
        "\"Reload Notebook from Disk\"",
        "\"Revert\"",
        "\"Overwrite\"",
        "http://127.0.0.1:",
    ] {
        assert!(text.contains(label), "{text}");
    }
    assert!(!text.contains(&lab.token()));

    // The page saves the text that it has: the next call reports it, once.
    assert_eq!(page.send("overwrite"), "saved");
    assert!(lab.context.content("a.ipynb").contains("x = 1\""));
    assert_eq!(
        kinds(&lab.run(&["read", "a.ipynb", "--json"]).exits(0)),
        ["overwritten"]
    );
    assert_eq!(
        kinds(&lab.run(&["read", "a.ipynb", "--json"]).exits(0)),
        [""; 0]
    );
    // A write reports it as well.
    edit("x = 1", "x = 12");
    assert_eq!(page.send("overwrite"), "saved");
    assert_eq!(
        kinds(&edit("y = 2", "y = 22")),
        ["overwritten", "open_in_page"]
    );

    // The outputs of a run.
    let python = lab.python.to_str().unwrap().to_owned();
    let run = |lab: &JupyterLab| {
        lab.run(&["run", "a.ipynb", "--json", "--python", &python])
            .exits(0)
    };
    lab.run(&["notebook", "edit", "a.ipynb", "1", "--source", "print(5)"])
        .exits(0);
    page.send("open a.ipynb");
    assert_eq!(kinds(&run(&lab)), ["open_in_page"]);
    assert_eq!(page.send("overwrite"), "saved");
    assert_eq!(kinds(&run(&lab)), ["overwritten", "open_in_page"]);

    let located = lab
        .run(&["notebook", "where", "a.ipynb", "--json"])
        .exits(0)
        .json();
    let server = &located["servers"][0];
    assert_eq!(server["room"], false);
    assert!(
        server["kernel"]["connections"].as_u64().unwrap() > 0,
        "{located}"
    );
    let file = server["kernel"]["connection_file"].as_str().unwrap();
    let value = lab.run(&["eval", "--existing", file, "40 + 2"]).exits(0);
    assert!(value.stdout.contains("42"), "{}", value.stdout);

    assert_eq!(page.send("close"), "closed");
    assert_eq!(kinds(&edit("x = 1", "x = 12")), [""; 0]);
}
