//! `read`: text view, selectors, JSON and errors.

use insta::assert_snapshot;
use serde_json::json;

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

/// A notebook with one code cell that has these outputs.
fn notebook_with_outputs(outputs: &serde_json::Value) -> String {
    let cell = json!({"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {},
        "outputs": outputs, "source": "work()"});
    json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

#[test]
fn long_outputs_keep_their_end_and_are_complete_on_request() {
    let context = Context::new();
    let mut traceback: Vec<String> = (0..200).map(|frame| format!("frame {frame}")).collect();
    traceback.push("\u{1b}[31mKeyError\u{1b}[39m: 'b'".to_owned());
    let error = json!({"output_type": "error", "ename": "KeyError", "evalue": "'b'", "traceback": traceback});
    let printed: Vec<String> = (0..300).map(|line| format!("printed {line}\n")).collect();
    let printed = printed.concat();
    let stream = json!({"output_type": "stream", "name": "stdout", "text": printed});
    context.file("a.ipynb", notebook_with_outputs(&json!([stream, error])));
    let shown = context.run(&["read", "a.ipynb:outputs"]).exits(0);
    assert!(shown.stdout.contains("\nprinted 0\n"), "{}", shown.stdout);
    assert!(shown.stdout.contains(" elided …]\n"), "{}", shown.stdout);
    let end = "\nframe 199\nKeyError: 'b'\n";
    assert!(shown.stdout.contains(end), "{}", shown.stdout);
    let notice = "notice: the output of cell 0 is shortened; `--full` shows all of it";
    assert!(shown.stderr.contains(notice), "{}", shown.stderr);
    let full = context.run(&["read", "a.ipynb:outputs", "--full"]).exits(0);
    let all = format!("{printed}frame 0\n");
    assert!(full.stdout.contains(&all) && full.stdout.contains(end));
    assert!(!full.stderr.contains("notice"), "{}", full.stderr);
}

/// The text of a display is the same while it runs and when it is read from the file.
#[test]
fn stored_outputs_have_the_text_that_run_shows() {
    let context = Context::new();
    let code = "\
from IPython.display import HTML, Markdown, Latex, display
import sys
display(HTML('<table><tr><th>a</th></tr><tr><td>1</td></tr></table>'))
display(Markdown('**bold**'), Latex('$x$'))
print('10%\\r100%')
print('to stderr', file=sys.stderr)
display({'application/x-other': [1, 2]}, raw=True)
1 / 0";
    let cell = json!({"cell_type": "code", "execution_count": null, "id": "one", "metadata": {},
        "outputs": [], "source": code});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    context.file("a.ipynb", notebook.to_string());
    let report = context.run(&["run", "a.ipynb", "--json"]).exits(1).json();
    let ran = report["cells"][0]["text"].as_str().unwrap().to_owned();
    assert!(ran.contains("| a |") && ran.contains("100%"), "{ran}");
    let read = context.run(&["read", "a.ipynb:outputs"]).exits(0).stdout;
    let (_, stored) = read.split_once("1 / 0\n").unwrap();
    let lines: Vec<&str> = stored.lines().collect();
    let fenced = lines[1..lines.len() - 1].join("\n");
    assert_eq!(fenced, ran.trim_end());
}

#[test]
fn text_files_are_read_as_they_are() {
    let context = Context::new();
    context.file("notes.md", "# Notes\n\nsecond\r\nlast");
    let read = |address: &str| context.run(&["read", address]);
    let whole = read("notes.md").exits(0);
    assert_eq!(whole.stdout, "# Notes\n\nsecond\r\nlast");
    assert_eq!(whole.stderr, "");
    assert_eq!(read("notes.md:3-9").exits(0).stdout, "second\r\nlast\n");
    let report = context.run(&["read", "notes.md:1", "--json"]).exits(0);
    assert_eq!(report.json()["view"], "file");
    assert_eq!(report.json()["total_cells"], serde_json::Value::Null);
    let beyond = read("notes.md:7").exits(2).stderr;
    assert!(
        beyond.contains("Line 7 is beyond the end of notes.md (4 lines)"),
        "{beyond}"
    );
    // JSON that is not a notebook is a text; a notebook with another name is a notebook.
    context.file("package.json", "{\"name\": 1}\n");
    assert_eq!(read("package.json").exits(0).stdout, "{\"name\": 1}\n");
    context.file("renamed.json", crate::context::THREE_CELLS);
    let renamed = read("renamed.json").exits(0).stdout;
    assert!(renamed.starts_with("# %% [markdown] cell:0"), "{renamed}");
}

#[test]
fn files_that_are_no_text_are_rejected() {
    let context = Context::new();
    context.file("image.png", b"\x89PNG\r\n\x1a\n\0\0");
    context.file("latin.txt", b"caf\xe9\n");
    let error = |address: &str| context.run(&["read", address]).exits(2).stderr;
    let image = error("image.png");
    assert!(image.contains("Not a text file: image.png"), "{image}");
    assert!(image.contains("byte 8 is zero"), "{image}");
    let latin = error("latin.txt");
    assert!(latin.contains("byte 3 is not UTF-8"), "{latin}");
    let large = std::fs::File::create(context.path("large.txt")).unwrap();
    large.set_len(65 << 20).unwrap();
    let large = error("large.txt");
    assert!(large.contains("File too large: large.txt"), "{large}");
    // Cells exist only in notebooks, and a broken notebook is not a text.
    context.file("notes.md", "# Notes\n");
    let outline = error("notes.md:outline");
    assert!(
        outline.contains("Not a Jupyter notebook: notes.md"),
        "{outline}"
    );
    context.file("broken.ipynb", "not JSON");
    let broken = error("broken.ipynb");
    assert!(
        broken.contains("Invalid JSON in notebook: broken.ipynb"),
        "{broken}"
    );
}
