//! `edit::replace_text`: views that are searched, and the positions that its errors name.

use cellwright_notebook::edit::{MatchMode, ReplaceScope, Replacement, replace, replace_text};
use cellwright_notebook::{
    CellKind, Cells, EditError, Notebook, SimilarText, TextDifference, TextMatch, compose,
};

/// A notebook of code cells with these ids and sources; an empty id is left out.
fn notebook(cells: &[(&str, &str)]) -> Notebook {
    let cells: Vec<String> = cells
        .iter()
        .map(|(id, source)| {
            let id = if id.is_empty() {
                String::new()
            } else {
                format!(r#""id":"{id}","#)
            };
            let source = source.replace('"', "\\\"").replace('\n', "\\n");
            format!(
                r#"{{"cell_type":"code",{id}"metadata":{{}},"outputs":[],"execution_count":null,"source":"{source}"}}"#
            )
        })
        .collect();
    Notebook::parse(format!(
        r#"{{"cells":[{}],"nbformat":4,"nbformat_minor":5}}"#,
        cells.join(",")
    ))
    .unwrap()
}

fn replaced(notebook: &Notebook, old: &str, new: &str) -> Result<Vec<String>, EditError> {
    let draft = replace_text(notebook, old, new, ReplaceScope::One)?;
    let new = Notebook::parse(compose(notebook, &draft.plan).to_bytes()).unwrap();
    Ok((0..new.count())
        .map(|index| {
            let id = new.id(index).unwrap_or_default();
            format!("{id}: {}", new.source(index))
        })
        .collect())
}

fn found(cell: usize, line: Option<usize>, text: &str) -> TextMatch {
    TextMatch {
        cell,
        line,
        text: text.to_owned(),
    }
}

#[test]
fn markers_with_indexes_ids_or_both_are_found() {
    let notebook = notebook(&[("a", "x = 1"), ("b", "x = 1"), ("b", "y"), ("", "z")]);
    let expected = ["a: x = 1", "b: x = 2", "b: y", ": z"].map(str::to_owned);
    let index = "# %% [code] cell:1\nx = 1";
    let both = "# %% [code] cell:1 id:b\nx = 1";
    for old in [index, both] {
        let new = old.replace('1', "2").replace("cell:2", "cell:1");
        assert_eq!(replaced(&notebook, old, &new).unwrap(), expected, "{old}");
    }
    let expected = ["a: x = 3", "b: x = 1", "b: y", ": z"].map(str::to_owned);
    let ids = "# %% [code] id:a\nx = 1";
    let new = ids.replace("= 1", "= 3");
    assert_eq!(replaced(&notebook, ids, &new).unwrap(), expected);
    // Deletes a cell; the cells with a shared id and without an id stay what they are.
    let old = "# %% [code] id:a\nx = 1\n";
    let expected = ["b: x = 1", "b: y", ": z"].map(str::to_owned);
    assert_eq!(replaced(&notebook, old, "").unwrap(), expected);
    // An id that two cells share names neither of them.
    let old = "# %% [code] id:b\nx = 1\n";
    assert!(matches!(
        replaced(&notebook, old, ""),
        Err(EditError::NoMatch { .. })
    ));
}

#[test]
fn an_ambiguous_text_lists_its_matches() {
    let notebook = notebook(&[
        ("a", "import os"),
        ("b", "\nanswer = 42\nanswer, answer"),
        ("c", "    answer"),
    ]);
    assert_eq!(
        replaced(&notebook, "answer", "x"),
        Err(EditError::Matches {
            count: 4,
            matches: vec![
                found(1, Some(2), "answer = 42"),
                found(1, Some(3), "answer, answer"),
                found(2, Some(1), "answer"),
            ],
        })
    );
    assert_eq!(
        replaced(&notebook, "# %% [code]", "# %% [raw]"),
        Err(EditError::Matches {
            count: 3,
            matches: (0..3)
                .map(|cell| found(cell, None, &format!("# %% [code] cell:{cell}")))
                .collect(),
        })
    );
    let Err(EditError::Matches { matches, .. }) = replaced(&notebook, "\nanswer", "x") else {
        panic!("one match only");
    };
    assert_eq!(matches[0], found(1, Some(2), "answer = 42"));
    let many = "x\n".repeat(30);
    let notebook = self::notebook(&[("a", &many)]);
    let Err(EditError::Matches { count, matches }) = replaced(&notebook, "x", "y") else {
        panic!("one match only");
    };
    assert_eq!((count, matches.len()), (30, 10));
    assert_eq!(matches[9], found(0, Some(10), "x"));
}

#[test]
fn a_missing_text_lists_similar_texts() {
    let notebook = notebook(&[
        ("a", "import os"),
        ("b", "x\nAnswer  =  42\nprint(answer)"),
        ("c", "\u{130}x"),
    ]);
    let similar = |old: &str| match replaced(&notebook, old, "") {
        Err(EditError::NoMatch { similar, .. }) => similar,
        other => panic!("{old}: {other:?}"),
    };
    let differs = |place: TextMatch, difference| [SimilarText { place, difference }];
    assert_eq!(
        similar("Answer=42"),
        differs(
            found(1, Some(2), "Answer  =  42"),
            TextDifference::WhiteSpace
        )
    );
    assert_eq!(
        similar("answer = 42\n  print(answer)"),
        differs(
            found(1, Some(2), "Answer  =  42"),
            TextDifference::CaseAndWhiteSpace
        )
    );
    assert_eq!(
        similar("i\u{307}X"),
        differs(found(2, Some(1), "\u{130}x"), TextDifference::Case)
    );
    assert_eq!(similar("CELL"), []);
    assert_eq!(similar("   \t"), []);
    assert_eq!(similar("missing"), []);
    assert_eq!(
        similar("# %%  [code] cell:2"),
        differs(
            found(2, None, "# %% [code] cell:2"),
            TextDifference::WhiteSpace
        )
    );
}

#[test]
fn a_missing_text_lists_the_nearest_lines() {
    let notebook = notebook(&[
        ("a", "model.fit(train)\nprint('done')"),
        ("b", "x = 1\nmodel.fit(test, epochs=20)"),
    ]);
    let nearest = |old: &str| match replaced(&notebook, old, "") {
        Err(EditError::NoMatch { similar, .. }) => similar
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; "),
        other => panic!("{old}: {other:?}"),
    };
    assert_eq!(
        nearest("model.fit(test, epoch=20)"),
        "cell 1, line 2: model.fit(test, epochs=20)"
    );
    // The first line that is in no cell counts.
    assert_eq!(
        nearest("x = 1\nmodel.fitt(train)"),
        "cell 0, line 1: model.fit(train)"
    );
    assert_eq!(nearest("import numpy as np"), "");
}

fn replace_all_matches(
    notebook: &Notebook,
    old: &str,
    new: &str,
    mode: MatchMode,
    kinds: &[CellKind],
) -> Result<String, EditError> {
    let replacement = Replacement {
        old,
        new,
        scope: ReplaceScope::All,
        mode,
        kinds,
    };
    let draft = replace(notebook, &replacement)?;
    let bytes: Vec<u8> = compose(notebook, &draft.plan).to_bytes();
    let edited = Notebook::parse(bytes).unwrap();
    Ok((0..edited.count())
        .map(|index| edited.source(index).into_owned())
        .collect::<Vec<_>>()
        .join("|"))
}

#[test]
fn words_are_whole_words_of_any_alphabet() {
    let notebook = notebook(&[("a", "x = xs + x_1 + éx + x.x"), ("b", "max(x)")]);
    let word = |old, new| replace_all_matches(&notebook, old, new, MatchMode::Word, &[]);
    assert_eq!(
        word("x", "width").unwrap(),
        "width = xs + x_1 + éx + width.width|max(width)"
    );
    assert_eq!(word("x.x", "y").unwrap(), "x = xs + x_1 + éx + y|max(x)");
    // A side that is not part of a word needs no boundary.
    assert_eq!(
        word("(x)", "(y)").unwrap(),
        "x = xs + x_1 + éx + x.x|max(y)"
    );
    assert!(matches!(word("ma", "y"), Err(EditError::NoMatch { .. })));
}

#[test]
fn regular_expressions_have_groups_and_match_lines() {
    let notebook = notebook(&[("a", "a = f(1)\nb = f(2)\nprice = '$5'"), ("b", "g(f(3))")]);
    let regex = |old, new| replace_all_matches(&notebook, old, new, MatchMode::Regex, &[]);
    assert_eq!(
        regex(r"f\((\d)\)", "h($1, \\1)").unwrap(),
        "a = h(1, 1)\nb = h(2, 2)\nprice = '$5'|g(h(3, 3))"
    );
    assert_eq!(
        regex(r"^(?<name>\w) = f", "$$${name} = $name").unwrap(),
        "$a = $name(1)\n$b = $name(2)\nprice = '$5'|g(f(3))"
    );
    let invalid = regex("f(", "");
    assert!(matches!(invalid, Err(EditError::InvalidPattern { .. })));
    let missing = |name: &str| {
        Err(EditError::NoSuchGroup {
            name: name.to_owned(),
            count: 0,
        })
    };
    assert_eq!(regex("f", "$5"), missing("5"));
    assert_eq!(regex("f", "${HOME}"), missing("HOME"));
}

#[test]
fn a_kind_of_cell_limits_the_replacement_and_markers_never_change() {
    let content = serde_json::json!({
        "cells": [
            {"cell_type": "code", "id": "code", "metadata": {}, "source": "code = 1\n# %% [code] cell:7", "outputs": [], "execution_count": null},
            {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "the code"},
        ],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    });
    let notebook = Notebook::parse(content.to_string()).unwrap();
    let in_kinds = |mode, kinds: &[CellKind]| {
        replace_all_matches(&notebook, "code", "X", mode, kinds).unwrap()
    };
    assert_eq!(
        in_kinds(MatchMode::Text, &[CellKind::Code]),
        "X = 1\n# %% [X] cell:7|the code"
    );
    assert_eq!(
        in_kinds(MatchMode::Word, &[CellKind::Markdown]),
        "code = 1\n# %% [code] cell:7|the X"
    );
    assert_eq!(
        in_kinds(MatchMode::Regex, &[]),
        "X = 1\n# %% [X] cell:7|the X"
    );
}

#[test]
fn columns_of_a_diff_are_recognised() {
    let notebook = notebook(&[("a", "x = 1\nprint(x)"), ("b", "y")]);
    let has_columns = |old: &str| match replaced(&notebook, old, "") {
        Err(EditError::NoMatch {
            has_diff_columns, ..
        }) => has_diff_columns,
        other => panic!("{old}: {other:?}"),
    };
    for old in [
        "+x = 1",
        "-x = 0\n+x = 1\n print(x)",
        " # %% [code] id:a\n-x = 0\n+x = 1",
        " # %% [code] id:a\n x = 1",
        "+x = 1\n",
    ] {
        assert!(has_columns(old), "{old:?}");
    }
    for old in ["-x = 0", "+z", " x = 1", "z\n+x = 1", "+", "-\n+"] {
        assert!(!has_columns(old), "{old:?}");
    }
}

/// Examining the line of each match again would take minutes.
#[test]
fn many_matches_on_one_line_are_replaced() {
    const COUNT: usize = 2_000_000;
    let notebook = notebook(&[("a", &"ab".repeat(COUNT))]);
    let draft = replace_text(&notebook, "a", "c", ReplaceScope::All).unwrap();
    let new = Notebook::parse(compose(&notebook, &draft.plan).to_bytes()).unwrap();
    assert!(new.source(0) == "cb".repeat(COUNT));
}
