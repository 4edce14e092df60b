//! Tools that read and change files.

use serde_json::json;

use super::client::Client;
use crate::context::{Context, THREE_CELLS};

#[test]
fn words_and_patterns_are_replaced_and_similar_texts_listed() {
    let context = Context::with_notebook();
    let mut client = Client::with(&context, &["mcp"], &json!({}));
    let edit = json!({
        "path": "a.ipynb", "old": r"\banswer\b", "new": "result", "regex": true, "code": true, "all": true,
    });
    assert!(client.call("edit", edit).text().contains("+result = 42"));
    let edit = json!({"path": "a.ipynb", "old": "result", "new": "x", "word": true});
    let error = client.call("edit", edit).error_text();
    assert!(error.contains("occurs 3 times"), "{error}");
    let edit = json!({"path": "a.ipynb", "old": "Print(result)", "new": "x"});
    let error = client.call("edit", edit).error_text();
    assert!(
        error.contains("cell 1, line 2: print(result) (case differs)"),
        "{error}"
    );
}

#[test]
fn a_change_is_undone_and_redone() {
    let context = Context::with_notebook();
    let mut client = Client::with(&context, &["mcp"], &json!({}));
    let delete = json!({"action": "delete", "path": "a.ipynb", "cell": "last"});
    client.call("notebook", delete).text();
    let undo = json!({"action": "undo", "path": "a.ipynb"});
    let reply = client.call("notebook", undo.clone()).text();
    assert!(
        reply.contains("Undid a change") && reply.contains("+answer + 1.0"),
        "{reply}"
    );
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    let error = client.call("notebook", undo).error_text();
    assert!(error.contains("There is no change"), "{error}");
    let redo = json!({"action": "redo", "path": "a.ipynb"});
    client.call("notebook", redo).text();
    assert!(!context.content("a.ipynb").contains("answer + 1.0"));
}

#[test]
fn text_files_are_read_inside_the_roots_only() {
    let context = Context::new();
    let root = context.path("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("notes.md"), "# Notes\nsecond\n").unwrap();
    std::fs::write(root.join("data.bin"), [0, 1, 2]).unwrap();
    context.file("secret.txt", "secret");
    let arguments = ["mcp", "--root", root.to_str().unwrap()];
    let mut client = Client::with(&context, &arguments, &json!({}));
    let mut read = |path: &str| client.call("read", json!({"path": path}));
    let text = read("notes.md:2").text();
    assert!(
        text.contains("second") && !text.contains("# Notes"),
        "{text}"
    );
    let error = read("data.bin").error_text();
    assert!(error.contains("Not a text file"), "{error}");
    let error = read("../secret.txt").error_text();
    assert!(!error.contains("secret\n"), "{error}");
    let error = read(context.path("secret.txt").to_str().unwrap()).error_text();
    assert!(error.contains("leads out of the roots"), "{error}");
}
