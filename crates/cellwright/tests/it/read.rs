//! `read`: text view, selectors, JSON and errors.

use insta::assert_snapshot;

use crate::context::Context;

#[test]
fn a_notebook_is_text_with_markers() {
    let context = Context::with_notebook();
    assert_snapshot!(context.run(&["read", "a.ipynb"]).output_masked());
}

#[test]
fn quiet_prints_only_the_text() {
    let context = Context::with_notebook();
    let result = context.run(&["read", "a.ipynb", "--quiet"]).exits(0);
    assert_eq!(result.stderr, "");
}

#[test]
fn selectors_choose_lines_cells_and_outputs() {
    let context = Context::with_notebook();
    for (name, argument) in [
        ("lines", "a.ipynb:2-4,6"),
        ("open_end", "a.ipynb:7-"),
        ("cells", "a.ipynb:cells=1-"),
        ("id", "a.ipynb:id=first"),
        ("ids", "a.ipynb:ids:cells=0,2"),
        ("outputs", "a.ipynb:outputs"),
        ("outline", "a.ipynb:outline"),
        ("raw_lines", "a.ipynb:raw:1-3"),
    ] {
        assert_snapshot!(
            format!("selector_{name}"),
            context.run(&["read", argument]).output_masked()
        );
    }
}

#[test]
fn raw_returns_the_bytes_of_the_file() {
    let context = Context::new();
    context.file("odd.ipynb", b"\xff\xfe not a notebook at all");
    let output = context
        .command(&["read", "odd.ipynb:raw"])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"\xff\xfe not a notebook at all");
}

#[test]
fn wrong_selectors_are_errors() {
    let context = Context::with_notebook();
    for (name, argument) in [
        ("zero", "a.ipynb:0"),
        ("backwards", "a.ipynb:9-5"),
        ("nonsense", "a.ipynb:bogus"),
        ("beyond", "a.ipynb:1000"),
        ("no_such_cell", "a.ipynb:cells=3"),
        ("no_such_id", "a.ipynb:id=zzz"),
        ("clash", "a.ipynb:raw:cells=1"),
        ("scheme", "artifact://7"),
    ] {
        let result = context.run(&["read", argument]).exits(2);
        assert_snapshot!(format!("bad_selector_{name}"), result.output_masked());
    }
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let context = Context::with_notebook();
    let result = context.run(&["read", "a.ipynb:cells=2", "--json"]).exits(0);
    assert_eq!(result.stderr, "");
    let report = result.json();
    assert_eq!(report["text"], "# %% [code] cell:2\nanswer + 1.0\n");
    assert_eq!(report["total_cells"], 3);
    assert_eq!(report["revision"].as_str().map(str::len), Some(32));
}

#[test]
fn an_error_is_a_json_document() {
    let context = Context::new();
    context.file("cut.ipynb", "{\"cells\": [\n");
    let result = context.run(&["read", "cut.ipynb", "--json"]).exits(2);
    let error = &result.json()["error"];
    assert_eq!(error["kind"], "bad_notebook");
    assert_eq!((&error["line"], &error["column"]), (&2.into(), &1.into()));
    assert_eq!(error["exit_code"], 2);
    let usage = context.run(&["read", "--json", "--bogus"]).exits(2);
    assert_eq!(usage.json()["error"]["kind"], "bad_arguments");
}

#[test]
fn a_file_name_with_a_colon_has_precedence_over_a_selector() {
    let context = Context::with_notebook();
    context.file("a.ipynb:outline", crate::context::THREE_CELLS);
    let result = context.run(&["read", "a.ipynb:outline"]).exits(0);
    assert!(result.stdout.starts_with("# %% [markdown] cell:0\n"));
}

#[test]
fn invalid_cells_are_reported_and_not_changed() {
    let context = Context::new();
    context.file(
        "odd.ipynb",
        r#"{"cells":[{"cell_type":"code","metadata":{}}],"nbformat":4,"nbformat_minor":5}"#,
    );
    assert_snapshot!(context.run(&["read", "odd.ipynb"]).output_masked());
}

#[test]
fn line_ranges_beyond_the_end_are_an_error() {
    let context = Context::with_notebook();
    context.run(&["read", "a.ipynb:1000,2000"]).exits(2);
    let result = context.run(&["read", "a.ipynb:9,2000"]).exits(0);
    assert_eq!(result.stdout, "answer + 1.0\n");
    assert!(
        result.stderr.contains("2000-2000 is beyond end"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_file_whose_name_is_not_utf8_is_read() {
    use std::os::unix::ffi::OsStrExt;
    let context = Context::with_notebook();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.ipynb");
    std::fs::rename(context.path("a.ipynb"), context.dir().join(name)).unwrap();
    let output = context.command(&["read"]).arg(name).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_read_returns_a_revision_that_can_be_merged() {
    for view in [
        &["read", "a.ipynb:raw", "--json"][..],
        &["notebook", "outline", "a.ipynb", "--json"],
    ] {
        let context = Context::with_notebook();
        let revision = context.run(view).json()["revision"]
            .as_str()
            .unwrap()
            .to_owned();
        let theirs = crate::context::THREE_CELLS.replace("answer + 1.0", "theirs");
        context.file("a.ipynb", theirs);
        let arguments = [
            "notebook", "edit", "a.ipynb", "0", "--source", "x", "--rev", &revision,
        ];
        context.run(&arguments).exits(0);
    }
}
