//! Three-way merges: one example for each rule.

use cellwright_notebook::{
    Cells, ConflictMarkers, MergeNotice, MergedNotebook, Notebook, Side, merge_three_way,
};
use serde_json::{Value, json};

/// A code cell with an output.
fn code(id: &str, source: &str) -> Value {
    json!({
        "cell_type": "code",
        "execution_count": 1,
        "id": id,
        "metadata": {},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": [format!("out of {source}")]}],
        "source": source,
    })
}

fn markdown(id: &str, source: &str) -> Value {
    json!({"cell_type": "markdown", "id": id, "metadata": {}, "source": source})
}

fn notebook(cells: &[Value]) -> Value {
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
}

fn parse(notebook: &Value) -> Notebook {
    Notebook::parse(format!("{notebook:#}\n")).unwrap()
}

fn merge(base: &Value, ours: &Value, theirs: &Value) -> (MergedNotebook, Value) {
    let markers = ConflictMarkers::default();
    let merged = merge_three_way(&parse(base), &parse(ours), &parse(theirs), &markers);
    let value = serde_json::from_slice(&merged.bytes).unwrap();
    (merged, value)
}

/// The merged notebook of a merge without notices.
fn merged(base: &Value, ours: &Value, theirs: &Value) -> Value {
    let (merged, value) = merge(base, ours, theirs);
    assert_eq!(merged.notices, []);
    value
}

/// The notebook with a change.
fn with(notebook: &Value, change: impl Fn(&mut Value)) -> Value {
    let mut notebook = notebook.clone();
    change(&mut notebook);
    notebook
}

