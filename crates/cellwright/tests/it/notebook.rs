//! `notebook`: operations on one cell, outline and upgrade.

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

/// Runs `notebook` with these arguments. Returns its output and the text view afterwards.
fn masked_output(context: &Context, arguments: &[&str]) -> String {
    let mut all = vec!["notebook"];
    all.extend(arguments);
    let result = context.run(&all);
    let text = context.run(&["read", "a.ipynb:ids", "--quiet"]);
    format!("{}--- text\n{}", result.output_masked(), text.stdout)
}

#[test]
fn each_operation_prints_its_change() {
    for (name, arguments) in [
        (
            "edit",
            &["edit", "a.ipynb", "id:first", "--source", "x = 1"][..],
        ),
        ("insert_end", &["insert", "a.ipynb", "--source", "x = 1\n"]),
        (
            "insert_at",
            &["insert", "a.ipynb", "0", "--type", "raw", "--source", "é"],
        ),
        (
            "insert_after",
            &["insert", "a.ipynb", "--after", "0", "--source", "x"],
        ),
        (
            "insert_before",
            &["insert", "a.ipynb", "--before", "id:last", "--source", "x"],
        ),
        ("delete", &["delete", "a.ipynb", "1"]),
        ("move_to", &["move", "a.ipynb", "0", "--to", "2"]),
        (
            "move_after",
            &["move", "a.ipynb", "id:last", "--after", "0"],
        ),
        ("type", &["type", "a.ipynb", "1", "markdown"]),
        ("clear_one", &["clear", "a.ipynb", "1"]),
        ("clear_all", &["clear", "a.ipynb"]),
    ] {
        let context = Context::with_notebook();
        assert_snapshot!(
            format!("operation_{name}"),
            masked_output(&context, arguments)
        );
    }
}

#[test]
fn wrong_arguments_are_errors_and_change_nothing() {
    for (name, arguments) in [
        (
            "out_of_range",
            &["edit", "a.ipynb", "3", "--source", "x"][..],
        ),
        (
            "insert_out_of_range",
            &["insert", "a.ipynb", "4", "--source", "x"],
        ),
        ("no_content", &["edit", "a.ipynb", "1"]),
        ("unknown_id", &["delete", "a.ipynb", "id:nope"]),
        ("not_a_cell", &["delete", "a.ipynb", "first"]),
        ("not_a_type", &["type", "a.ipynb", "1", "sql"]),
        ("no_target", &["move", "a.ipynb", "1"]),
        ("missing_file", &["insert", "b.ipynb", "--source", "x"]),
    ] {
        let context = Context::with_notebook();
        let mut all = vec!["notebook"];
        all.extend(arguments);
        let result = context.run(&all).exits(2);
        assert_snapshot!(format!("mistake_{name}"), result.output_masked());
        assert_eq!(context.content("a.ipynb"), THREE_CELLS, "{name}");
    }
}

#[test]
fn the_json_report_has_every_field() {
    let context = Context::with_notebook();
    let arguments = [
        "notebook", "insert", "a.ipynb", "1", "--source", "x", "--json",
    ];
    let report = context.run(&arguments).exits(0).json();
    assert_eq!(report["action"], "insert");
    assert_eq!(report["index"], 1);
    assert_eq!(report["cell_type"], "code");
    assert_eq!(report["source"], "x");
    assert_eq!(report["total_cells"], 4);
    assert_eq!(report["changed"], true);
    assert_eq!(report["revision"], context.revision("a.ipynb"));
    assert_eq!(report["id"].as_str().map(str::len), Some(8));
    assert!(report["diff"].as_str().unwrap().contains("+x\n"));
}

#[test]
fn a_change_of_the_type_adds_and_removes_fields() {
    let context = Context::with_notebook();
    context
        .run(&["notebook", "type", "a.ipynb", "1", "markdown"])
        .exits(0);
    assert_snapshot!("code_to_markdown", context.content("a.ipynb"));
    context
        .run(&["notebook", "type", "a.ipynb", "1", "--type", "code"])
        .exits(0);
    assert_snapshot!("markdown_to_code", context.content("a.ipynb"));
}

#[test]
fn the_outline_has_a_line_for_each_cell() {
    let context = Context::with_notebook();
    assert_snapshot!(
        "outline",
        context
            .run(&["notebook", "outline", "a.ipynb"])
            .output_masked()
    );
    let result = context
        .run(&["notebook", "outline", "a.ipynb", "--json"])
        .exits(0);
    let report = result.json();
    assert_eq!(report["cells"][0]["heading"], 1);
    assert_eq!(report["cells"][1]["outputs"][0]["what"][0], "stdout");
    assert_eq!(report["nbformat"], "4.5");
}

#[test]
fn an_old_notebook_is_upgraded_on_request() {
    let context = Context::new();
    let old = r#"{
 "metadata": {"name": "old"},
 "nbformat": 3,
 "nbformat_minor": 0,
 "worksheets": [{"cells": [
  {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Old"]},
  {"cell_type": "code", "collapsed": false, "input": ["1+1"], "language": "python",
   "metadata": {}, "outputs": [{"output_type": "pyout", "prompt_number": 3, "text": ["2"]}],
   "prompt_number": 3}
 ], "metadata": {}}]
}
"#;
    context.file("old.ipynb", old);
    let refused = context.run(&["notebook", "clear", "old.ipynb"]).exits(2);
    assert_snapshot!("old_format", refused.output_masked());
    assert_eq!(context.content("old.ipynb"), old);
    let result = context.run(&["notebook", "upgrade", "old.ipynb"]).exits(0);
    assert_snapshot!("upgraded_output", result.output_masked());
    assert_snapshot!("upgraded_file", context.content("old.ipynb"));
    let again = context.run(&["notebook", "upgrade", "old.ipynb"]).exits(0);
    assert!(again.stdout.contains("nothing written"));
}

