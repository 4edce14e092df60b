//! The diff, merge and filter drivers, called by git and called directly.

use std::process::{Command, Stdio};

use insta::assert_snapshot;

use super::Repository;
use crate::context::{Context, THREE_CELLS};

/// Fails unless nbformat validates the notebook.
fn assert_valid(notebook: &str) {
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    let script = "import nbformat, sys; nbformat.validate(nbformat.reads(sys.stdin.read(), as_version=nbformat.NO_CONVERT))";
    let mut child = Command::new(python)
        .args(["-W", "error", "-c", script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), notebook.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{notebook}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Creates two branches with these versions of `a.ipynb` and merges the second into the first.
fn merge_versions(
    flags: &[&str],
    ours: &str,
    theirs: &str,
) -> (Repository, crate::context::CommandOutput) {
    let repository = Repository::with_notebook(THREE_CELLS);
    let mut arguments = vec!["git", "setup"];
    arguments.extend(flags);
    repository.cellwright(&arguments).exits(0);
    repository.commit("attributes");
    repository.git(&["checkout", "-qb", "topic"]);
    repository.write("a.ipynb", theirs);
    repository.commit("theirs");
    repository.git(&["checkout", "-q", "main"]);
    repository.write("a.ipynb", ours);
    repository.commit("ours");
    let result = repository.try_git(&["merge", "topic", "-m", "merged"]);
    (repository, result)
}

#[test]
fn a_diff_shows_changes_as_text_below_the_marker_of_their_cell() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.cellwright(&["git", "setup"]).exits(0);
    let lines: String = (0..9).fold(String::new(), |lines, n| {
        lines + &format!("    \"line {n}\\n\",\n")
    });
    let long = THREE_CELLS.replace("    \"answer = 42\\n\",\n", &lines);
    repository.write("a.ipynb", &long);
    repository.commit("long");
    let changed = long
        .replace("line 8", "line eight")
        .replace("\"execution_count\": 1", "\"execution_count\": 5")
        .replace("\"42\\n\"", "\"43\\n\"");
    repository.write("a.ipynb", changed);
    let diff = repository.git(&["diff"]);
    assert!(diff.contains("@@ # %% [code] id:first-code\n"), "{diff}");
    assert!(diff.contains("\n-line 8\n+line eight\n"), "{diff}");
    assert!(diff.contains("\n-#> 42\n+#> 43\n"), "{diff}");
    assert!(!diff.contains("execution_count"), "{diff}");
}

#[test]
fn changes_to_different_cells_merge() {
    let ours = THREE_CELLS
        .replace("# A tour", "# Our tour")
        .replace("\"Python 3\"", "\"Python 3.14\"");
    let theirs = THREE_CELLS
        .replace("answer + 1.0", "answer + 2.0")
        .replace("\"tags\": []", "\"tags\": [\"slow\"]");
    let (repository, result) = merge_versions(&[], &ours, &theirs);
    result.exits(0);
    let expected = ours
        .replace("answer + 1.0", "answer + 2.0")
        .replace("\"tags\": []", "\"tags\": [\n     \"slow\"\n    ]");
    assert_eq!(repository.read("a.ipynb"), expected);
    assert_valid(&expected);
    assert_eq!(repository.git(&["status", "--short"]), "");
}

#[test]
fn a_conflict_is_marked_in_the_cell_and_the_notebook_stays_valid() {
    let ours = THREE_CELLS.replace("answer = 42", "answer = 43");
    let theirs = THREE_CELLS
        .replace("answer = 42", "answer = 44")
        .replace("# A tour", "# Their tour");
    let (repository, result) = merge_versions(&[], &ours, &theirs);
    let result = result.exits(1);
    assert!(
        result.stderr.contains("cell 1 (id:first-code)"),
        "{}",
        result.stderr
    );
    assert_eq!(repository.git(&["status", "--short"]), "UU a.ipynb\n");
    assert_valid(&repository.read("a.ipynb"));
    assert_snapshot!(
        "git_conflict",
        repository
            .cellwright(&["read", "a.ipynb:ids:outputs"])
            .output_masked()
    );
    // The conflict is resolved in the text view.
    let text = repository.cellwright(&["read", "a.ipynb", "-q"]).stdout;
    let (start, rest) = text.split_once("<<<<<<< HEAD\n").unwrap();
    let (ours, rest) = rest.split_once("=======\n").unwrap();
    let (_, rest) = rest.split_once(">>>>>>> topic\n").unwrap();
    std::fs::write(repository.root.join("text"), format!("{start}{ours}{rest}")).unwrap();
    repository
        .cellwright(&["write", "a.ipynb", "text"])
        .exits(0);
    std::fs::remove_file(repository.root.join("text")).unwrap();
    repository.commit("settled");
    let resolved = repository.read("a.ipynb");
    assert!(resolved.contains("answer = 43") && resolved.contains("# Their tour"));
    assert_valid(&resolved);
}

#[test]
fn a_cell_that_is_deleted_and_changed_is_a_conflict_and_is_kept() {
    let (start, rest) = THREE_CELLS
        .split_once(",\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null")
        .unwrap();
    let (_, end) = rest.split_once("\n  }\n ],").unwrap();
    let deleted = format!("{start}\n ],{end}");
    let changed = THREE_CELLS.replace("answer + 1.0", "answer + 2.0");
    let (repository, result) = merge_versions(&[], &deleted, &changed);
    let result = result.exits(1);
    assert!(
        result.stderr.contains("our side deleted it"),
        "{}",
        result.stderr
    );
    assert_eq!(repository.read("a.ipynb"), changed);
}

#[test]
fn with_the_clean_filter_another_run_is_no_change_and_the_file_keeps_its_outputs() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.cellwright(&["git", "setup", "--clean"]).exits(0);
    repository.git(&["add", "--renormalize", "."]);
    repository.commit("without outputs");
    let stored = repository.git(&["cat-file", "blob", "HEAD:a.ipynb"]);
    assert_valid(&stored);
    assert_eq!(
        stored,
        THREE_CELLS
            .replace("\"execution_count\": 1", "\"execution_count\": null")
            .replace(
                "[\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"42\\n\"\n     ]\n    }\n   ]",
                "[]"
            )
    );
    assert_eq!(repository.read("a.ipynb"), THREE_CELLS);
    // After another run: other outputs, other counts, other times.
    let rerun = THREE_CELLS
        .replace("\"42\\n\"", "\"42\\n\", \"again\\n\"")
        .replace("\"execution_count\": 1", "\"execution_count\": 12")
        .replace(
            "\"tags\": []",
            "\"execution\": {\"iopub.status.idle\": \"now\"},\n    \"tags\": []",
        );
    repository.write("a.ipynb", &rerun);
    repository.try_git(&["diff", "--exit-code"]).exits(0);
    repository.git(&["add", "a.ipynb"]);
    assert_eq!(repository.git(&["status", "--short"]), "");
    assert_eq!(repository.read("a.ipynb"), rerun);
    // A changed source is a change.
    repository.write("a.ipynb", rerun.replace("answer = 42", "answer = 43"));
    repository.try_git(&["diff", "--exit-code"]).exits(1);
    let diff = repository.git(&["diff"]);
    assert!(!diff.contains("#>"), "{diff}");
}

