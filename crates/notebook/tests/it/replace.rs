//! `edit::replace_text`: views that are searched, and the positions that its errors name.

use cellwright_notebook::edit::{ReplaceScope, replace_text};
use cellwright_notebook::{Cells, EditError, Notebook, TextMatch, compose};

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
    assert_eq!(similar("answer=42"), [found(1, Some(2), "Answer  =  42")]);
    assert_eq!(
        similar("answer = 42\n  print(answer)"),
        [found(1, Some(2), "Answer  =  42")]
    );
    assert_eq!(similar("i\u{307}X"), [found(2, Some(1), "\u{130}x")]);
    assert_eq!(similar("CELL"), []);
    assert_eq!(similar("   \t"), []);
    assert_eq!(similar("missing"), []);
    assert_eq!(
        similar("# %%  [code] cell:2"),
        [found(2, None, "# %% [code] cell:2")]
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
