//! What is written, and where.

use std::fs;

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, code, jupyter_layout, markdown, old, statuses};

#[test]
fn outputs_go_somewhere_else_if_told_and_the_notebook_stays() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[old("print(1)"), old("1 / 0"), old("print(3)")]);
        let before = fixture.content("a.ipynb");
        let ran = fixture.run_on(backend, &["-o", "b.ipynb"]).exits(1);
        assert!(ran.stderr.contains("b.ipynb"), "{}", ran.stderr);
        assert_eq!(fixture.content("a.ipynb"), before);
        // What did not run is from another run, which has no place there.
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
fn another_file_there_is_replaced_and_onto_itself_is_in_place() {
    let fixture = RunFixture::with(&[old("print(1)"), old("1 / 0"), old("print(3)")]);
    fs::write(fixture.path("b.ipynb"), "anything").unwrap();
    fixture.run(&["-o", "b.ipynb", "--cells", "0"]).exits(0);
    assert_eq!(fixture.outputs_in("b.ipynb"), ["1", "old", "old"]);
    fs::create_dir(fixture.path("sub")).unwrap();
    std::os::unix::fs::symlink("a.ipynb", fixture.path("link.ipynb")).unwrap();
    for itself in ["a.ipynb", "sub/../a.ipynb", "link.ipynb"] {
        fixture.run(&["-o", itself]).exits(1);
        assert_eq!(
            fixture.outputs(),
            ["1", "!ZeroDivisionError", "old"],
            "{itself}"
        );
    }
    assert!(
        fs::symlink_metadata(fixture.path("link.ipynb"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn nothing_runs_if_there_is_no_place_for_the_outputs() {
    let fixture = RunFixture::with(&[code("open('ran', 'w')")]);
    let before = fixture.content("a.ipynb");
    fs::create_dir(fixture.path("folder")).unwrap();
    for nowhere in ["no/such/b.ipynb", "folder"] {
        let ran = fixture.run(&["-o", nowhere]).exits(2);
        assert!(ran.stderr.contains("error:"), "{}", ran.stderr);
        assert!(!fixture.path("ran").exists(), "{nowhere}");
    }
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn the_notebook_says_what_ran_it_and_keeps_what_it_said() {
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
        // Once more changes nothing but what ran.
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

    let dense = serde_json::to_string(&document)
        .unwrap()
        .replace('é', "\\u00e9");
    fixture.host.context.file("a.ipynb", &dense);
    fixture.run(&[]).exits(0);
    let now = fixture.content("a.ipynb");
    assert!(!now.contains('\n') && now.is_ascii(), "{now}");
    assert!(now.contains(r#""text":["\u00e9\n"]"#), "{now}");
    serde_json::from_str::<Value>(&now).unwrap();
}

#[test]
fn when_cells_ran_is_told_if_wanted() {
    let fixture = RunFixture::with(&[code("1"), code("1 / 0"), code("2")]);
    for (timing, told) in [("true", true), ("false", false)] {
        fixture.notebook("a.ipynb", &[code("1"), code("1 / 0"), code("2")]);
        let mut command = fixture.command("runner", &[]);
        command
            .env("CELLWRIGHT_RUN_TIMING", timing)
            .output()
            .unwrap();
        let document = fixture.document("a.ipynb");
        for (cell, ran) in [(0, true), (1, true), (2, false)] {
            let execution = &document["cells"][cell]["metadata"]["execution"];
            assert_eq!(execution.is_object(), told && ran, "{timing} {cell}");
        }
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn outputs_that_are_too_large_go_to_an_artifact_if_wanted() {
    let fixture = RunFixture::with(&[
        code("for i in range(50): print('x' * 100)"),
        code("print(2)"),
    ]);
    let mut command = fixture.command("runner", &["--json"]);
    let output = command
        .env("CELLWRIGHT_RUN_MAX_OUTPUTS", "1000")
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&answer), ["ok", "ok"]);
    assert_eq!(super::notices(&answer), ["outputs_moved"]);
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
    let kept = fixture.other(&["read", id]).exits(0).stdout;
    assert_eq!(kept.matches(&"x".repeat(100)).count(), 50, "{kept}");
}

/// What is told beside the notebook is bounded; the notebook has everything.
#[test]
fn outputs_that_are_not_told_are_named() {
    let fixture = RunFixture::with(&[
        code("display({'text/plain': 'x' * 300_000}, raw=True)"),
        code("2"),
    ]);
    let answer = fixture.run(&["--json"]).exits(0).json();
    assert_eq!(answer["cells"][0]["outputs"], json!([]));
    assert!(
        notices(&answer).contains(&"outputs_omitted"),
        "{}",
        answer["notices"]
    );
    assert_eq!(
        answer["cells"][1]["outputs"][0]["data"]["text/plain"],
        json!(["2"])
    );
    assert_eq!(fixture.outputs()[0].len(), 300_001);
    let ran = fixture.run(&[]).exits(0);
    assert!(!ran.stderr.contains("too large"), "{}", ran.stderr);
}

fn notices(answer: &Value) -> Vec<&str> {
    super::notices(answer)
}

#[test]
fn parameters_stand_in_a_cell_of_their_own() {
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
    // The next ones take their place, and they run although others were chosen.
    fixture
        .run(&["-p", "year=7", "-r", "name=8", "--cells", "2"])
        .exits(0);
    assert_eq!(fixture.outputs(), ["", "", "7 8"]);
    fixture.assert_valid(&["a.ipynb"]);
    let before = fixture.content("a.ipynb");
    let ran = fixture.run(&["-p", "2x=1"]).exits(2);
    assert!(ran.stderr.contains("nothing ran"), "{}", ran.stderr);
    assert_eq!(fixture.content("a.ipynb"), before);
}

/// Where one types the command, and not where the notebook is.
#[test]
fn an_interpreter_is_named_from_here() {
    let fixture = RunFixture::new();
    fs::create_dir(fixture.path("sub")).unwrap();
    fixture.notebook("sub/a.ipynb", &[code("print(1)")]);
    let python = super::python_with_nbformat();
    std::os::unix::fs::symlink(python, fixture.path("py")).unwrap();
    for named in ["./py", "py"] {
        let ran = fixture.other(&["run", "sub/a.ipynb", "--python", named]);
        ran.exits(0);
        assert_eq!(fixture.outputs_in("sub/a.ipynb"), ["1"], "{named}");
    }
    let ran = fixture
        .other(&["run", "sub/a.ipynb", "--python", "sub/none"])
        .exits(2);
    assert!(
        ran.stderr.contains("sub/none: there is no such file"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("sub/sub"), "{}", ran.stderr);
}