/// Lines of nbformat 2, and of some files in nbformat 3, have no line breaks.
#[test]
fn an_upgrade_keeps_the_lines_of_sources_and_outputs() {
    for major in [2, 3] {
        let context = Context::new();
        let cell = r#"{"cell_type":"code","input":["x = 1","print(x)"],"language":"python",
            "outputs":[{"output_type":"stream","stream":"stdout","text":["one","two"]}]}"#;
        context.file(
            "old.ipynb",
            format!(
                r#"{{"metadata":{{}},"nbformat":{major},"worksheets":[{{"cells":[{cell}]}}]}}"#
            ),
        );
        context.run(&["notebook", "upgrade", "old.ipynb"]).exits(0);
        let text = context.run(&["read", "old.ipynb:outputs"]).exits(0).stdout;
        assert!(text.contains("\nx = 1\nprint(x)\n"), "{text}");
        assert!(text.contains("\none\ntwo\n"), "{text}");
    }
}

#[test]
fn missing_ids_are_added_on_request_and_nothing_else_changes() {
    let context = Context::new();
    let without = THREE_CELLS
        .replace("   \"id\": \"title\",\n", "")
        .replace("   \"id\": \"last\",\n", "")
        .replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
    context.file("a.ipynb", &without);
    context.run(&["notebook", "upgrade", "a.ipynb"]).exits(0);
    let upgraded = context.content("a.ipynb");
    let lines_added: Vec<&str> = upgraded
        .lines()
        .filter(|line| line.trim_start().starts_with("\"id\""))
        .collect();
    assert_eq!(lines_added.len(), 3);
    let restored: String = upgraded
        .split_inclusive('\n')
        .filter(|line| !line.contains("\"id\"") || line.contains("first-code"))
        .collect();
    assert_eq!(restored.replace("_minor\": 5", "_minor\": 4"), without);
}

#[test]
fn an_old_notebook_that_cannot_be_upgraded_is_not_changed() {
    for cell in [
        r#"{"cell_type":"code","input":["a",1],"language":"python","metadata":{},"outputs":[]}"#,
        r#"{"cell_type":"code","input":7,"language":"python","metadata":{},"outputs":[]}"#,
        r#"{"cell_type":"weird","source":"x","metadata":{}}"#,
        "7",
    ] {
        let context = Context::new();
        let old = format!(
            r#"{{"metadata":{{}},"nbformat":3,"nbformat_minor":0,"worksheets":[{{"cells":[{cell}]}}]}}"#
        );
        context.file("old.ipynb", &old);
        let result = context.run(&["notebook", "upgrade", "old.ipynb"]).exits(2);
        assert!(
            result.stderr.contains("Invalid notebook cell 0"),
            "{}",
            result.stderr
        );
        assert_eq!(context.content("old.ipynb"), old);
    }
}

#[test]
fn a_change_of_the_type_reports_dropped_fields() {
    let context = Context::new();
    let cell = r#"{"cell_type":"markdown","metadata":{},"attachments":{"a.png":{}},"source":"x"}"#;
    context.file(
        "a.ipynb",
        format!(r#"{{"cells":[{cell}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#),
    );
    let result = context
        .run(&["notebook", "type", "a.ipynb", "0", "code"])
        .exits(0);
    assert!(result.stderr.contains("attachments"), "{}", result.stderr);
}

#[test]
fn long_ids_and_ids_with_line_breaks_fit_into_the_outline() {
    let context = Context::new();
    let long = "x".repeat(80);
    context.file(
        "a.ipynb",
        THREE_CELLS
            .replace("first-code", &long)
            .replace("\"last\"", "\"a\\nb\""),
    );
    assert_snapshot!(
        "odd_ids",
        context
            .run(&["notebook", "outline", "a.ipynb"])
            .output_masked()
    );
}

#[test]
fn an_old_notebook_with_invalid_members_keeps_its_cells() {
    let context = Context::new();
    let cell = r#"{"cell_type":"heading","level":18446744073709551615,"source":"x"}"#;
    context.file(
        "a.ipynb",
        format!(r#"{{"nbformat":3,"cells":[],"worksheets":[{{"cells":[{cell}]}}]}}"#),
    );
    context.run(&["notebook", "upgrade", "a.ipynb"]).exits(0);
    let text = context.run(&["read", "a.ipynb"]).exits(0).stdout;
    assert_eq!(text, "# %% [markdown] cell:0\n###### x\n");
}

#[test]
fn cells_are_named_by_their_ids_in_every_spelling() {
    for cell in [
        "last", "id:la", "id=la", ":id=la", "2", "cell:2", ":cells=2",
    ] {
        let context = Context::with_notebook();
        let arguments = ["notebook", "edit", "a.ipynb", cell, "--source", "named = 1"];
        let report = context
            .run(&[&arguments[..], &["--json"]].concat())
            .exits(0);
        assert_eq!(report.json()["id"], "last", "{cell}");
    }
    // Digits are an index unless a prefix states that they are an id.
    let context = Context::new();
    context.file("a.ipynb", THREE_CELLS.replace("\"last\"", "\"10\""));
    context
        .run(&["notebook", "delete", "a.ipynb", "10"])
        .exits(2);
    let deleted = context.run(&["notebook", "delete", "a.ipynb", "id:10", "--json"]);
    assert_eq!(deleted.exits(0).json()["index"], 2);
    for selector in ["id:title", "id=title", "cells=title", "cells:title"] {
        let text = context.run(&["read", &format!("a.ipynb:{selector}")]);
        assert!(text.exits(0).stdout.starts_with("# %% [markdown] cell:0\n"));
    }
}