fn ids(notebook: &Value) -> Vec<&str> {
    let cells = notebook["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["id"].as_str().unwrap()).collect()
}

fn three() -> Value {
    notebook(&[code("a", "one"), code("b", "two\n2\n3"), code("c", "three")])
}

fn insert(notebook: &Value, at: usize, cell: &Value) -> Value {
    with(notebook, |notebook| {
        notebook["cells"]
            .as_array_mut()
            .unwrap()
            .insert(at, cell.clone());
    })
}

fn remove(notebook: &Value, at: usize) -> Value {
    with(notebook, |notebook| {
        notebook["cells"].as_array_mut().unwrap().remove(at);
    })
}

fn move_to(notebook: &Value, from: usize, to: usize) -> Value {
    with(notebook, |notebook| {
        let cells = notebook["cells"].as_array_mut().unwrap();
        let cell = cells.remove(from);
        cells.insert(to, cell);
    })
}

#[test]
fn merge_changes_only_their_lines() {
    let base = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "a",
   "metadata": {},
   "outputs": [],
   "source": [
    "x = 1\n",
    "y = 2\n",
    "z = 3"
   ]
  }
 ],
 "metadata": {"kernelspec": {"name": "python3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;
    let ours = base.replace("x = 1", "x = 10");
    let theirs = base
        .replace("z = 3", "z = 30")
        .replace("python3\"}", "python3\"}, \"new\": 1")
        .replace(' ', "");
    // White space matters only inside sources.
    let theirs = theirs
        .replace("y=2", "y = 2")
        .replace("z=30", "z = 30")
        .replace("x=1", "x = 1");
    let parse = |text: &str| Notebook::parse(text).unwrap();
    let merged = merge_three_way(
        &parse(base),
        &parse(&ours),
        &parse(&theirs),
        &ConflictMarkers::default(),
    );
    assert_eq!(merged.notices, []);
    let expected = ours
        .replace("z = 3", "z = 30")
        .replace("python3\"}", "python3\"}, \"new\": 1");
    assert_eq!(String::from_utf8(merged.bytes).unwrap(), expected);
}

#[test]
fn inserts_at_one_position_are_both_kept_ours_first() {
    let base = three();
    for (at, expected) in [
        (0, ["x", "y", "a", "b", "c"]),
        (1, ["a", "x", "y", "b", "c"]),
        (3, ["a", "b", "c", "x", "y"]),
    ] {
        let ours = insert(&base, at, &markdown("x", "ours"));
        let theirs = insert(&base, at, &markdown("y", "theirs"));
        assert_eq!(ids(&merged(&base, &ours, &theirs)), expected);
    }
    // Also if the cell before them was deleted.
    let ours = insert(&remove(&base, 1), 1, &markdown("x", "ours"));
    let theirs = insert(&base, 2, &markdown("y", "theirs"));
    assert_eq!(ids(&merged(&base, &ours, &theirs)), ["a", "x", "y", "c"]);
}

#[test]
fn cell_added_by_both_appears_once() {
    let base = three();
    let both = markdown("x", "first\n\nsecond\n\nthird");
    let ours = insert(&base, 1, &both);
    let theirs = insert(&base, 3, &markdown("y", "more"));
    let theirs = insert(&theirs, 1, &both);
    assert_eq!(
        ids(&merged(&base, &ours, &theirs)),
        ["a", "x", "b", "c", "y"]
    );

    // Changed by one side since: without a base it is unknown by which.
    let theirs = with(&theirs, |theirs| {
        theirs["cells"][1]["source"] = json!("first\n\n2nd\n\nthird");
    });
    let (merged, value) = merge(&base, &ours, &theirs);
    assert_eq!(
        value["cells"][1]["source"],
        "first\n\n<<<<<<< ours\nsecond\n=======\n2nd\n>>>>>>> theirs\n\nthird"
    );
    assert_eq!(merged.notices, [MergeNotice::SourceConflict { cell: 1 }]);
    assert!(!merged.is_clean());
}

#[test]
fn deleted_and_changed_cell_stays_as_conflict() {
    let base = three();
    let deleted = remove(&base, 1);
    let changed = with(&base, |changed| {
        changed["cells"][1]["source"] = json!("TWO");
    });
    for (ours, theirs, by) in [
        (&deleted, &changed, Side::Ours),
        (&changed, &deleted, Side::Theirs),
    ] {
        let (merged, value) = merge(&base, ours, theirs);
        assert_eq!(ids(&value), ["a", "b", "c"]);
        assert_eq!(value["cells"][1]["source"], "TWO");
        assert_eq!(
            merged.notices,
            [MergeNotice::DeletedAndChanged { cell: 1, by }]
        );
        assert!(!merged.is_clean());
    }
    // Running the cell is not a change that keeps it.
    let run = with(&base, |run| {
        run["cells"][1]["execution_count"] = json!(7);
        run["cells"][1]["outputs"] = json!([]);
        run["cells"][1]["metadata"]["execution"] = json!({"iopub.status.busy": "now"});
        run["cells"][1]["metadata"]["collapsed"] = json!(false);
    });
    assert_eq!(ids(&merged(&base, &deleted, &run)), ["a", "c"]);
    assert_eq!(ids(&merged(&base, &run, &deleted)), ["a", "c"]);
}

#[test]
fn outputs_follow_their_source() {
    let base = three();
    let run = |notebook: &Value, cell: usize, output: &str| {
        with(notebook, |notebook| {
            let cell = &mut notebook["cells"][cell];
            cell["outputs"][0]["text"] = json!([output]);
            cell["execution_count"] = json!(5);
            cell["metadata"]["execution"] = json!({"at": output});
        })
    };
    let edit = |notebook: &Value, source: &str| {
        with(notebook, |notebook| {
            notebook["cells"][1]["source"] = json!(source);
        })
    };
    let outputs = |value: &Value| {
        let cell = &value["cells"][1];
        let text = cell["outputs"][0]["text"][0]
            .as_str()
            .unwrap_or("none")
            .to_owned();
        let at = cell["metadata"]["execution"]["at"]
            .as_str()
            .unwrap_or("none");
        assert_eq!(cell["execution_count"].is_null(), text == "none");
        assert_eq!(
            at,
            if text.starts_with("out of") {
                "none"
            } else {
                &text
            }
        );
        text
    };
    // Both ran the unchanged cell; one did; one changed it and the other ran the old source.
    let (ours, theirs) = (run(&base, 1, "ours"), run(&base, 1, "theirs"));
    assert_eq!(outputs(&merged(&base, &ours, &theirs)), "ours");
    assert_eq!(
        outputs(&merged(&base, &run(&base, 0, "ours"), &theirs)),
        "theirs"
    );
    let changed = run(&edit(&base, "TWO\n2\n3"), 1, "changed");
    assert_eq!(outputs(&merged(&base, &changed, &theirs)), "changed");
    assert_eq!(outputs(&merged(&base, &ours, &changed)), "changed");
    // The merged source was never run.
    let other = run(&edit(&base, "two\n2\nTHREE"), 1, "other");
    let (both, value) = merge(&base, &changed, &other);
    assert_eq!(value["cells"][1]["source"], "TWO\n2\nTHREE");
    assert_eq!(outputs(&value), "none");
    assert_eq!(both.notices, [MergeNotice::OutputsCleared { cell: 1 }]);
    assert!(both.is_clean());
}

#[test]
fn lines_changed_by_both_get_conflict_markers() {
    let base = three();
    let ours = with(&base, |ours| {
        ours["cells"][1]["source"] = json!("two\nours\n3");
    });
    let theirs = with(&base, |theirs| {
        theirs["cells"][1]["source"] = json!("two\ntheirs\n3");
    });
    let (merged, value) = merge(&base, &ours, &theirs);
    assert_eq!(
        value["cells"][1]["source"],
        "two\n<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n3"
    );
    assert_eq!(value["cells"][1]["outputs"], json!([]));
    assert_eq!(
        merged.notices,
        [
            MergeNotice::SourceConflict { cell: 1 },
            MergeNotice::OutputsCleared { cell: 1 }
        ]
    );
}

#[test]
fn metadata_merges_by_key_and_ours_wins() {
    let base = with(&three(), |base| {
        base["metadata"] = json!({
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "widgets": {"state": {"one": 1}},
            "gone": 1,
        });
        base["cells"][0]["metadata"] = json!({"tags": ["keep", "drop"], "deep": {"a": 1, "b": 1}});
    });
    let ours = with(&base, |ours| {
        ours["metadata"]["kernelspec"] = json!({"name": "ours", "display_name": "Python 3"});
        ours["metadata"]["widgets"]["state"]["two"] = json!(2);
        ours["cells"][0]["metadata"]["tags"] = json!(["keep", "drop", "ours"]);
        ours["cells"][0]["metadata"]["deep"]["a"] = json!("ours");
        ours["cells"][0]["odd"] = json!("ours");
    });
    let theirs = with(&base, |theirs| {
        theirs["metadata"]["kernelspec"]["display_name"] = json!("theirs");
        theirs["metadata"]["widgets"]["state"]["three"] = json!(3);
        theirs["metadata"].as_object_mut().unwrap().remove("gone");
        theirs["metadata"]["new"] = json!({"x": []});
        theirs["cells"][0]["metadata"]["tags"] = json!(["keep", "theirs"]);
        theirs["cells"][0]["metadata"]["deep"] = json!({"a": "theirs", "b": "theirs"});
        theirs["cells"][0]["odd"] = json!("theirs");
    });
    let (merged, value) = merge(&base, &ours, &theirs);
    assert_eq!(
        value["metadata"],
        json!({
            // As a whole: the name must not be combined with another kernel's display name.
            "kernelspec": {"name": "ours", "display_name": "Python 3"},
            "widgets": {"state": {"one": 1, "two": 2, "three": 3}},
            "new": {"x": []},
        })
    );
    assert_eq!(
        value["cells"][0]["metadata"],
        json!({"tags": ["keep", "ours", "theirs"], "deep": {"a": "ours", "b": "theirs"}})
    );
    assert_eq!(value["cells"][0]["odd"], "ours");
    let member = |cell, name: &str| MergeNotice::MemberConflict {
        cell,
        name: name.to_owned(),
    };
    assert_eq!(
        merged.notices,
        [
            member(Some(0), "odd"),
            member(Some(0), "metadata.deep.a"),
            member(None, "metadata.kernelspec"),
        ]
    );
    assert!(merged.is_clean());
}

/// Both pictures stay, and the source shows the conflict.
#[test]
fn attachments_that_both_sides_changed_are_a_conflict() {
    let picture = |data: &str| json!({"x.png": {"image/png": data}});
    let base = notebook(&[with(&markdown("a", "see"), |cell| {
        cell["attachments"] = picture("old");
    })]);
    let changed = |data: &str| {
        with(&base, |side| {
            side["cells"][0]["attachments"] = picture(data);
        })
    };
    let removed = with(&base, |side| side["cells"][0] = markdown("a", "see"));
    let (ours, theirs) = (
        "![x.png](attachment:x.png)\n",
        "![x.png](attachment:theirs-x.png)\n",
    );
    for (our, their, attachments, lines) in [
        (
            changed("one"),
            changed("two"),
            json!({"theirs-x.png": {"image/png": "two"}, "x.png": {"image/png": "one"}}),
            (ours, theirs),
        ),
        (removed.clone(), changed("two"), picture("two"), ("", ours)),
        (changed("one"), removed.clone(), picture("one"), (ours, "")),
    ] {
        let (merged, value) = merge(&base, &our, &their);
        assert!(!merged.is_clean());
        let cell = &value["cells"][0];
        assert_eq!(cell["attachments"], attachments);
        let (our, their) = lines;
        let source = format!("see\n<<<<<<< ours\n{our}=======\n{their}>>>>>>> theirs");
        assert_eq!(cell["source"], source);
    }
    assert_eq!(merged(&base, &base, &removed), removed);
    assert_eq!(
        merged(&base, &changed("one"), &changed("one")),
        changed("one")
    );
}

#[test]
fn kind_change_adds_and_removes_kind_members() {
    let base = notebook(&[
        code("a", "one"),
        with(&markdown("b", "text"), |cell| {
            cell["attachments"] = json!({"x.png": {}});
        }),
    ]);
    // They swap the kinds of both cells; we ran the first and added a picture to the second.
    let ours = with(&base, |ours| {
        ours["cells"][0]["execution_count"] = json!(9);
        ours["cells"][1]["attachments"]["y.png"] = json!({});
        ours["cells"][1]["source"] = json!("text\n\nmore");
    });
    let theirs = with(&base, |theirs| {
        theirs["cells"][0] = markdown("a", "one");
        theirs["cells"][1] = json!({"cell_type": "code", "execution_count": null, "id": "b",
            "metadata": {}, "outputs": [], "source": "text"});
    });
    let value = merged(&base, &ours, &theirs);
    assert_eq!(value["cells"][0], markdown("a", "one"));
    assert_eq!(
        value["cells"][1],
        json!({"cell_type": "code", "execution_count": null, "id": "b", "metadata": {},
            "outputs": [], "source": "text\n\nmore"})
    );
    // Both change the kind, differently.
    let ours = with(&base, |ours| ours["cells"][1]["cell_type"] = json!("raw"));
    let (merged, value) = merge(&base, &ours, &theirs);
    assert_eq!(value["cells"][1]["cell_type"], "raw");
    assert_eq!(merged.notices, [MergeNotice::KindConflict { cell: 1 }]);
    assert!(!merged.is_clean());
}

#[test]
fn cells_moved_by_one_side_keep_that_position() {
    let base = notebook(&[
        code("a", "1"),
        code("b", "2"),
        code("c", "3"),
        code("d", "4"),
    ]);
    let ours = with(&move_to(&base, 0, 3), |ours| {
        ours["cells"][0]["source"] = json!("TWO");
    });
    let theirs = with(&insert(&base, 4, &code("e", "5")), |theirs| {
        theirs["cells"][0]["source"] = json!("ONE");
    });
    let value = merged(&base, &ours, &theirs);
    assert_eq!(ids(&value), ["b", "c", "d", "e", "a"]);
    assert_eq!(value["cells"][4]["source"], "ONE");
    let value = merged(&base, &theirs, &ours);
    assert_eq!(ids(&value), ["b", "c", "d", "e", "a"]);
    // Each side moved another cell.
    let value = merged(&base, &move_to(&base, 0, 3), &move_to(&base, 3, 1));
    assert_eq!(ids(&value), ["d", "b", "c", "a"]);
    // Both moved the same cell: to the same position, and to different ones.
    let same = merged(
        &base,
        &move_to(&base, 0, 3),
        &insert(&move_to(&base, 0, 3), 0, &code("e", "5")),
    );
    assert_eq!(ids(&same), ["e", "b", "c", "d", "a"]);
    let (merged, value) = merge(&base, &move_to(&base, 0, 3), &move_to(&base, 0, 2));
    assert_eq!(ids(&value), ["b", "c", "d", "a"]);
    assert_eq!(merged.notices, [MergeNotice::MoveConflict { cell: 3 }]);
    assert!(!merged.is_clean());
}

#[test]
fn ids_follow_the_format_version() {
    let without = |notebook: &Value| {
        with(notebook, |notebook| {
            notebook["nbformat_minor"] = json!(4);
            for cell in notebook["cells"].as_array_mut().unwrap() {
                cell.as_object_mut().unwrap().remove("id");
            }
        })
    };
    let base = without(&three());
    let ours = without(&insert(&three(), 1, &code("x", "new")));
    let theirs = with(&three(), |theirs| {
        theirs["cells"][2]["source"] = json!("three!");
    });
    let value = merged(&base, &ours, &theirs);
    assert_eq!(value["nbformat_minor"], 5);
    let found = ids(&value);
    assert_eq!([found[0], found[2], found[3]], ["a", "b", "c"]);
    assert_eq!(found[1].len(), 8);
    assert_eq!(value["cells"][3]["source"], "three!");
    // And vice versa: our file has ids, theirs adds a cell without one.
    let value = merged(&base, &theirs, &ours);
    assert_eq!(value["nbformat_minor"], 5);
    assert_eq!(ids(&value)[1].len(), 8);
}

#[test]
fn used_id_is_not_assigned_again() {
    let base = three();
    let ours = insert(&base, 0, &markdown("x", "ours"));
    let theirs = insert(&base, 3, &code("x", "theirs"));
    let (merged, value) = merge(&base, &ours, &theirs);
    let found = ids(&value);
    assert_eq!(found[0], "x");
    assert_eq!(value["cells"][4]["source"], "theirs");
    assert_ne!(found[4], "x");
    let id = "x".to_owned();
    assert_eq!(merged.notices, [MergeNotice::IdReplaced { cell: 4, id }]);
    // Nor to a cell whose id they changed.
    let theirs = with(&base, |theirs| {
        theirs["cells"][0]["id"] = json!("x");
        theirs["cells"][2]["id"] = json!("y");
    });
    let (_, value) = merge(&base, &ours, &theirs);
    assert_eq!(ids(&value), ["x", "a", "b", "y"]);
}

#[test]
fn their_sources_take_our_shape() {
    let lines = with(&three(), |lines| {
        lines["cells"][1]["source"] = json!(["two\n", "2\n", "3"]);
    });
    let theirs = insert(&three(), 3, &code("x", "é\n2"));
    let ours = with(&lines, |ours| ours["cells"][0]["source"] = json!(["ONE"]));
    let value = merged(&lines, &ours, &theirs);
    assert_eq!(value["cells"][3]["source"], json!(["é\n", "2"]));
    let ours = with(&three(), |ours| ours["cells"][0]["source"] = json!("ONE"));
    let theirs = insert(
        &lines,
        3,
        &with(&code("x", ""), |cell| cell["source"] = json!(["é\n", "2"])),
    );
    let value = merged(&three(), &ours, &theirs);
    assert_eq!(value["cells"][3]["source"], "é\n2");
}

#[test]
fn merge_without_base_keeps_cells_of_both() {
    let ours = notebook(&[code("a", "one"), code("b", "two")]);
    let theirs = notebook(&[code("a", "one"), code("c", "three")]);
    let markers = ConflictMarkers::default();
    let merged = merge_three_way(&Notebook::empty(), &parse(&ours), &parse(&theirs), &markers);
    let value: Value = serde_json::from_slice(&merged.bytes).unwrap();
    assert_eq!(ids(&value), ["a", "b", "c"]);
    assert_eq!(merged.notices, []);
    assert_eq!(Notebook::parse(&merged.bytes[..]).unwrap().count(), 3);
}
