//! Two clients at work on two notebooks: nothing of one gets into the other.

use serde_json::json;

use super::client::Client;
use crate::context::Context;

/// Edits and runs of each client.
const ROUNDS: usize = 125;

#[test]
fn two_clients_never_write_into_each_others_notebook() {
    let context = Context::new();
    for name in ["a", "b"] {
        let text = format!("# %% [code]\nwho = '{name}'\n# %% [code]\nprint(who, 'start')\n");
        let path = format!("{name}.ipynb");
        let mut client = Client::older(&context);
        client
            .call("write", json!({"path": path, "text": text, "create": true}))
            .ok();
    }
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let context = &context;
            scope.spawn(move || at_work(context, name));
        }
    });
    for (name, other) in [("a", "b"), ("b", "a")] {
        let content = context.content(&format!("{name}.ipynb"));
        let last = format!("{name} {}", ROUNDS - 1);
        assert!(content.contains(&last), "{content}");
        assert!(!content.contains(&format!("'{other} ")), "{content}");
        assert!(!content.contains(&format!("\"{other} ")), "{content}");
    }
}

/// Edits and runs one notebook again and again, with an eye on what it says.
fn at_work(context: &Context, name: &str) {
    let mut client = Client::older(context);
    let path = format!("{name}.ipynb");
    client.call("run", json!({"path": path})).ok();
    for round in 0..ROUNDS {
        let source = format!("print(who, {round})");
        let edit = json!({"action": "edit", "path": path, "cell": 1, "source": source});
        let edited = client.call("notebook", edit).ok();
        assert_eq!(edited.structured()["changed"], true);
        let ran = client
            .call("run", json!({"path": path, "stale": true}))
            .ok();
        assert_eq!(ran.printed().trim(), format!("{name} {round}"));
        assert_eq!(ran.structured()["session"], json!(path));
    }
}
