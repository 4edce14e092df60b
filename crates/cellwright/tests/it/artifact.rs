//! `artifact`: lists, reads and searches full outputs.

use insta::assert_snapshot;
use serde_json::json;

use crate::context::Context;

/// A context in which a cell has printed 10 000 lines, stored as artifact 1.
fn with_artifact() -> Context {
    let context = Context::new();
    context
        .eval(&[
            "for i in range(1, 10_001): print('line', i, '\\x1b[31mred\\x1b[0m' if i == 7 else '')",
        ])
        .exits(0);
    context
}

#[test]
fn artifacts_are_listed_read_and_searched() {
    let context = with_artifact();
    let listed = context.run(&["artifact", "list", "--json"]).exits(0).json();
    assert_eq!(listed["artifacts"][0]["artifact"], "artifact://1");
    assert_eq!(
        context.run(&["read", "artifact://1:3-4"]).exits(0).stdout,
        "line 3 \nline 4 \n"
    );
    assert_eq!(
        context
            .run(&["artifact", "show", "1:10000-"])
            .exits(0)
            .stdout,
        "line 10000 \n"
    );
    assert_eq!(
        context
            .run(&["read", "artifact://1:2,9998+2"])
            .exits(0)
            .stdout,
        "line 2 \nline 9998 \nline 9999 \n"
    );
    let whole = context.run(&["read", "artifact://1"]).exits(0).stdout;
    assert_eq!(whole.lines().count(), 10_000);
    assert!(
        whole.contains("\u{1b}[31mred"),
        "the artifact stores the output unchanged"
    );
    let found = context.run(&[
        "artifact",
        "show",
        "1",
        "--grep",
        "999",
        "--most",
        "2",
        "--context",
        "1",
    ]);
    assert_snapshot!(found.exits(0).output_masked());
    let found = context
        .run(&["artifact", "show", "1", "--regex", "^line 1?7 ", "--json"])
        .exits(0)
        .json();
    assert_eq!(found["total"], 2);
    assert_eq!(
        found["hits"][0],
        json!({"line": 7, "text": "line 7 red", "before": [], "after": []})
    );
    let part = context
        .run(&["read", "artifact://1:1-2", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&part["text"], &part["lines"]),
        (&json!("line 1 \nline 2 \n"), &json!(10_000))
    );
}

#[test]
fn a_missing_artifact_is_an_error_that_lists_the_existing_ones() {
    let context = with_artifact();
    assert_snapshot!(
        context
            .run(&["read", "artifact://7"])
            .exits(2)
            .output_masked()
    );
    context.run(&["read", "artifact://x"]).exits(2);
    context.run(&["read", "artifact://"]).exits(2);
    context.run(&["read", "artifact://1:20000-"]).exits(2);
    context.run(&["read", "artifact://1:cells=3"]).exits(2);
    context
        .run(&["artifact", "show", "1", "--regex", "("])
        .exits(2);
    context.run(&["artifact", "path", "../1"]).exits(2);
    let empty = Context::new();
    empty.run(&["artifact", "list"]).exits(0);
    empty.run(&["artifact", "show", "1"]).exits(2);
}

#[test]
fn a_line_of_several_megabytes_is_read_completely() {
    let context = Context::new();
    context
        .eval(&["print('a')\nprint('b' * 5_000_000)\nprint('c')"])
        .exits(0);
    let line = context.run(&["read", "artifact://1:2"]).exits(0).stdout;
    assert_eq!(line.len(), 5_000_001);
    assert!(
        context
            .run(&["read", "artifact://1:2-3"])
            .exits(0)
            .stdout
            .ends_with("b\nc\n")
    );
}
