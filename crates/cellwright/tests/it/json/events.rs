//! The events of `run` and `eval`.

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
