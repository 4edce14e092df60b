//! Edits together with a run: both the edit and the run happen, or neither.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{BACKENDS, RunFixture, code, executed, markdown, notices, statuses};

/// Creates an interpreter that first runs a shell script. Returns its path.
fn create_interpreter(fixture: &RunFixture, script: &str) -> String {
    let python = super::python().unwrap_or_else(|| "python3".into());
    let text = format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", python.display());
    let path = fixture.host.context.file("python", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn an_edited_cell_runs_alone_or_with_the_cells_below() {
    for backend in BACKENDS {
        let cells = [
            executed("x = 1\nprint(x)"),
            executed("print('between')"),
            executed("print('behind', globals().get('x'))"),
        ];
        let fixture = RunFixture::with(&cells);
        let report = fixture
            .run_on(
                backend,
                &["--edit-cell", "0", "--source", "x = 2\nprint(x)", "--json"],
            )
            .exits(0)
            .json();
        assert_eq!(statuses(&report), ["ok"]);
        assert_eq!(fixture.outputs(), ["2", "old", "old"]);
        fixture
            .run_on(
                backend,
                &["--edit-cell", "id:c0", "--source", "x = 3", "--and-below"],
            )
            .exits(0);
        assert_eq!(fixture.outputs(), ["", "between", "behind 3"]);
        assert_eq!(
            fixture.document("a.ipynb")["cells"][0]["source"],
            json!(["x = 3"])
        );
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn several_edits_apply_in_order_and_the_edited_cells_run() {
    let fixture = RunFixture::with(&[executed("print(0)"), markdown("text"), executed("print(2)")]);
    let edits = json!([
        {"action": "insert", "source": "print('new')", "to": 0},
        {"action": "edit", "cell": "id:c1", "source": "other text"},
        {"action": "delete", "cell": "id:c0"},
        {"action": "edit", "cell": "2", "source": "print('edited')"},
    ]);
    fs::write(fixture.path("edits.json"), edits.to_string()).unwrap();
    let report = fixture
        .run(&["--edits", "edits.json", "--json"])
        .exits(0)
        .json();
    assert_eq!(statuses(&report), ["ok", "ok"]);
    assert_eq!(fixture.outputs(), ["new", "", "edited"]);
    let ids: Vec<_> = fixture.document("a.ipynb")["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["id"].clone())
        .collect();
    assert_eq!(ids[1..], [json!("c1"), json!("c2")]);
}

/// Without a cell to run, no kernel starts.
#[test]
fn an_edit_of_a_markdown_cell_needs_no_kernel() {
    let fixture = RunFixture::with(&[markdown("old text"), executed("print(1)")]);
    let broken = ["--python", "/no/such/python"];
    let mut arguments = vec!["--edit-cell", "0", "--source", "new text", "--json"];
    let mut command = fixture
        .host
        .context
        .command(&["run", "a.ipynb", "--backend", "runner"]);
    command.args(broken).args(&arguments);
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document = fixture.document("a.ipynb");
    assert_eq!(document["cells"][0]["source"], json!(["new text"]));
    assert_eq!(fixture.outputs(), ["", "old"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["notebook"]["changed"], true);
    assert_eq!(
        report["notebook"]["revision"],
        fixture.host.context.revision("a.ipynb")
    );
    assert_eq!(notices(&report), ["nothing_to_run"]);
    // `-o` writes the edit to another file.
    let before = fixture.content("a.ipynb");
    arguments[3] = "newer text";
    arguments.extend(["-o", "b.ipynb"]);
    fixture.run(&arguments).exits(0);
    assert_eq!(fixture.content("a.ipynb"), before);
    assert_eq!(
        fixture.document("b.ipynb")["cells"][0]["source"],
        json!(["newer text"])
    );
}

#[test]
fn an_invalid_edit_runs_and_writes_nothing() {
    let fixture = RunFixture::with(&[code("open('ran', 'w')"), code("open('ran', 'w')")]);
    let before = fixture.content("a.ipynb");
    let edits = [
        json!([{"action": "edit", "cell": "0", "source": "x"}, {"action": "edit", "cell": "9", "source": "x"}]),
        json!([{"action": "edit", "cell": "0"}]),
        json!([{"action": "paint", "cell": "0"}]),
        json!([{"action": "edit", "cell": "zero", "source": "x"}]),
        json!([{"action": "edit", "cell": "0", "sauce": "x"}]),
        json!({"action": "edit"}),
    ];
    for edits in edits {
        fs::write(fixture.path("edits.json"), edits.to_string()).unwrap();
        for form in [&[][..], &["--json"], &["--events"], &["-o", "b.ipynb"]] {
            let mut arguments = vec!["--edits", "edits.json"];
            arguments.extend(form);
            let result = fixture.run(&arguments).exits(2);
            assert!(result.stderr.contains("error:"), "{}", result.stderr);
            if !form.is_empty() && form[0] != "-o" {
                let report: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
                assert!(report["error"]["message"].is_string(), "{report}");
            }
        }
    }
    let result = fixture.run(&["--edit-cell", "0"]).exits(2);
    assert!(
        result.stderr.contains("needs a source"),
        "{}",
        result.stderr
    );
    assert!(!fixture.path("ran").exists() && !fixture.path("b.ipynb").exists());
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn a_kernel_that_cannot_start_leaves_the_notebook() {
    let fixture = RunFixture::with(&[executed("x = 1")]);
    let before = fixture.content("a.ipynb");
    let broken = create_interpreter(&fixture, "echo 'I am broken' >&2; exit 3");
    for backend in BACKENDS {
        for more in [
            &[][..],
            &["--edit-cell", "0", "--source", "x = 2"],
            &["-p", "x=1"],
            &["-o", "b.ipynb"],
        ] {
            let mut command = fixture.host.context.command(&[
                "run",
                "a.ipynb",
                "--backend",
                backend,
                "--python",
                &broken,
            ]);
            let output = command.args(more).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert_eq!(fixture.content("a.ipynb"), before, "{backend} {more:?}");
            assert!(!fixture.path("b.ipynb").exists(), "{backend} {more:?}");
        }
    }
    // An unknown kernel.
    let result = fixture.run_command(&[
        "run",
        "a.ipynb",
        "--kernel",
        "no-such-kernel",
        "--edit-cell",
        "0",
        "--source",
        "x",
    ]);
    result.exits(2);
    assert_eq!(fixture.content("a.ipynb"), before);
    // The events contain the error.
    let arguments = [
        "run",
        "a.ipynb",
        "--backend",
        "runner",
        "--python",
        &broken,
        "--events",
    ];
    let events = fixture.run_command(&arguments).exits(2).stdout;
    let last: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["status"]),
        (&json!("done"), &json!("not_started"))
    );
    assert!(
        last["error"]["message"]
            .as_str()
            .unwrap()
            .contains("kernel"),
        "{last}"
    );
    assert_eq!(events.lines().count(), 1, "{events}");
}

/// Another program writes the notebook while the kernel starts.
#[test]
fn a_run_whose_notebook_changed_is_not_started() {
    let fixture = RunFixture::with(&[code("open('ran0', 'w')"), code("open('ran1', 'w')")]);
    let theirs = fixture
        .content("a.ipynb")
        .replace("open('ran1', 'w')", "their = 1");
    fs::write(fixture.path("theirs"), &theirs).unwrap();
    let writing_python = create_interpreter(
        &fixture,
        &format!(
            "cp '{}' '{}'",
            fixture.path("theirs").display(),
            fixture.path("a.ipynb").display()
        ),
    );
    let before = fixture.content("a.ipynb");
    let edit = ["--edit-cell", "0", "--source", "open('ran2', 'w')"];
    for (more, code) in [(&[][..], 3), (&edit, 3), (&["-o", "b.ipynb"], 3)] {
        fs::write(fixture.path("a.ipynb"), &before).unwrap();
        let mut command = fixture.host.context.command(&[
            "run",
            "a.ipynb",
            "--backend",
            "runner",
            "--python",
            &writing_python,
        ]);
        let output = command.args(more).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?} {stderr}");
        assert!(stderr.contains("nothing was written"), "{stderr}");
        for name in ["ran0", "ran1", "ran2", "b.ipynb"] {
            assert!(!fixture.path(name).exists(), "{more:?}: {name}");
        }
        assert_eq!(fixture.content("a.ipynb"), theirs);
        // There is no progress line for a cell that did not run.
        assert!(!stderr.contains("[1/"), "{stderr}");
    }
    // A change of a cell that is not selected is no conflict.
    fs::write(fixture.path("a.ipynb"), &before).unwrap();
    let arguments = [
        "run",
        "a.ipynb",
        "--backend",
        "runner",
        "--python",
        &writing_python,
        "--cells",
        "0",
    ];
    fixture.run_command(&arguments).exits(0);
    assert!(fixture.path("ran0").exists());
    assert!(fixture.content("a.ipynb").contains("their = 1"));
}

#[test]
fn edits_for_an_older_revision_are_merged_or_refused() {
    let fixture = RunFixture::with(&[code("print(0)"), code("print(1)"), code("print(2)")]);
    let revision = fixture.host.context.revision("a.ipynb");
    fixture
        .run_command(&[
            "notebook",
            "edit",
            "a.ipynb",
            "2",
            "--source",
            "print('theirs')",
        ])
        .exits(0);
    fixture
        .run(&[
            "--edit-cell",
            "0",
            "--source",
            "print('ours')",
            "--rev",
            &revision,
        ])
        .exits(0);
    assert_eq!(fixture.outputs(), ["ours", "", ""]);
    assert!(fixture.content("a.ipynb").contains("print('theirs')"));
    let before = fixture.content("a.ipynb");
    let result = fixture
        .run(&[
            "--edit-cell",
            "2",
            "--source",
            "open('ran', 'w')",
            "--rev",
            &revision,
        ])
        .exits(3);
    assert!(
        result.stderr.contains("nothing was written"),
        "{}",
        result.stderr
    );
    assert!(!fixture.path("ran").exists());
    assert_eq!(fixture.content("a.ipynb"), before);
}

/// The index of the cell refers to an older revision. If the run is refused, the error states correctly whether
/// the edit is in the file.
#[test]
fn the_error_states_whether_the_edit_was_written() {
    let fixture = RunFixture::with(&[code("print(0)"), code("print(1)")]);
    let revision = fixture.host.context.revision("a.ipynb");
    fixture
        .run_command(&[
            "notebook",
            "insert",
            "a.ipynb",
            "0",
            "--source",
            "print('new')",
        ])
        .exits(0);
    let result = fixture.run(&[
        "--edit-cell",
        "1",
        "--source",
        "open('ran', 'w')",
        "--rev",
        &revision,
    ]);
    let edited = fixture.content("a.ipynb").contains("open('ran', 'w')");
    match result.code {
        Some(0) => assert!(edited && fixture.path("ran").exists()),
        Some(3) => {
            assert!(!fixture.path("ran").exists());
            assert_eq!(
                edited,
                result.stderr.contains("the edits are in the file"),
                "{}",
                result.stderr
            );
            assert_eq!(
                !edited,
                result.stderr.contains("nothing was written"),
                "{}",
                result.stderr
            );
        }
        other => panic!("{other:?}: {}", result.stderr),
    }
}
