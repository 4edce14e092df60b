//! The events of `run`, `eval`, `check` and background runs.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::collector::Collector;
use super::executions::{DISPLAYS, notebook};

/// Runs a command with `--events`. All lines conform to the schema.
fn events(collector: &mut Collector, arguments: &[&str], code: i32) -> Vec<Value> {
    let mut command = collector.context.command(arguments);
    command.arg("--events");
    if let Some(python) = std::env::var_os(cellwright_test_support::PYTHON) {
        command.env("CELLWRIGHT_PYTHON_INTERPRETER", python);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for event in &events {
        collector.add("events", &arguments.join(" "), event);
    }
    events
}

fn names(events: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    // A text may arrive in parts.
    names.dedup();
    names
}

#[test]
fn eval_and_run_print_the_same_events() {
    let mut collector = Collector::new();
    let code = "print('\\x1b[31mred\\x1b[0m')\nraise ValueError('\\x1b[1mbold')";
    collector.context.file("n.ipynb", notebook(&[code]));
    let expected = ["kernel_ready", "begin", "text", "error", "end", "done"];
    for arguments in [
        &["eval", code][..],
        &["eval", "--session", "s", code],
        &["run", "n.ipynb"],
        &["run", "n.ipynb", "--session", "s"],
    ] {
        let events = events(&mut collector, arguments, 1);
        assert_eq!(names(&events), expected, "{arguments:?}");
        let times: Vec<&str> = events
            .iter()
            .map(|event| event["time"].as_str().unwrap())
            .collect();
        assert!(times.is_sorted(), "{times:?}");
        let text: String = events
            .iter()
            .filter_map(|event| event["text"].as_str())
            .collect();
        assert_eq!(text, "red\n");
        let [.., raised, end, done] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(raised["error"]["evalue"], "bold");
        assert!(!raised.to_string().contains("u001b"), "{raised}");
        assert_eq!(end["error"], done["cells"][0]["error"]);
        assert_eq!(done["error"]["ename"], "ValueError");
        assert!(!done["error"].to_string().contains("u001b"), "{done}");
        assert_eq!(events[0]["kernel"], done["kernel"]);
    }
    collector.validate();
}

#[test]
fn a_figure_names_its_artifact_when_it_appears() {
    let mut collector = Collector::new();
    let events = events(&mut collector, &["eval", DISPLAYS], 0);
    let done = events.last().unwrap();
    let artifact = &done["cells"][0]["images"][0]["artifact"];
    assert!(artifact.is_string(), "{done}");
    let is_display = |event: &&Value| event["event"] == "display";
    let mut images = events
        .iter()
        .filter(is_display)
        .flat_map(|event| event["images"].as_array().unwrap());
    assert!(
        images.any(|image| image["artifact"] == *artifact),
        "{events:?}"
    );
    collector.validate();
}

#[test]
fn a_command_that_runs_nothing_ends_with_the_error() {
    let mut collector = Collector::new();
    for arguments in [
        &["eval", "--python", "/no/such/python", "1"][..],
        &["run", "missing.ipynb"],
    ] {
        let events = events(&mut collector, arguments, 2);
        assert_eq!(names(&events), ["done"]);
        assert_eq!(events[0]["status"], "not_started");
        assert_eq!(events[0]["error"]["exit_code"], json!(2));
    }
    collector.validate();
}

/// Code that waits for a file, so that a test decides when it ends.
fn waiting_code(file: &str) -> String {
    format!(
        "import os, time\nprint('started', flush=True)\nwhile not os.path.exists('{file}'): time.sleep(0.01)\nprint('ended')"
    )
}

/// The id of the run in the last event, which states that the run continues.
fn continuing_run(events: &[Value]) -> String {
    let last = events.last().unwrap();
    assert_eq!(last["event"], "running", "{events:?}");
    assert_eq!(last["status"], "running", "{last}");
    last["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_that_continues_ends_with_its_id_and_its_events_can_be_followed() {
    let mut collector = Collector::new();
    let code = waiting_code("go");
    collector.context.file("n.ipynb", notebook(&[&code, "2"]));
    let started = events(&mut collector, &["run", "n.ipynb", "--wait", "0.01"], 0);
    let run = continuing_run(&started);
    let waited = events(
        &mut collector,
        &["runs", "wait", &run, "--wait", "0.01"],
        124,
    );
    assert_eq!(continuing_run(&waited), run);
    // The kernel, the running cell and its output come first, also for a command that starts to follow later.
    let mut tail = collector
        .context
        .command(&["runs", "tail", &run, "--events"]);
    let mut tail = tail.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut followed = Vec::new();
    let mut next = |collector: &mut Collector| {
        let event: Value = serde_json::from_str(&lines.next()?.unwrap()).unwrap();
        collector.add("events", "runs tail --events", &event);
        Some(event)
    };
    let has_started = |event: &Value| {
        let text = event["text"].as_str().unwrap_or_default();
        text.contains("started")
    };
    while !followed.last().is_some_and(has_started) {
        followed.extend(next(&mut collector));
    }
    collector.context.file("go", "");
    while let Some(event) = next(&mut collector) {
        followed.push(event);
    }
    assert!(tail.wait().unwrap().success());
    assert_eq!(
        names(&followed),
        [
            "kernel_ready",
            "begin",
            "text",
            "end",
            "begin",
            "display",
            "end",
            "done"
        ]
    );
    assert_eq!(followed[1]["index"], 0);
    let done = followed.last().unwrap();
    assert_eq!((&done["status"], &done["run"]), (&json!("ok"), &json!(run)));
    // The run is still there: only `wait` collects it.
    let collected = events(&mut collector, &["runs", "wait", &run], 0);
    assert_eq!(names(&collected), ["done"]);
    assert_eq!(collected[0]["cells"], done["cells"]);
    let evaluated = events(
        &mut collector,
        &[
            "eval",
            &waiting_code("eval-go"),
            "--session",
            "s",
            "--wait",
            "0.01",
        ],
        0,
    );
    let run = continuing_run(&evaluated);
    assert_eq!(evaluated.last().unwrap()["session"], "s");
    collector.context.file("eval-go", "");
    assert_eq!(
        events(&mut collector, &["runs", "wait", &run], 0)
            .last()
            .unwrap()["status"],
        "ok"
    );
    let missing = events(&mut collector, &["runs", "wait", "r99"], 2);
    assert_eq!(names(&missing), ["done"]);
    collector
        .context
        .run(&["runs", "wait", &run, "--events", "--json"])
        .exits(2);
    collector.validate();
}

#[test]
fn check_prints_the_events_of_its_run_and_its_report() {
    let mut collector = Collector::new();
    collector
        .context
        .file("n.ipynb", notebook(&["print(1)", "1/0"]));
    let checked = events(&mut collector, &["check", "n.ipynb"], 1);
    assert_eq!(
        names(&checked),
        [
            "kernel_ready",
            "begin",
            "text",
            "end",
            "begin",
            "error",
            "end",
            "done"
        ]
    );
    let done = checked.last().unwrap();
    assert_eq!(
        (&done["passed"], &done["raised"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(done["cells"][0]["status"], "different");
    let missing = events(&mut collector, &["check", "missing.ipynb"], 2);
    assert_eq!(missing[0]["status"], "not_started");
    collector.validate();
}
