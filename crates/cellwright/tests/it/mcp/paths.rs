//! Paths lead into the roots, or nowhere.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::client::Client;
use crate::context::{Context, THREE_CELLS};

#[test]
fn no_tool_leaves_the_roots() {
    let context = Context::new();
    let base = context.dir().canonicalize().unwrap();
    let (root, outside) = (base.join("root"), base.join("outside"));
    for dir in [&root, &outside] {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("a.ipynb"), THREE_CELLS).unwrap();
    }
    symlink(outside.join("a.ipynb"), root.join("link.ipynb")).unwrap();
    symlink(&outside, root.join("door")).unwrap();
    symlink(outside.join("new.ipynb"), root.join("dangling.ipynb")).unwrap();
    let arguments = ["mcp", "--root", root.to_str().unwrap()];
    let mut client = Client::with(&context, &arguments, &json!({}));
    let far = outside.join("a.ipynb").display().to_string();
    let ways = [
        far.as_str(),
        "../outside/a.ipynb",
        "link.ipynb",
        "door/a.ipynb",
        "dangling.ipynb",
        "/etc/passwd",
        "/proc/self/roo\u{74}/etc/passwd",
        "~/a.ipynb",
        "",
    ];
    for way in ways {
        let calls: [(&str, Value); 9] = [
            ("read", json!({"path": way})),
            ("read", json!({"path": format!("{way}:raw")})),
            (
                "edit",
                json!({"path": way, "old": "answer = 42", "new": "taken"}),
            ),
            (
                "write",
                json!({"path": way, "text": "# %% [code]\ntaken", "create": true}),
            ),
            (
                "notebook",
                json!({"action": "insert", "path": way, "source": "taken", "create": true}),
            ),
            ("notebook", json!({"action": "outline", "path": way})),
            ("run", json!({"path": way})),
            ("run", json!({"path": "a.ipynb", "output": way})),
            ("eval", json!({"code": "1", "cwd": way})),
        ];
        for (tool, arguments) in calls {
            let words = client.call(tool, arguments.clone()).error_text();
            assert!(!words.contains("root:x:0"), "{words}");
        }
        let uri = format!("notebook://{way}");
        client
            .request("resources/read", json!({"uri": uri}))
            .unwrap_err();
    }
    assert_eq!(
        fs::read_to_string(outside.join("a.ipynb")).unwrap(),
        THREE_CELLS
    );
    assert!(!outside.join("new.ipynb").exists());
    // Inside, everything works, also by its whole name.
    let near = root.join("a.ipynb").display().to_string();
    client.call("read", json!({"path": near})).ok();
    client
        .call(
            "edit",
            json!({"path": "a.ipynb", "old": "answer = 42", "new": "answer = 41"}),
        )
        .ok();
    let failed = client
        .call(
            "edit",
            json!({"path": "a.ipynb", "old": "nowhere", "new": "x"}),
        )
        .error_text();
    assert!(
        failed.contains(&near) && !failed.contains("/proc/"),
        "{failed}"
    );
}

#[test]
fn a_client_says_what_its_roots_are() {
    let context = Context::with_notebook();
    let other = Context::with_notebook();
    let other_dir = other.dir().canonicalize().unwrap();
    let mut client = Client::with(&context, &["mcp"], &json!({"roots": {"listChanged": true}}));
    client.roots = json!([{"uri": format!("file://{}", other_dir.display()), "name": "other"}]);
    let read = client.call("read", json!({"path": "a.ipynb"})).ok();
    assert!(
        read.text().contains(other_dir.to_str().unwrap()),
        "{}",
        read.text()
    );
    let here = context.dir().join("a.ipynb").display().to_string();
    client.call("read", json!({"path": here})).error_text();
    // They change their mind.
    let dir = context.dir().canonicalize().unwrap();
    client.roots = json!([{"uri": format!("file://{}", dir.display())}]);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let here = dir.join("a.ipynb").display().to_string();
    // The server updates its roots asynchronously.
    let updated = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !client.call("read", json!({"path": here})).is_error()
    });
    assert!(updated);
    // What was named when the server was started counts more.
    let arguments = ["mcp", "--root", dir.to_str().unwrap()];
    let mut client = Client::with(&context, &arguments, &json!({"roots": {}}));
    client.roots = json!([{"uri": format!("file://{}", other_dir.display())}]);
    client.call("read", json!({"path": here})).ok();
}

#[test]
fn everything_is_no_root() {
    let context = Context::with_notebook();
    let mut command = context.command(&["mcp"]);
    command.current_dir("/");
    let mut client = Client::of(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.request("initialize", params).unwrap();
    let words = client
        .call("read", json!({"path": "etc/passwd:raw"}))
        .error_text();
    assert!(words.contains("root DIRECTORY"), "{words}");
}
