//! `diff` with revisions as people name them in git.

use super::Repository;
use crate::context::THREE_CELLS;

fn edited() -> String {
    THREE_CELLS.replace("answer = 42\\n", "answer = 43\\n")
}

#[test]
fn one_notebook_is_compared_with_its_version_in_head() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.cellwright(&["diff", "a.ipynb"]).exits(0);
    repository.write("a.ipynb", edited());
    let result = repository.cellwright(&["diff", "a.ipynb"]).exits(1);
    assert!(
        result.stdout.starts_with("--- HEAD:a.ipynb\n+++ a.ipynb\n"),
        "{}",
        result.stdout
    );
    assert!(
        result.stdout.contains("-answer = 42\n+answer = 43\n"),
        "{}",
        result.stdout
    );
    // The file decides the repository, not the current directory.
    let path = repository.root.join("a.ipynb");
    let elsewhere = repository
        .context
        .run(&["diff", path.to_str().unwrap(), "--json"])
        .exits(1);
    assert_eq!(elsewhere.json()["counts"]["changed"], 1);
}

#[test]
fn revisions_are_named_before_the_notebook() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.write("a.ipynb", edited());
    repository.commit("two");
    repository.cellwright(&["diff", "HEAD", "a.ipynb"]).exits(0);
    for arguments in [
        ["diff", "HEAD~1", "--", "a.ipynb"].as_slice(),
        &["diff", "HEAD~1", "HEAD", "a.ipynb"],
        &["diff", "HEAD~1:a.ipynb"],
    ] {
        let result = repository.cellwright(arguments).exits(1);
        assert!(
            result.stdout.contains("-answer = 42\n+answer = 43\n"),
            "{}",
            result.stdout
        );
    }
    // Two revisions can be compared without the file.
    std::fs::remove_file(repository.root.join("a.ipynb")).unwrap();
    repository
        .cellwright(&["diff", "HEAD~1", "HEAD", "a.ipynb"])
        .exits(1);
}

#[test]
fn errors_state_why_there_is_no_revision() {
    let repository = Repository::new();
    let error = |arguments: &[&str]| repository.cellwright(arguments).exits(2).stderr;
    repository.write("a.ipynb", THREE_CELLS);
    let message = error(&["diff", "a.ipynb"]);
    assert!(message.contains("no commit yet"), "{message}");
    repository.commit("one");
    repository.write("new.ipynb", THREE_CELLS);
    let message = error(&["diff", "new.ipynb"]);
    assert!(
        message.contains("new.ipynb is not in the git revision HEAD"),
        "{message}"
    );
    assert!(message.contains("git does not track the file"), "{message}");
    let message = error(&["diff", "HEAD~7", "a.ipynb"]);
    assert!(message.contains("no git revision `HEAD~7`"), "{message}");
    let message = error(&["diff", "HEAD", "missing.ipynb"]);
    assert!(
        message.contains("File not found: missing.ipynb"),
        "{message}"
    );
    repository.context.file("outside.ipynb", THREE_CELLS);
    let message = repository
        .context
        .run(&["diff", "outside.ipynb"])
        .exits(2)
        .stderr;
    assert!(
        message.contains("outside.ipynb is not in a git repository"),
        "{message}"
    );
}

#[test]
fn outputs_that_a_filter_removes_from_commits_are_no_difference() {
    let repository = Repository::new();
    repository
        .cellwright(&["git", "setup", "--clean", "-q"])
        .exits(0);
    repository.write("a.ipynb", THREE_CELLS);
    repository.commit("one");
    assert!(
        !repository
            .git(&["show", "HEAD:a.ipynb"])
            .contains("\"42\\n\"")
    );
    let result = repository.cellwright(&["diff", "a.ipynb"]).exits(0);
    assert!(
        result
            .stderr
            .contains("notice: outputs are not compared: the git filter `cellwright`"),
        "{}",
        result.stderr
    );
    repository.write("a.ipynb", edited());
    let report = repository.cellwright(&["diff", "a.ipynb", "--json"]);
    let report = report.exits(1).json();
    assert_eq!(report["counts"]["changed"], 1);
    assert_eq!(report["cells"][0]["outputs"], serde_json::json!([]));
    assert_eq!(report["notices"][0]["kind"], "outputs_ignored");
}
