//! `edit`: replaces text in the text view.

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

#[test]
fn one_occurrence_is_replaced() {
    let context = Context::with_notebook();
    let result = context.run(&[
        "edit",
        "a.ipynb",
        "--old",
        "answer = 42",
        "--new",
        "answer = 43",
    ]);
    assert_snapshot!(result.exits(0).output_masked());
    let expected = THREE_CELLS.replace("answer = 42\\n", "answer = 43\\n");
    assert_eq!(context.content("a.ipynb"), expected);
}

#[test]
fn several_occurrences_need_the_flag_all() {
    let context = Context::with_notebook();
    let result = context.run(&["edit", "a.ipynb", "--old", "answer", "--new", "reply"]);
    assert_snapshot!("several_matches", result.exits(2).output_masked());
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    context
        .run(&[
            "edit", "a.ipynb", "--old", "answer", "--new", "reply", "--all",
        ])
        .exits(0);
    let expected = THREE_CELLS.replace("answer", "reply");
    assert_eq!(context.content("a.ipynb"), expected);
}

#[test]
fn no_occurrence_is_an_error() {
    let context = Context::with_notebook();
    let result = context.run(&["edit", "a.ipynb", "--old", "missing", "--new", "x"]);
    assert_snapshot!("no_match", result.exits(2).output_masked());
    for (old, new) in [("", "x"), ("answer = 42", "answer = 42")] {
        context
            .run(&["edit", "a.ipynb", "--old", old, "--new", new])
            .exits(2);
    }
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn a_missing_text_names_similar_text_and_columns_of_a_diff() {
    let context = Context::with_notebook();
    let result = context.run(&["edit", "a.ipynb", "--old", "Answer=42", "--new", "x"]);
    assert_snapshot!("similar_text", result.exits(2).output_masked());
    let old = " # %% [code] id:first-code\n-answer = 41\n+answer = 42";
    let result = context.run(&["edit", "a.ipynb", "--old", old, "--new", "x"]);
    assert_snapshot!("diff_columns", result.exits(2).output_masked());
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn markers_of_diffs_are_found() {
    for marker in ["# %% [code] id:last", "# %% [code] cell:2 id:last"] {
        let context = Context::with_notebook();
        let old = format!("{marker}\nanswer");
        let new = format!("{marker}\nreply");
        context
            .run(&["edit", "a.ipynb", "--old", &old, "--new", &new])
            .exits(0);
        let expected = THREE_CELLS.replace("answer + 1.0", "reply + 1.0");
        assert_eq!(context.content("a.ipynb"), expected, "{marker}");
    }
}

#[test]
fn an_edit_may_span_markers() {
    let context = Context::with_notebook();
    let old = "print(answer)\n# %% [code] cell:2\n";
    let result = context
        .run(&["edit", "a.ipynb", "--old", old, "--new", ""])
        .exits(0);
    assert!(result.stdout.contains("1 removed"), "{}", result.stdout);
    let text = context.run(&["read", "a.ipynb:cells=1"]).stdout;
    assert_eq!(text, "# %% [code] cell:1\nanswer = 42\nanswer + 1.0\n");
}

#[test]
fn texts_can_be_read_from_files() {
    let context = Context::with_notebook();
    context.file("old.txt", "answer = 42\nprint(answer)\n");
    let arguments = [
        "edit",
        "a.ipynb",
        "--old-file",
        "old.txt",
        "--new-file",
        "-",
    ];
    context.run_with_input(&arguments, "pass\n").exits(0);
    let text = context.run(&["read", "a.ipynb:cells=1"]).stdout;
    assert_eq!(text, "# %% [code] cell:1\npass\n");
}

#[test]
fn text_may_begin_with_a_dash() {
    let context = Context::with_notebook();
    context
        .run(&[
            "edit",
            "a.ipynb",
            "--old",
            "answer + 1.0",
            "--new",
            "-answer",
        ])
        .exits(0);
    let result = context
        .run(&["edit", "a.ipynb", "--old", "-answer", "--new", "--x"])
        .exits(0);
    assert_eq!(result.code, Some(0));
}

#[test]
fn markers_are_edited_only_if_the_text_is_a_marker() {
    let context = Context::with_notebook();
    // `code` occurs in two markers and `cell` in all of them; one source contains `cell`, none contains `code`.
    let arguments = ["edit", "a.ipynb", "--old", "cell", "--new", "box", "--all"];
    context.run(&arguments).exits(0);
    let expected = THREE_CELLS.replace("of three cells", "of three boxs");
    assert_eq!(context.content("a.ipynb"), expected);
    context
        .run(&["edit", "a.ipynb", "--old", "code", "--new", "x", "--all"])
        .exits(2);
    // Text that is a marker replaces the marker.
    let arguments = [
        "edit",
        "a.ipynb",
        "--old",
        "# %% [code] cell:2",
        "--new",
        "# %% [raw] cell:2",
    ];
    context.run(&arguments).exits(0);
    assert!(
        context
            .run(&["read", "a.ipynb"])
            .stdout
            .contains("# %% [raw] cell:2\n")
    );
}

#[test]
fn both_texts_cannot_be_read_from_stdin() {
    let context = Context::with_notebook();
    let arguments = [
        "edit",
        "a.ipynb",
        "--old-file",
        "-",
        "--new-file",
        "-",
        "--all",
    ];
    context.run_with_input(&arguments, "answer").exits(2);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn words_patterns_and_kinds_of_cells_limit_a_replacement() {
    let context = Context::with_notebook();
    let edit = |arguments: &[&str]| {
        let all = [&["edit", "a.ipynb"], arguments].concat();
        context.run(&all)
    };
    edit(&[
        "--word", "--old", "answer", "--new", "result", "--all", "--code",
    ])
    .exits(0);
    edit(&[
        "--regex",
        "--old",
        r"^(\w+) = (\d+)$",
        "--new",
        "$1 = $2 * 2",
    ])
    .exits(0);
    edit(&["--markdown", "--old", "three", "--new", "3"]).exits(0);
    let text = context.run(&["read", "a.ipynb"]).exits(0).stdout;
    assert!(
        text.contains("result = 42 * 2\nprint(result)\n") && text.contains("\nof 3 cells\n"),
        "{text}"
    );
    let content = context.content("a.ipynb");
    let error = |arguments: &[&str]| edit(arguments).exits(2).stderr;
    let invalid = error(&["--regex", "--old", "(", "--new", ""]);
    assert!(
        invalid.contains("not a valid regular expression"),
        "{invalid}"
    );
    let group = error(&["--regex", "--old", "42", "--new", "$1"]);
    assert!(group.contains("has no group `1`"), "{group}");
    let several = error(&["--word", "--old", "result", "--new", "x"]);
    assert!(several.contains("occurs 3 times"), "{several}");
    assert!(
        several.contains("cell 1, line 1: result = 42 * 2"),
        "{several}"
    );
    // Similar texts are listed with what differs.
    let nearest = error(&["--old", "Print( result )", "--new", "x"]);
    assert!(
        nearest
            .contains("similar text: cell 1, line 2: print(result) (case and white space differ)"),
        "{nearest}"
    );
    let nearest = error(&["--old", "print(results)", "--new", "x"]);
    assert!(
        nearest.contains("similar text: cell 1, line 2: print(result)\n"),
        "{nearest}"
    );
    assert_eq!(context.content("a.ipynb"), content);
}