/// `git blame` passes the text of the working tree, not the file, to the filter.
#[test]
fn blame_works_with_the_clean_filter() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.cellwright(&["git", "setup", "--clean"]).exits(0);
    repository.commit("first");
    repository.write("a.ipynb", THREE_CELLS.replace("42", "43"));
    let blame = repository.try_git(&["blame", "a.ipynb"]).exits(0);
    let is_new = |line: &&str| line.contains("Not Committed Yet");
    let new: Vec<&str> = blame.stdout.lines().filter(is_new).collect();
    assert_eq!(new.len(), 1, "{}", blame.stdout);
    assert!(new[0].contains("answer = 43"), "{}", new[0]);
    // The text itself is no notebook.
    let text = repository
        .cellwright(&["git", "textconv", "a.ipynb"])
        .exits(0);
    repository.write("text.ipynb", &text.stdout);
    let added = repository.try_git(&["add", "text.ipynb"]);
    assert_ne!(added.code, Some(0), "{}", added.stderr);
}

#[test]
fn branches_with_different_outputs_merge_with_the_clean_filter() {
    let run = |source: &str, output: &str| {
        source
            .replace("\"42\\n\"", &format!("\"{output}\\n\""))
            .replace("\"execution_count\": 1", "\"execution_count\": 8")
    };
    let ours = run(&THREE_CELLS.replace("# A tour", "# Our tour"), "ours");
    let theirs = run(
        &THREE_CELLS.replace("answer + 1.0", "answer + 2.0"),
        "theirs",
    );
    let (repository, result) = merge_versions(&["--clean"], &ours, &theirs);
    result.exits(0);
    let merged = repository.read("a.ipynb");
    assert!(merged.contains("# Our tour") && merged.contains("answer + 2.0"));
    assert!(!merged.contains("stdout"), "{merged}");
    assert_valid(&merged);
}

