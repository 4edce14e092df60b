//! Notices about runs that have another effect than their caller expects.

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, code, executed, markdown, notices, tagged};

/// Cell 3 needs the variable of cell 0.
fn dependent_cells() -> Vec<Value> {
    vec![
        executed("x = 1"),
        markdown("text"),
        executed("y = 2"),
        executed("print(x)"),
        executed("print('last')"),
    ]
}

#[test]
fn a_selection_without_the_cells_before_it_is_reported_before_it_runs_and_when_it_fails() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&dependent_cells());
        for selection in [&["--cells", "3"][..], &["--from", "3"]] {
            let result = fixture.run_on(backend, selection).exits(1);
            let stderr = &result.stderr;
            let notice = "notice: cells 0, 2 have not run on this kernel; `--to CELL` also runs";
            assert!(stderr.starts_with(notice), "{stderr}");
            let error = "error: Cell 3 (id c3) raised NameError: name 'x' is not defined\n";
            assert!(stderr.contains(error), "{stderr}");
            let hint = "hint: cells 0, 2 did not run on this kernel; `--to 3` runs all cells";
            assert!(stderr.contains(hint), "{stderr}");
        }
        let report = fixture
            .run_on(backend, &["--cells", "4", "--json"])
            .exits(0);
        assert_eq!(notices(&report.json()), ["cells_not_run"]);
        for complete in [&["--to", "3"][..], &["--cells", "0,2-4"]] {
            let result = fixture.run_on(backend, complete).exits(0);
            assert!(!result.stderr.contains("notice"), "{}", result.stderr);
        }
    }
}

#[test]
fn only_cells_that_have_not_run_in_the_session_are_missing() {
    let fixture = RunFixture::with(&dependent_cells());
    let session = |more: &[&str]| {
        let arguments = [&["--session", "s", "--json"], more].concat();
        fixture.run(&arguments)
    };
    let report = session(&["--cells", "3"]).exits(1).json();
    assert_eq!(notices(&report), ["session_cells_not_run"]);
    let text = report["notices"][0]["text"].as_str().unwrap();
    assert_eq!(text, "cells 0, 2 have not run on the kernel of session s");
    assert_eq!(notices(&session(&["--to", "2"]).exits(0).json()), [""; 0]);
    assert_eq!(
        notices(&session(&["--cells", "3"]).exits(0).json()),
        [""; 0]
    );
    let report = session(&["--restart", "--from", "2"]).exits(1).json();
    assert_eq!(notices(&report), ["session_cells_not_run"]);
}

#[test]
fn the_error_names_every_failed_cell_with_its_exception() {
    let fixture = RunFixture::with(&[
        code("assert 1 > 2, 'too small'"),
        code("print('fine')"),
        code("raise ValueError('first line\\nsecond line')"),
        code("raise KeyError"),
    ]);
    let result = fixture.run(&["--keep-going"]).exits(1);
    let expected = "error: 3 of 4 cells failed\n  \
        caused by: cell 0 (id c0) raised AssertionError: too small\n  \
        caused by: cell 2 (id c2) raised ValueError: first line\n  \
        caused by: cell 3 (id c3) raised KeyError\n";
    assert!(result.stderr.ends_with(expected), "{}", result.stderr);
    let single = fixture.run(&["--to", "0"]).exits(1).stderr;
    let expected = "error: Cell 0 (id c0) raised AssertionError: too small\n";
    assert!(single.ends_with(expected), "{single}");
}

#[test]
fn parameters_that_a_cell_overrides_are_reported() {
    let fixture = RunFixture::with(&[
        code("import os"),
        code("epochs = 20\nlr = 0.1"),
        code("print(epochs, lr)"),
    ]);
    let arguments = ["-p", "epochs=50", "-p", "other=1", "-o", "b.ipynb"];
    let stderr = fixture.run(&arguments).exits(0).stderr;
    let notice = "notice: no cell is tagged `parameters`; the values are set in cell 0; cell 2 (id c1) assigns epochs and \
        overrides the value\n";
    assert!(stderr.starts_with(notice), "{stderr}");
    let report = fixture.run(&[&arguments[..], &["--json"]].concat());
    assert_eq!(notices(&report.exits(0).json()), ["no_parameters_cell"]);
    // A cell that holds the defaults is before the values.
    fixture.notebook(
        "a.ipynb",
        &[
            tagged("epochs = 20", &["parameters"]),
            code("print(epochs)"),
        ],
    );
    let report = fixture.run(&["-p", "epochs=50", "--json"]).exits(0).json();
    assert_eq!(notices(&report), [""; 0]);
    assert_eq!(fixture.outputs()[2], "50");
}

/// The notebook is refused by the kernel, but the notice comes first.
#[test]
fn overridden_parameters_are_found_in_other_languages() {
    for (language, source) in [("R", "n <- 1000"), ("julia", "n = 1000")] {
        let fixture = RunFixture::with(&[code(source), code("print(n)")]);
        fixture.rewrite(|document| {
            document["metadata"]["kernelspec"] =
                json!({"name": "python3", "display_name": language, "language": language});
        });
        let result = fixture.run_on("jupyter", &["-p", "n=100000", "-o", "b.ipynb"]);
        let notice = "cell 1 (id c0) assigns n and overrides the value";
        assert!(result.stderr.contains(notice), "{}", result.stderr);
        if language == "R" {
            let source = fixture.document("b.ipynb")["cells"][0]["source"].to_string();
            assert!(source.contains("n <- 100000\""), "{source}");
        }
    }
}

#[test]
fn a_boolean_word_of_yaml_1_1_is_reported() {
    let fixture = RunFixture::with(&[tagged("flag = None", &["parameters"]), code("flag")]);
    let result = fixture.run(&["-p", "flag=no"]).exits(0);
    let notice = "notice: `flag` is the text `no`; write `flag=false` for a boolean, or quote the text: `flag='no'`\n";
    assert!(result.stderr.starts_with(notice), "{}", result.stderr);
    let quoted = fixture.run(&["-p", "flag='no'"]).exits(0);
    assert!(!quoted.stderr.contains("notice"), "{}", quoted.stderr);
    std::fs::write(fixture.path("p.yaml"), "flag: off\n").unwrap();
    let report = fixture.run(&["-f", "p.yaml", "--json"]).exits(0).json();
    assert_eq!(notices(&report), ["yaml_ambiguous"]);
}
