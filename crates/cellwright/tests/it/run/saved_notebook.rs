//! The file that `run` writes: outputs, metadata, layout, times, parameters and artifacts.

use std::fs;

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, code, executed, jupyter_layout, markdown, statuses};

#[test]
fn outputs_go_to_another_file_on_request_and_the_notebook_is_not_changed() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed("print(1)"),
            executed("1 / 0"),
            executed("print(3)"),
        ]);
        let before = fixture.content("a.ipynb");
        let result = fixture.run_on(backend, &["-o", "b.ipynb"]).exits(1);
        assert!(result.stderr.contains("b.ipynb"), "{}", result.stderr);
        assert_eq!(fixture.content("a.ipynb"), before);
        // Cells that did not run have no outputs in the other file.
        assert_eq!(
            fixture.outputs_in("b.ipynb"),
            ["1", "!ZeroDivisionError", ""]
        );
        assert_eq!(
            fixture.document("b.ipynb")["cells"][2]["execution_count"],
            json!(null)
        );
        fixture.assert_valid(&["b.ipynb"]);
    }
}

#[test]
fn an_existing_output_file_is_replaced_and_the_notebook_itself_is_saved_in_place() {
    let fixture = RunFixture::with(&[
        executed("print(1)"),
        executed("1 / 0"),
        executed("print(3)"),
    ]);
    fs::write(fixture.path("b.ipynb"), "anything").unwrap();
    fixture.run(&["-o", "b.ipynb", "--cells", "0"]).exits(0);
    assert_eq!(fixture.outputs_in("b.ipynb"), ["1", "old", "old"]);
    fs::create_dir(fixture.path("sub")).unwrap();
    std::os::unix::fs::symlink("a.ipynb", fixture.path("link.ipynb")).unwrap();
    for same_file in ["a.ipynb", "sub/../a.ipynb", "link.ipynb"] {
        fixture.run(&["-o", same_file]).exits(1);
        assert_eq!(
            fixture.outputs(),
            ["1", "!ZeroDivisionError", "old"],
            "{same_file}"
        );
    }
    assert!(
        fs::symlink_metadata(fixture.path("link.ipynb"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn nothing_runs_if_the_output_file_cannot_be_created() {
    let fixture = RunFixture::with(&[code("open('ran', 'w')")]);
    let before = fixture.content("a.ipynb");
    fs::create_dir(fixture.path("directory")).unwrap();
    for path in ["no/such/b.ipynb", "directory"] {
        let result = fixture.run(&["-o", path]).exits(2);
        assert!(result.stderr.contains("error:"), "{}", result.stderr);
        assert!(!fixture.path("ran").exists(), "{path}");
    }
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn the_kernelspec_is_saved_and_existing_metadata_is_kept() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("1")]);
        fixture.run_on(backend, &[]).exits(0);
        let metadata = fixture.document("a.ipynb")["metadata"].clone();
        assert_eq!(metadata["kernelspec"]["language"], "python");
        assert!(
            metadata["kernelspec"]["display_name"].is_string(),
            "{metadata}"
        );
        let info = &metadata["language_info"];
        assert_eq!(
            (&info["name"], &info["file_extension"]),
            (&json!("python"), &json!(".py"))
        );
        fixture.assert_valid(&["a.ipynb"]);
        // A second run changes nothing.
        let before = fixture.content("a.ipynb");
        fixture.run_on(backend, &[]).exits(0);
        assert_eq!(fixture.content("a.ipynb"), before);
        fixture.rewrite(|document| {
            document["metadata"]["kernelspec"]["display_name"] = json!("Mine");
            document["metadata"]["authors"] = json!(["me"]);
        });
        let before = fixture.document("a.ipynb");
        fixture.run_on(backend, &[]).exits(0);
        assert_eq!(fixture.document("a.ipynb"), before);
    }
}

#[test]
fn the_layout_of_the_file_is_kept() {
    let fixture = RunFixture::with(&[markdown("é"), code("print('é')\n1")]);
    let document = fixture.document("a.ipynb");
    let by_four = {
        let text = jupyter_layout(&document);
        let indented = text.lines().map(|line| {
            let content = line.trim_start_matches(' ');
            format!(
                "{}{content}\r\n",
                " ".repeat(4 * (line.len() - content.len()))
            )
        });
        format!("\u{feff}{}", indented.collect::<String>())
    };
    fixture.host.context.file("a.ipynb", &by_four);
    fixture.run(&[]).exits(0);
    let now = fixture.content("a.ipynb");
    assert!(
        now.starts_with("\u{feff}{\r\n    \"cells\": [\r\n        {\r\n"),
        "{now}"
    );
    assert!(!now.replace("\r\n", "").contains('\n'));
    let expected = "            \"outputs\": [\r\n                {\r\n                    \"name\": \"stdout\",\r\n";
    assert!(now.contains(expected), "{now}");

    let compact = serde_json::to_string(&document)
        .unwrap()
        .replace('é', "\\u00e9");
    fixture.host.context.file("a.ipynb", &compact);
    fixture.run(&[]).exits(0);
    let now = fixture.content("a.ipynb");
    assert!(!now.contains('\n') && now.is_ascii(), "{now}");
    assert!(now.contains(r#""text":["\u00e9\n"]"#), "{now}");
    serde_json::from_str::<Value>(&now).unwrap();
}

#[test]
fn execution_times_are_saved_if_the_setting_is_on() {
    let fixture = RunFixture::with(&[code("1"), code("1 / 0"), code("2")]);
    for (timing, is_on) in [("true", true), ("false", false)] {
        fixture.notebook("a.ipynb", &[code("1"), code("1 / 0"), code("2")]);
        let mut command = fixture.command("runner", &[]);
        command
            .env("CELLWRIGHT_RUN_TIMING", timing)
            .output()
            .unwrap();
        let document = fixture.document("a.ipynb");
        for (cell, has_run) in [(0, true), (1, true), (2, false)] {
            let execution = &document["cells"][cell]["metadata"]["execution"];
            assert_eq!(execution.is_object(), is_on && has_run, "{timing} {cell}");
        }
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn outputs_above_the_limit_are_stored_as_an_artifact() {
    let fixture = RunFixture::with(&[
        code("for i in range(50): print('x' * 100)"),
        code("print(2)"),
    ]);
    let mut command = fixture.command("runner", &["--json"]);
    let output = command
        .env("CELLWRIGHT_RUN_MAX_OUTPUTS", "1000")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&report), ["ok", "ok"]);
    assert_eq!(super::notices(&report), ["outputs_moved"]);
    let outputs = fixture.outputs();
    assert!(
        outputs[0].starts_with("[outputs of 5.") && outputs[0].contains("KiB are in artifact://"),
        "{outputs:?}"
    );
    assert_eq!(outputs[1], "2");
    let id = outputs[0]
        .split("are in ")
        .nth(1)
        .unwrap()
        .trim_end_matches(']');
    let artifact = fixture.run_command(&["read", id]).exits(0).stdout;
    assert_eq!(artifact.matches(&"x".repeat(100)).count(), 50, "{artifact}");
}

/// The size of outputs in the report is limited. The notebook contains all outputs.
#[test]
fn outputs_that_the_report_omits_cause_a_notice() {
    let fixture = RunFixture::with(&[
        code("display({'text/plain': 'x' * 300_000}, raw=True)"),
        code("2"),
    ]);
    let report = fixture.run(&["--json"]).exits(0).json();
    assert_eq!(report["cells"][0]["outputs"], json!([]));
    assert!(
        notices(&report).contains(&"outputs_omitted"),
        "{}",
        report["notices"]
    );
    assert_eq!(
        report["cells"][1]["outputs"][0]["data"]["text/plain"],
        json!(["2"])
    );
    assert_eq!(fixture.outputs()[0].len(), 300_001);
    let result = fixture.run(&[]).exits(0);
    assert!(!result.stderr.contains("too large"), "{}", result.stderr);
}

fn notices(report: &Value) -> Vec<&str> {
    super::notices(report)
}

#[test]
fn parameters_are_saved_in_a_separate_cell() {
    let mut defaults = code("year = 1\nname = 'x'");
    defaults["metadata"]["tags"] = json!(["parameters"]);
    let fixture = RunFixture::with(&[defaults, code("print(year, name)")]);
    fixture.run(&["-p", "year=2026"]).exits(0);
    assert_eq!(fixture.outputs(), ["", "", "2026 x"]);
    let document = fixture.document("a.ipynb");
    assert_eq!(
        document["cells"][1]["metadata"]["tags"],
        json!(["injected-parameters"])
    );
    // New parameters replace the cell, and it runs although `--cells` does not select it.
    fixture
        .run(&["-p", "year=7", "-r", "name=8", "--cells", "2"])
        .exits(0);
    assert_eq!(fixture.outputs(), ["", "", "7 8"]);
    fixture.assert_valid(&["a.ipynb"]);
    let before = fixture.content("a.ipynb");
    let result = fixture.run(&["-p", "2x=1"]).exits(2);
    assert!(result.stderr.contains("nothing ran"), "{}", result.stderr);
    assert_eq!(fixture.content("a.ipynb"), before);
}

/// The path is relative to the working directory, not to the directory of the notebook.
#[test]
fn the_path_of_an_interpreter_is_relative_to_the_working_directory() {
    let fixture = RunFixture::new();
    fs::create_dir(fixture.path("sub")).unwrap();
    fixture.notebook("sub/a.ipynb", &[code("print(1)")]);
    let python = super::python_with_nbformat();
    std::os::unix::fs::symlink(python, fixture.path("py")).unwrap();
    for python_path in ["./py", "py"] {
        let result = fixture.run_command(&["run", "sub/a.ipynb", "--python", python_path]);
        result.exits(0);
        assert_eq!(fixture.outputs_in("sub/a.ipynb"), ["1"], "{python_path}");
    }
    let result = fixture
        .run_command(&["run", "sub/a.ipynb", "--python", "sub/none"])
        .exits(2);
    assert!(
        result.stderr.contains("sub/none: there is no such file"),
        "{}",
        result.stderr
    );
    assert!(!result.stderr.contains("sub/sub"), "{}", result.stderr);
}
