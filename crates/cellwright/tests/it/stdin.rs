//! Notebooks from stdin.

use crate::context::{Context, THREE_CELLS};

#[test]
fn verbs_that_only_read_accept_a_notebook_from_stdin() {
    let context = Context::with_notebook();
    let from_stdin = |arguments: &[&str]| context.run_with_input(arguments, THREE_CELLS);
    let expected = context.run(&["read", "a.ipynb"]).exits(0).stdout;
    assert_eq!(from_stdin(&["read", "-"]).exits(0).stdout, expected);
    let cell = from_stdin(&["read", "--", "-:cells=2"]).exits(0).stdout;
    assert_eq!(cell, "# %% [code] cell:2\nanswer + 1.0\n");
    let outline = context
        .run(&["notebook", "outline", "a.ipynb"])
        .exits(0)
        .stdout;
    assert_eq!(
        from_stdin(&["notebook", "outline", "-"]).exits(0).stdout,
        outline
    );
    context.file("b.ipynb", THREE_CELLS.replace("answer = 42", "answer = 43"));
    let diff = from_stdin(&["diff", "-", "b.ipynb"]).exits(1).stdout;
    assert!(
        diff.starts_with("--- standard input\n+++ b.ipynb\n"),
        "{diff}"
    );
    assert!(diff.contains("-answer = 42\n+answer = 43\n"), "{diff}");
    from_stdin(&["diff", "a.ipynb", "-"]).exits(0);
    from_stdin(&["diff", "-", "-"]).exits(2);
}

#[test]
fn errors_name_standard_input() {
    let context = Context::new();
    let result = context.run_with_input(&["notebook", "outline", "-"], "{\"cells\": 3}");
    let error = result.exits(2).stderr;
    assert!(error.contains("standard input"), "{error}");
    assert!(!error.contains("/standard input"), "{error}");
}

#[test]
fn verbs_that_change_a_notebook_in_place_reject_stdin() {
    let context = Context::new();
    for arguments in [
        ["edit", "-", "--old", "a", "--new", "b"].as_slice(),
        &["write", "-"],
        &["notebook", "delete", "-", "0"],
        &["notebook", "upgrade", "-"],
    ] {
        let error = context
            .run_with_input(arguments, THREE_CELLS)
            .exits(2)
            .stderr;
        assert!(
            error.contains("A notebook from standard input cannot be changed in place"),
            "{error}"
        );
    }
}

/// The arguments, and the interpreter of the tests.
fn with_python(arguments: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    if let Ok(python) = std::env::var("CELLWRIGHT_TEST_PYTHON") {
        all.extend(["--python".to_owned(), python]);
    }
    all.extend(["--backend".to_owned(), "runner".to_owned()]);
    all
}

#[test]
fn a_notebook_from_stdin_runs_in_the_current_directory() {
    let context = Context::new();
    let code = "import os; os.path.basename(os.getcwd())";
    let notebook = THREE_CELLS.replace("answer + 1.0", code);
    let run = |arguments: &[&str]| {
        let all = with_python(arguments);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        context.run_with_input(&all, &notebook)
    };
    let dir = context.dir().file_name().unwrap().to_str().unwrap();
    let result = run(&["run", "-", "-o", "-"]).exits(0);
    // The temporary file is gone when the command ends.
    assert!(
        result.stderr.contains("\nwritten: standard output\n"),
        "{}",
        result.stderr
    );
    let cells = &result.json()["cells"];
    assert_eq!(
        cells[2]["outputs"][0]["data"]["text/plain"][0],
        format!("'{dir}'"),
        "{}",
        result.stdout
    );
    run(&["run", "-", "-o", "out.ipynb", "-q"]).exits(0);
    assert!(context.content("out.ipynb").contains(dir));
    // The stored outputs of the last cell are missing.
    let checked = run(&["check", "-", "--json"]).exits(1).json();
    assert_eq!(checked["path"], "standard input");
    for arguments in [
        ["run", "-"].as_slice(),
        &["run", "-", "-o", "-", "--json"],
        &["run", "-", "-o", "out.ipynb", "--background"],
    ] {
        run(arguments).exits(2);
    }
}
