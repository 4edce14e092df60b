//! `notebook tag` and `notebook meta`, and tags where cells are shown.

use serde_json::json;

use crate::context::{Context, THREE_CELLS};
use crate::mcp::client::Client;

#[test]
fn tags_are_added_listed_shown_and_removed() {
    let context = Context::with_notebook();
    let changed = context
        .run(&[
            "notebook",
            "tag",
            "a.ipynb",
            "1",
            "parameters",
            "+slow",
            "+slow",
        ])
        .exits(0);
    assert!(
        changed.stdout.contains("Changed the tags of cell 1 (code)"),
        "{}",
        changed.stdout
    );
    assert!(
        changed.stdout.contains(
            "@@ metadata @@ # %% [code] cell:1 id:first-code\n tags: [] → [\"parameters\", \"slow\"]"
        ),
        "{}",
        changed.stdout
    );
    let outline = context
        .run(&["notebook", "outline", "a.ipynb"])
        .exits(0)
        .stdout;
    assert!(outline.contains("tags:parameters,slow"), "{outline}");
    let report = context
        .run(&["notebook", "outline", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["cells"][1]["tags"], json!(["parameters", "slow"]));
    let listed = context
        .run(&["notebook", "tag", "a.ipynb", "--quiet"])
        .exits(0);
    assert_eq!(listed.stdout, "cell:1 id:first-code  parameters, slow\n");

    // The view with ids shows tags; writing it back changes nothing.
    let tagged = context.content("a.ipynb");
    let view = context
        .run(&["read", "a.ipynb:ids", "--quiet"])
        .exits(0)
        .stdout;
    assert!(
        view.contains("# %% [code] cell:1 id:first-code tags:parameters,slow\n"),
        "{view}"
    );
    context.file("view.txt", &view);
    context.run(&["write", "a.ipynb", "view.txt"]).exits(0);
    assert_eq!(context.content("a.ipynb"), tagged);
    context.file(
        "view.txt",
        view.replace("tags:parameters,slow", "tags:other"),
    );
    let kept = context.run(&["write", "a.ipynb", "view.txt"]).exits(0);
    assert!(kept.stderr.contains("`notebook tag`"), "{}", kept.stderr);
    assert_eq!(context.content("a.ipynb"), tagged);

    context
        .run(&[
            "notebook",
            "tag",
            "a.ipynb",
            "id:first",
            "-slow",
            "-parameters",
        ])
        .exits(0);
    // The list goes with its last tag.
    let untagged = context.content("a.ipynb");
    assert!(!untagged.contains("tags"), "{untagged}");
    let bad = context
        .run(&["notebook", "tag", "a.ipynb", "0", "a,b"])
        .exits(2);
    assert!(bad.stderr.contains("has no comma"), "{}", bad.stderr);
    assert_eq!(context.content("a.ipynb"), untagged);
}

#[test]
fn metadata_is_shown_set_and_removed() {
    let context = Context::with_notebook();
    let meta = |arguments: &[&str]| {
        let mut all = vec!["notebook", "meta", "a.ipynb"];
        all.extend(arguments);
        context.run(&all)
    };
    meta(&["1", "jupyter.source_hidden=true", "note=plain text"]).exits(0);
    assert_eq!(
        meta(&["first-code", "note", "--quiet"]).exits(0).stdout,
        "\"plain text\"\n"
    );
    let shown = meta(&["1", "--json"]).exits(0).json();
    assert_eq!(
        shown["value"],
        json!({"jupyter": {"source_hidden": true}, "note": "plain text", "tags": []})
    );
    for (arguments, problem) in [
        (&["1", "tags=[1]"][..], "`tags` must be a list"),
        (&["1", "collapsed=1"], "`collapsed` must be true or false"),
        (
            &[r#"kernelspec={"name": "x"}"#],
            "`kernelspec` must have `display_name`",
        ),
        (&["title=5"], "`title` must be a string"),
        (&["1", "note.a=1"], "`note` is not an object"),
        (&["1", "x={"], "is not JSON"),
        (&["missing"], "no `missing`"),
    ] {
        let before = context.content("a.ipynb");
        let result = meta(arguments).exits(2);
        assert!(
            result.stderr.contains(problem),
            "{arguments:?}: {}",
            result.stderr
        );
        assert_eq!(context.content("a.ipynb"), before);
    }
    meta(&["1", "--remove", "jupyter", "--remove", "note"]).exits(0);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    let changed = meta(&["title=Sales"]).exits(0);
    assert!(
        changed
            .stdout
            .contains("Changed the metadata of the notebook"),
        "{}",
        changed.stdout
    );
    meta(&["--remove", "title"]).exits(0);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

/// A tag fits to every change that another writer made to the cell; other metadata does not.
#[test]
fn tags_merge_with_other_changes() {
    let context = Context::with_notebook();
    let report = context.run(&["read", "a.ipynb", "--json"]).exits(0).json();
    let revision = report["revision"].as_str().unwrap();
    context
        .run(&["notebook", "edit", "a.ipynb", "1", "--source", "y = 2"])
        .exits(0);
    context
        .run(&[
            "notebook", "meta", "--rev", revision, "a.ipynb", "1", "note=1",
        ])
        .exits(3);
    context
        .run(&["notebook", "tag", "--rev", revision, "a.ipynb", "1", "slow"])
        .exits(0);
    let view = context
        .run(&["read", "a.ipynb:ids", "--quiet"])
        .exits(0)
        .stdout;
    assert!(view.contains("id:first-code tags:slow\ny = 2\n"), "{view}");
}

#[test]
fn tags_in_edits_are_obeyed_or_rejected() {
    let context = Context::with_notebook();
    let run = |edits: &str| {
        context.file("edits.json", edits);
        context.run(&["run", "a.ipynb", "--tag", "quick", "--edits", "edits.json"])
    };
    let rejected = run(r#"[{"action": "delete", "cell": "0", "tags": ["x"]}]"#).exits(2);
    assert!(
        rejected.stderr.contains("does not use `tags`"),
        "{}",
        rejected.stderr
    );
    run(r#"[{"action": "edit", "cell": "1", "source": "1 + 1", "tags": ["quick", "b"]}]"#).exits(0);
    run(r#"[{"action": "tag", "cell": "1", "tags": ["-b", "c"]},
            {"action": "meta", "metadata": {"title": "T"}}]"#)
    .exits(0);
    let report = context
        .run(&["notebook", "outline", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["cells"][1]["tags"], json!(["quick", "c"]));
    assert!(context.content("a.ipynb").contains(r#""title": "T""#));
    let unknown = context.run(&["run", "a.ipynb", "--tag", "nope"]).exits(2);
    assert!(
        unknown.stderr.contains("tags of code cells: quick, c"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn models_read_and_change_tags_and_metadata() {
    let context = Context::with_notebook();
    let mut client = Client::older(&context);
    let mut call = |arguments: serde_json::Value| client.call("notebook", arguments).ok().text();
    let tag = json!({"action": "tag", "path": "a.ipynb", "cell": 1, "tags": ["parameters", "-x"]});
    assert!(call(tag).contains("Changed the tags of cell 1"));
    let meta = json!({"action": "meta", "path": "a.ipynb", "cell": "first-code",
        "metadata": {"jupyter": {"source_hidden": true}, "tags": null}});
    assert!(call(meta).contains("-tags: [\"parameters\"]"));
    let shown = call(json!({"action": "meta", "path": "a.ipynb", "cell": 1}));
    assert!(shown.contains("\"source_hidden\": true"), "{shown}");
    let listed = call(json!({"action": "tag", "path": "a.ipynb"}));
    assert!(listed.contains("No cell has tags"), "{listed}");
}