#[test]
fn a_notebook_that_both_branches_created_is_rebased() {
    let repository = Repository::new();
    repository.cellwright(&["git", "setup"]).exits(0);
    repository.commit("attributes");
    repository.git(&["checkout", "-qb", "topic"]);
    repository.write("a.ipynb", THREE_CELLS.replace("\"last\"", "\"other\""));
    repository.commit("theirs");
    repository.git(&["checkout", "-q", "main"]);
    repository.write("a.ipynb", THREE_CELLS);
    repository.commit("ours");
    repository.git(&["checkout", "-q", "topic"]);
    repository.git(&["rebase", "-q", "main"]);
    let merged = repository.read("a.ipynb");
    assert!(merged.contains("\"id\": \"last\"") && merged.contains("\"id\": \"other\""));
    assert_valid(&merged);
}

#[test]
fn a_committed_notebook_can_be_compared() {
    let repository = Repository::with_notebook(THREE_CELLS);
    std::fs::create_dir(repository.root.join("sub")).unwrap();
    repository.write("sub/b.ipynb", THREE_CELLS);
    repository.commit("two");
    repository.write("a.ipynb", THREE_CELLS.replace("answer = 42", "answer = 43"));
    let result = repository
        .cellwright(&["diff", "HEAD:a.ipynb", "a.ipynb"])
        .exits(1);
    assert!(
        result
            .stdout
            .starts_with("--- HEAD:a.ipynb\n+++ a.ipynb\n@@ -1,2 +1,2 @@ # %% [code] cell:1")
    );
    repository
        .cellwright(&["diff", "HEAD:a.ipynb", "HEAD:sub/b.ipynb"])
        .exits(0);
    // The path is relative to the working directory.
    let binary = env!("CARGO_BIN_EXE_cellwright");
    let mut command = repository.program(binary, &["diff", "HEAD:b.ipynb", "b.ipynb"]);
    repository
        .run(command.current_dir(repository.root.join("sub")))
        .exits(0);
}

#[test]
fn a_file_that_is_no_notebook_is_shown_but_neither_stored_nor_merged() {
    let context = Context::with_notebook();
    for content in [
        "",
        "no notebook\r\n",
        "{\"cells\": [",
        "{\"cells\": 5}",
        "\u{feff}{}",
    ] {
        context.file("x.ipynb", content);
        let result = context.run(&["git", "textconv", "x.ipynb"]).exits(0);
        assert_eq!(result.stdout, content.replace('\r', "␍"));
        assert!(
            result.stderr.contains("x.ipynb is not a notebook"),
            "{}",
            result.stderr
        );
        let arguments = ["git", "clean", "--path", "x.ipynb"];
        let result = context.run_with_input(&arguments, content);
        if content.is_empty() {
            assert_eq!(result.exits(0).stdout, "");
        } else {
            let result = result.exits(2);
            assert_eq!(result.stdout, "");
            assert!(
                result
                    .stderr
                    .contains("The outputs of x.ipynb could not be removed"),
                "{}",
                result.stderr
            );
        }
        for arguments in [
            ["git", "merge", "a.ipynb", "x.ipynb", "a.ipynb"],
            ["git", "merge", "a.ipynb", "a.ipynb", "x.ipynb"],
        ] {
            let result = context.run(&arguments).exits(1);
            assert!(
                result.stderr.contains("ours is unchanged"),
                "{}",
                result.stderr
            );
            assert_eq!(context.content("x.ipynb"), content);
            assert_eq!(context.content("a.ipynb"), THREE_CELLS);
        }
    }
    let result = context
        .run(&["git", "textconv", "a.ipynb", "--json"])
        .exits(0);
    assert!(
        result.json()["text"]
            .as_str()
            .unwrap()
            .starts_with("#: kernelspec")
    );
    context
        .run(&["git", "textconv", "x.ipynb", "--json"])
        .exits(2);
    context.run(&["git", "clean", "--json"]).exits(2);
    let result = context.run_with_input(&["git", "clean"], b"\xff\xfe\0binary");
    assert_eq!(result.exits(2).stdout, "");
}

