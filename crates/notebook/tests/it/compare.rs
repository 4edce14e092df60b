//! Comparison of two notebooks, textconv, and removal of outputs.

use cellwright_notebook::edit::{CellPosition, Operation};
use cellwright_notebook::{
    CellKind, Cells, Comparison, Notebook, Scope, compare, compose, render_textconv, strip_file,
    strip_outputs,
};
use proptest::prelude::*;

use crate::generate::{Generated, layout, notebook};
use crate::support::json::{Document, Value};
use crate::support::relayout::{Layout, Order, relayout};
use crate::support::{cases, lossy};

const BASE: &str = r#"{
 "cells": [
  {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["Title\n", "\n", "text"]},
  {"cell_type": "code", "execution_count": 3, "id": "plot",
   "metadata": {"execution": {"iopub.status.busy": "2026"}, "tags": ["slow", "plots"]},
   "outputs": [
    {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
    {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}
   ],
   "source": "plot()"},
  {"cell_type": "code", "execution_count": null, "id": "last", "metadata": {}, "outputs": [], "source": "last"}
 ],
 "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

fn parse(text: &str) -> Notebook {
    Notebook::parse(text).unwrap()
}

/// `BASE` with one piece of text replaced by another.
fn with(old: &str, new: &str) -> Comparison {
    assert!(BASE.contains(old));
    compare(&parse(BASE), &parse(&BASE.replace(old, new)), Scope::All)
}

#[test]
fn source_difference_is_shown_by_line() {
    let found = with("\"text\"]", "\"words\"]");
    assert_eq!(found.members, []);
    let [cell] = &found.cells[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (cell.old, cell.new, cell.id.as_deref()),
        (Some(0), Some(0), Some("title"))
    );
    let [hunk] = &cell.source[..] else {
        panic!("{found:?}")
    };
    assert_eq!(hunk.header, "@@ -1,3 +1,3 @@");
    assert_eq!(hunk.lines, " Title\n \n-text\n+words\n");
    assert_eq!((&cell.outputs, &cell.members), (&vec![], &vec![]));
}

#[test]
fn outputs_are_compared_one_by_one() {
    let found = with("\"AAAA\"", "\"AAAB\"");
    let cell = &found.cells[0];
    let [output] = &cell.outputs[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        output.old.as_ref().unwrap().labels,
        ["image/png", "text/plain"]
    );
    assert_eq!(output.new.as_ref().unwrap().kind, "display_data");
    // Same length, but the difference is detected.
    assert!(
        cell.output_text[0]
            .lines
            .contains("\n-[image/png, 3 bytes, ")
    );
    assert!(
        cell.output_text[0]
            .lines
            .contains("\n+[image/png, 3 bytes, ")
    );
    assert!(cell.source.is_empty());

    // A stream in another shape has the same content.
    assert!(with(r#"["one\n", "two\n"]"#, r#""one\ntwo\n""#).is_same());
    let counts = with("\"execution_count\": 3", "\"execution_count\": 4");
    assert_eq!(counts.cells[0].execution_counts, Some([Some(3), Some(4)]));
    assert_eq!(counts.cells[0].outputs, []);

    let gone = with(
        r#"    {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},"#,
        "",
    );
    let [output] = &gone.cells[0].outputs[..] else {
        panic!("{gone:?}")
    };
    assert_eq!(output.old.as_ref().unwrap().labels, ["stdout"]);
    assert_eq!(output.new, None);
}

#[test]
fn metadata_difference_names_the_value() {
    let found = with("\"Python 3\"", "\"Python 3.14\"");
    let [member] = &found.members[..] else {
        panic!("{found:?}")
    };
    assert_eq!(member.name, "metadata.kernelspec.display_name");
    assert_eq!(member.old.as_deref(), Some("\"Python 3\""));
    assert_eq!(member.new.as_deref(), Some("\"Python 3.14\""));
    let found = with(r#", "tags": ["slow", "plots"]"#, "");
    let [member] = &found.cells[0].members[..] else {
        panic!("{found:?}")
    };
    assert_eq!(member.name, "metadata.tags");
    assert_eq!(member.old.as_deref(), Some(r#"["slow", "plots"]"#));
    assert_eq!(member.new, None);
    // With `Scope::Sources` none of this is a difference.
    let new = parse(&BASE.replace("slow", "fast").replace("AAAA", "AAAB"));
    assert!(compare(&parse(BASE), &new, Scope::Sources).is_same());
}

#[test]
fn added_removed_and_moved_cells_are_reported() {
    let old = parse(BASE);
    let insert = Operation::Insert {
        position: CellPosition::At(0),
        kind: CellKind::Raw,
        source: "new".to_owned(),
        tags: Vec::new(),
    };
    let mut plan = insert.draft(&old).unwrap().plan;
    plan.slots.swap(1, 3);
    plan.slots.remove(2);
    let new = parse(&lossy(&compose(&old, &plan).to_bytes()));
    let found = compare(&old, &new, Scope::All);
    let reported: Vec<_> = found
        .cells
        .iter()
        .map(|cell| (cell.old, cell.new, cell.moved))
        .collect();
    // The new cell, one of the two swapped cells, and the cell that followed the title.
    let expected = [
        (None, Some(0), false),
        (Some(2), Some(1), true),
        (Some(1), None, false),
    ];
    assert_eq!(reported, expected);
    assert_eq!(found.cells[0].source[0].lines, "+new\n");
    assert_eq!(found.cells[2].source[0].lines, "-plot()\n");
}

#[test]
fn textconv_shows_sources_outputs_and_tags() {
    let expected = "\
#: kernelspec: python3
# %% [markdown] id:title
Title

text
# %% [code] id:plot
#: tags: slow, plots
plot()
#> one
#> two
#> [image/png, 3 bytes, FINGER]
#> <Figure>
# %% [code] id:last
last
";
    let text = render_textconv(&parse(BASE), Scope::All);
    let at = text.find("bytes, ").unwrap() + 7;
    let text = text.replace(&text[at..at + 8], "FINGER");
    assert_eq!(text, expected);
    let (expected_sources, outputs): (Vec<&str>, Vec<&str>) =
        expected.lines().partition(|line| !line.starts_with("#> "));
    assert_eq!(outputs.len(), 4);
    let sources = render_textconv(&parse(BASE), Scope::Sources);
    assert_eq!(sources.lines().collect::<Vec<_>>(), expected_sources);
    let long = vec!["line\\n"; 100].concat();
    let text = render_textconv(&parse(&BASE.replace("one\\n", &long)), Scope::All);
    assert!(text.contains("#> line\n#> [… 63 more lines, "), "{text}");
    assert_eq!(render_textconv(&Notebook::empty(), Scope::All), "");
}

#[test]
fn strip_removes_only_run_results() {
    let stripped = strip_outputs(&parse(BASE)).into_owned();
    let expected = BASE
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace(r#""execution": {"iopub.status.busy": "2026"}, "#, "");
    let start = expected.find("\"outputs\": [\n").unwrap() + 11;
    let end = expected.find("\n   ],\n   \"source\": \"plot()\"").unwrap() + 5;
    let expected = format!("{}[]{}", &expected[..start], &expected[end..]);
    assert_eq!(lossy(&stripped), expected);
}

/// A new run, or a viewer, must not make a difference; outputs that the author wants to keep stay.
#[test]
fn strip_obeys_metadata() {
    let output =
        r#"{"data": {}, "execution_count": 3, "metadata": {}, "output_type": "execute_result"}"#;
    let notebook = |metadata: &str, cell: &str| {
        format!(
            r#"{{"cells": [{{"cell_type": "code", "execution_count": 3, "metadata": {cell}, "outputs": [{output}], "source": "x"}}], "metadata": {metadata}, "nbformat": 4, "nbformat_minor": 4}}"#
        )
    };
    let kept_output = output.replace('3', "null");
    for (metadata, cell, kept_metadata, kept_cell, is_kept) in [
        (
            "{}",
            r#"{"tags": ["keep_output"]}"#,
            "{}",
            r#"{"tags": ["keep_output"]}"#,
            true,
        ),
        (
            "{}",
            r#"{"keep_output": true}"#,
            "{}",
            r#"{"keep_output": true}"#,
            true,
        ),
        (
            "{}",
            r#"{"init_cell": true}"#,
            "{}",
            r#"{"init_cell": true}"#,
            true,
        ),
        (
            r#"{"keep_output": true}"#,
            "{}",
            r#"{"keep_output": true}"#,
            "{}",
            true,
        ),
        (
            r#"{"keep_output": true}"#,
            r#"{"keep_output": false}"#,
            r#"{"keep_output": true}"#,
            r#"{"keep_output": false}"#,
            false,
        ),
        (
            r#"{"widgets": {"a": 1}, "x": 1}"#,
            r#"{"ExecuteTime": {"start_time": 1}, "a": 1, "collapsed": true, "scrolled": false}"#,
            r#"{"x": 1}"#,
            r#"{"a": 1}"#,
            false,
        ),
    ] {
        let stripped = strip_outputs(&parse(&notebook(metadata, cell))).into_owned();
        let outputs = if is_kept {
            format!("[{kept_output}]")
        } else {
            "[]".to_owned()
        };
        let expected = notebook(kept_metadata, kept_cell)
            .replace(
                "\"execution_count\": 3, \"metadata\": {\"",
                "\"execution_count\": null, \"metadata\": {\"",
            )
            .replace(
                "\"execution_count\": 3, \"metadata\": {}, \"outputs\"",
                "\"execution_count\": null, \"metadata\": {}, \"outputs\"",
            )
            .replace(&format!("[{output}]"), &outputs);
        assert_eq!(lossy(&stripped), expected);
    }
}

/// Readers ignore some outputs, but a commit would contain them.
#[test]
fn strip_finds_outputs_in_unusual_places() {
    let cell = |outputs: &str| {
        format!(
            r#"{{"cell_type": "code", "execution_count": null, "metadata": {{}}, {outputs}, "source": "x"}}"#
        )
    };
    let format_4 = r#""metadata": {}, "nbformat": 4, "nbformat_minor": 4"#;
    for (secret, stripped) in [
        (
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""outputs": ["secret"], "outputs": []"#)
            ),
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""outputs": [], "outputs": []"#)
            ),
        ),
        (
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""output\u0073": ["secret"]"#)
            ),
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""output\u0073": []"#)
            ),
        ),
        (
            format!(
                r#"{{"cells": [{}], "cells": [], {format_4}}}"#,
                cell(r#""outputs": ["secret"]"#)
            ),
            format!(
                r#"{{"cells": [{}], "cells": [], {format_4}}}"#,
                cell(r#""outputs": []"#)
            ),
        ),
        (
            format!(
                r#"{{"cells": [], "worksheets": [{{"cells": [{}]}}], {format_4}}}"#,
                cell(r#""outputs": ["secret"]"#)
            ),
            format!(
                r#"{{"cells": [], "worksheets": [{{"cells": [{}]}}], {format_4}}}"#,
                cell(r#""outputs": []"#)
            ),
        ),
        (
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""outputs": ["secret"]"#).replace("code", "markdown")
            ),
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""outputs": []"#).replace("code", "markdown")
            ),
        ),
        (
            format!(
                "\u{feff}{{\"cells\": [{}], \"nbformat\": 1}}",
                cell(r#""outputs": ["secret"]"#)
            ),
            format!(
                "\u{feff}{{\"cells\": [{}], \"nbformat\": 1}}",
                cell(r#""outputs": []"#)
            ),
        ),
        (
            r#"{"cells": [{"cell_type": "code", "output": "secret"}], "nbformat": 1}"#.to_owned(),
            r#"{"cells": [{"cell_type": "code", "output": null}], "nbformat": 1}"#.to_owned(),
        ),
        (
            r#"{"metadata": {"widgets": "secret", "a": 1, "widgets": 2}, "cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}"#.to_owned(),
            r#"{"metadata": {"a": 1}, "cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}"#.to_owned(),
        ),
        (
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""metadata": {"ExecuteTime": "secret"}, "outputs": [], "metadata": {}"#)
            ),
            format!(
                r#"{{"cells": [{}], {format_4}}}"#,
                cell(r#""metadata": {}, "outputs": [], "metadata": {}"#)
            ),
        ),
    ] {
        let found = strip_file(secret.as_bytes()).unwrap();
        assert_eq!(lossy(&found), stripped);
        assert_eq!(
            strip_file(stripped.as_bytes()).unwrap(),
            stripped.as_bytes()
        );
    }
    for text in [
        "",
        "[]",
        "{}",
        r#"{"cells": [], "nbformat": 5}"#,
        r#"{"cells": [1], "nbformat": 4}"#,
        r#"{"worksheets": {"cells": [{"outputs": [1]}]}, "nbformat": 3}"#,
        r#"{"worksheets": [[{"outputs": [1]}]], "nbformat": 3}"#,
        r#"{"worksheets": [{"cells": {"a": {"outputs": [1]}}}], "nbformat": 3}"#,
    ] {
        strip_file(text.as_bytes()).unwrap_err();
    }
}

fn with_layout(bytes: &[u8], layout: &Layout) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap();
    let layout = Layout {
        order: Order::AsIs,
        ..layout.clone()
    };
    relayout(text.trim_start_matches('\u{feff}'), &layout)
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn layout_is_no_difference(Generated(bytes) in notebook(), layout in layout()) {
        let old = Notebook::parse(&bytes[..]).unwrap();
        let new = Notebook::parse(with_layout(&bytes, &layout)).unwrap();
        prop_assert_eq!(compare(&old, &new, Scope::All), Comparison::default());
        prop_assert_eq!(render_textconv(&old, Scope::All), render_textconv(&new, Scope::All));
    }

    #[test]
    fn any_two_notebooks_can_be_compared(Generated(old) in notebook(), Generated(new) in notebook()) {
        let (old, new) = (Notebook::parse(old).unwrap(), Notebook::parse(new).unwrap());
        let found = compare(&old, &new, Scope::Sources);
        // Every source that only one notebook has is reported.
        let sources = |notebook: &Notebook| -> Vec<String> {
            (0..notebook.count()).map(|cell| format!("{} {}", notebook.kind(cell), notebook.source(cell))).collect()
        };
        let (old_sources, new_sources) = (sources(&old), sources(&new));
        for (index, source) in old_sources.iter().enumerate() {
            let is_told = found.cells.iter().any(|cell| cell.old == Some(index));
            prop_assert!(is_told || new_sources.contains(source));
        }
        for (index, source) in new_sources.iter().enumerate() {
            let is_told = found.cells.iter().any(|cell| cell.new == Some(index));
            prop_assert!(is_told || old_sources.contains(source));
        }
        prop_assert_eq!(found.is_same(), old_sources == new_sources);
    }

    #[test]
    fn strip_is_complete_and_idempotent(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let stripped = strip_outputs(&notebook).into_owned();
        let document = Document::read(&stripped);
        for cell in document.cells() {
            prop_assert!(cell.get("outputs").is_none_or(|outputs| outputs.elements().is_empty()));
            let count = cell.get("execution_count");
            prop_assert!(count.is_none_or(|count| count.raw(&stripped) == b"null"));
        }
        let again = Notebook::parse(&stripped[..]).unwrap();
        prop_assert_eq!(lossy(&strip_outputs(&again)), lossy(&stripped));
        let found = compare(&notebook, &again, Scope::Sources);
        prop_assert!(found.is_same());
        // Nothing to remove, so nothing changed.
        let original = Document::read(&bytes);
        let is_clean = original.cells().iter().all(|cell| {
            let outputs = cell.get("outputs").is_none_or(|outputs| match &outputs.value {
                Value::Array(elements) => elements.is_empty(),
                _ => outputs.raw(&bytes) == b"null",
            });
            let count = cell.get("execution_count").is_none_or(|count| count.raw(&bytes) == b"null");
            outputs && count
        });
        let state = ["\"collapsed\"", "\"scrolled\"", "\"execution\"", "\"ExecuteTime\"", "\"widgets\""];
        let has_state = state.iter().any(|name| lossy(&bytes).contains(name));
        // The independent reader sees only the last one of repeated members; all of them are stripped.
        let repeats = lossy(&bytes).matches("\"cells\"").count() > 1;
        if is_clean && !has_state && !repeats {
            prop_assert_eq!(lossy(&stripped), lossy(&bytes));
        }
    }
}
