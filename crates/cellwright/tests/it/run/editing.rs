//! Edits that are made together with a run: all of it happens, or nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{BACKENDS, RunFixture, code, markdown, notices, old, statuses};

/// A program to be used as interpreter, which does something first.
fn interpreter(fixture: &RunFixture, script: &str) -> String {
    let python = super::python().unwrap_or_else(|| "python3".into());
    let text = format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", python.display());
    let path = fixture.host.context.file("python", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_cell_is_edited_and_run_with_those_after_it_on_request() {
    for backend in BACKENDS {
        let cells = [
            old("x = 1\nprint(x)"),
            old("print('between')"),
            old("print('behind', globals().get('x'))"),
        ];
        let fixture = RunFixture::with(&cells);
        let answer = fixture
            .run_on(
                backend,
                &["--edit-cell", "0", "--source", "x = 2\nprint(x)", "--json"],
            )
            .exits(0)
            .json();
        assert_eq!(statuses(&answer), ["ok"]);
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
fn several_edits_are_made_in_order_and_what_they_touched_runs() {
    let fixture = RunFixture::with(&[old("print(0)"), markdown("text"), old("print(2)")]);
    let edits = json!([
        {"action": "insert", "source": "print('new')", "to": 0},
        {"action": "edit", "cell": "id:c1", "source": "other text"},
        {"action": "delete", "cell": "id:c0"},
        {"action": "edit", "cell": "2", "source": "print('edited')"},
    ]);
    fs::write(fixture.path("edits.json"), edits.to_string()).unwrap();
    let answer = fixture
        .run(&["--edits", "edits.json", "--json"])
        .exits(0)
        .json();
    assert_eq!(statuses(&answer), ["ok", "ok"]);
    assert_eq!(fixture.outputs(), ["new", "", "edited"]);
    let ids: Vec<_> = fixture.document("a.ipynb")["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["id"].clone())
        .collect();
    assert_eq!(ids[1..], [json!("c1"), json!("c2")]);
}

/// There is nothing to run, so there is no need for a kernel either.
#[test]
fn an_edit_of_what_does_not_run_is_made_without_a_kernel() {
    let fixture = RunFixture::with(&[markdown("old text"), old("print(1)")]);
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
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["notebook"]["changed"], true);
    assert_eq!(
        answer["notebook"]["revision"],
        fixture.host.context.revision("a.ipynb")
    );
    assert_eq!(notices(&answer), ["nothing_to_run"]);
    // And somewhere else, if told.
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
fn an_edit_that_does_not_fit_runs_nothing_and_writes_nothing() {
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
            let ran = fixture.run(&arguments).exits(2);
            assert!(ran.stderr.contains("error:"), "{}", ran.stderr);
            if !form.is_empty() && form[0] != "-o" {
                let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
                assert!(answer["error"]["message"].is_string(), "{answer}");
            }
        }
    }
    let ran = fixture.run(&["--edit-cell", "0"]).exits(2);
    assert!(ran.stderr.contains("needs a source"), "{}", ran.stderr);
    assert!(!fixture.path("ran").exists() && !fixture.path("b.ipynb").exists());
    assert_eq!(fixture.content("a.ipynb"), before);
}

#[test]
fn a_kernel_that_cannot_start_leaves_the_file() {
    let fixture = RunFixture::with(&[old("x = 1")]);
    let before = fixture.content("a.ipynb");
    let broken = interpreter(&fixture, "echo 'I am broken' >&2; exit 3");
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
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert_eq!(fixture.content("a.ipynb"), before, "{backend} {more:?}");
            assert!(!fixture.path("b.ipynb").exists(), "{backend} {more:?}");
        }
    }
    // A kernel that nobody knows.
    let ran = fixture.other(&[
        "run",
        "a.ipynb",
        "--kernel",
        "no-such-kernel",
        "--edit-cell",
        "0",
        "--source",
        "x",
    ]);
    ran.exits(2);
    assert_eq!(fixture.content("a.ipynb"), before);
    // All of it is told as a document, too.
    let arguments = [
        "run",
        "a.ipynb",
        "--backend",
        "runner",
        "--python",
        &broken,
        "--events",
    ];
    let events = fixture.other(&arguments).exits(2).stdout;
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

/// Somebody else writes while the kernel starts.
#[test]
fn a_cell_that_was_changed_before_it_could_run_does_not_run() {
    let fixture = RunFixture::with(&[code("open('ran0', 'w')"), code("open('ran1', 'w')")]);
    let theirs = fixture
        .content("a.ipynb")
        .replace("open('ran1', 'w')", "their = 1");
    fs::write(fixture.path("theirs"), &theirs).unwrap();
    let busy = interpreter(
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
            &busy,
        ]);
        let output = command.args(more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?} {said}");
        assert!(said.contains("nothing was written"), "{said}");
        for name in ["ran0", "ran1", "ran2", "b.ipynb"] {
            assert!(!fixture.path(name).exists(), "{more:?}: {name}");
        }
        assert_eq!(fixture.content("a.ipynb"), theirs);
        // Nobody is told of a cell that never ran.
        assert!(!said.contains("[1/"), "{said}");
    }
    // One that was not to run may be changed.
    fs::write(fixture.path("a.ipynb"), &before).unwrap();
    let arguments = [
        "run",
        "a.ipynb",
        "--backend",
        "runner",
        "--python",
        &busy,
        "--cells",
        "0",
    ];
    fixture.other(&arguments).exits(0);
    assert!(fixture.path("ran0").exists());
    assert!(fixture.content("a.ipynb").contains("their = 1"));
}

#[test]
fn edits_for_an_older_revision_are_merged_or_refused() {
    let fixture = RunFixture::with(&[code("print(0)"), code("print(1)"), code("print(2)")]);
    let revision = fixture.host.context.revision("a.ipynb");
    fixture
        .other(&[
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
    let ran = fixture
        .run(&[
            "--edit-cell",
            "2",
            "--source",
            "open('ran', 'w')",
            "--rev",
            &revision,
        ])
        .exits(3);
    assert!(ran.stderr.contains("nothing was written"), "{}", ran.stderr);
    assert!(!fixture.path("ran").exists());
    assert_eq!(fixture.content("a.ipynb"), before);
}

/// A cell that was meant by its index in another revision is another one now: if it comes to that, what is
/// said about it is right.
#[test]
fn an_edit_that_was_made_although_nothing_ran_is_told() {
    let fixture = RunFixture::with(&[code("print(0)"), code("print(1)")]);
    let revision = fixture.host.context.revision("a.ipynb");
    fixture
        .other(&[
            "notebook",
            "insert",
            "a.ipynb",
            "0",
            "--source",
            "print('new')",
        ])
        .exits(0);
    let ran = fixture.run(&[
        "--edit-cell",
        "1",
        "--source",
        "open('ran', 'w')",
        "--rev",
        &revision,
    ]);
    let edited = fixture.content("a.ipynb").contains("open('ran', 'w')");
    match ran.code {
        Some(0) => assert!(edited && fixture.path("ran").exists()),
        Some(3) => {
            assert!(!fixture.path("ran").exists());
            assert_eq!(
                edited,
                ran.stderr.contains("the edits are in the file"),
                "{}",
                ran.stderr
            );
            assert_eq!(
                !edited,
                ran.stderr.contains("nothing was written"),
                "{}",
                ran.stderr
            );
        }
        other => panic!("{other:?}: {}", ran.stderr),
    }
}