/// A notebook of nbformat 3 with an output, or without one.
fn old_format(outputs: &str, count: &str) -> String {
    format!(
        r#"{{"metadata": {{"name": ""}}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{{"cells":
        [{{"cell_type": "code", "collapsed": false, "input": "x = 1", "language": "python", "metadata": {{}},
        "outputs": {outputs}, "prompt_number": {count}}}], "metadata": {{}}}}]}}"#
    )
}

#[test]
fn notebooks_in_an_old_format_are_shown_and_stored_without_outputs() {
    let context = Context::new();
    let output = r#"[{"output_type": "stream", "stream": "stdout", "text": "secret"}]"#;
    let old = old_format(output, "4");
    context.file("old.ipynb", &old);
    let result = context.run(&["git", "textconv", "old.ipynb"]).exits(0);
    assert!(result.stdout.contains("# %% [code]"), "{}", result.stdout);
    let cleaned = context.run_with_input(&["git", "clean"], &old).exits(0);
    assert_eq!(cleaned.stdout, old_format("[]", "null"));
    let again = context.run_with_input(&["git", "clean"], &cleaned.stdout);
    assert_eq!(again.exits(0).stdout, cleaned.stdout);
}

/// Git refuses what the filter cannot read, and stores it only on request.
#[test]
fn git_stores_nothing_that_the_filter_cannot_read() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.cellwright(&["git", "setup", "--clean"]).exits(0);
    repository.commit("setup");
    let notebook = THREE_CELLS.trim_end().replace("[]", r#"["secret"]"#);
    let twice = format!("\u{feff}\u{feff}{notebook}");
    let conflict = format!("<<<<<<< HEAD\n{notebook}\n=======\n{notebook}\n>>>>>>> topic\n");
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let deep = notebook.replacen(
        "\"metadata\": {}",
        &format!("\"metadata\": {{\"a\": {deep}}}"),
        1,
    );
    assert_ne!(deep, notebook);
    for content in [&twice, &conflict, &deep, "{}"] {
        repository.write("my own.ipynb", content);
        let refused = repository.try_git(&["add", "my own.ipynb"]).exits(128);
        assert!(
            refused
                .stderr
                .contains("The outputs of my own.ipynb could not be removed"),
            "{}",
            refused.stderr
        );
        assert!(
            refused
                .stderr
                .contains("`git -c filter.cellwright.clean=cat add 'my own.ipynb'`"),
            "{}",
            refused.stderr
        );
        assert_eq!(repository.git(&["ls-files", "my own.ipynb"]), "");
    }
    repository.git(&["-c", "filter.cellwright.clean=cat", "add", "my own.ipynb"]);
    assert_eq!(repository.git(&["show", ":my own.ipynb"]), "{}");
    // A file without the filter is no matter of the filter.
    repository.write(".git/info/attributes", "\"my own.ipynb\" -filter\n");
    repository.write("my own.ipynb", &conflict);
    repository.git(&["add", "my own.ipynb"]);
    // Files without outputs are stored as they are.
    let hash = "4d7a".repeat(16);
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize 12345\n");
    for content in ["", "\n", &pointer] {
        repository.write("plain.ipynb", content);
        repository.git(&["add", "plain.ipynb"]);
        assert_eq!(repository.git(&["show", ":plain.ipynb"]), content);
    }
}

#[test]
fn a_direct_merge_uses_the_given_labels_and_prints_json() {
    let context = Context::with_notebook();
    context.file(
        "ours.ipynb",
        THREE_CELLS.replace("answer = 42", "answer = 1"),
    );
    context.file(
        "theirs.ipynb",
        THREE_CELLS.replace("answer = 42", "answer = 2"),
    );
    let arguments = [
        "git",
        "merge",
        "--marker-size",
        "3",
        "--ours",
        "me",
        "--theirs",
        "%Y",
        "--path",
        "dir/n.ipynb",
        "a.ipynb",
        "ours.ipynb",
        "theirs.ipynb",
        "--json",
    ];
    let report = context.run(&arguments).exits(1).json();
    assert_eq!(report["clean"], false);
    assert_eq!(report["path"], "dir/n.ipynb");
    assert_eq!(report["conflicts"][0]["kind"], "conflict_source");
    assert_eq!(report["notices"][0]["kind"], "outputs_cleared");
    let merged = context.content("ours.ipynb");
    assert!(
        merged.contains("\"<<< me\\n\",\n    \"answer = 1\\n\",\n    \"===\\n\""),
        "{merged}"
    );
    assert!(merged.contains("\">>> theirs\\n\""), "{merged}");
}
