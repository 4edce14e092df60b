//! Calls as models write them: each works, or is rejected with a message that allows a model to correct it in one step.

use serde_json::{Value, json};

use super::client::Client;
use crate::context::Context;

/// The result of a call: success, or an error with these texts.
enum Expected {
    Works,
    Rejected(&'static [&'static str]),
}

use Expected::{Rejected, Works};

/// Sixty calls that models make, with the words that the reply must contain.
#[expect(clippy::too_many_lines, reason = "a table")]
fn calls() -> Vec<(&'static str, Value, Expected)> {
    vec![
        // Other names of arguments.
        ("read", json!({"file_path": "a.ipynb"}), Works),
        ("read", json!({"notebook_path": "a.ipynb"}), Works),
        (
            "edit",
            json!({"file_path": "a.ipynb", "old_string": "answer = 42", "new_string": "answer = 43"}),
            Works,
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "answer", "new": "result", "replace_all": "true"}),
            Works,
        ),
        (
            "notebook",
            json!({"edit_mode": "replace", "notebook_path": "a.ipynb", "cell_id": "first-code", "new_source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "insert", "path": "a.ipynb", "position": 1, "content": "y = 2", "cell_type": "code"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "remove", "path": "a.ipynb", "cell_index": 1}),
            Works,
        ),
        (
            "write",
            json!({"path": "new.ipynb", "content": "# %% [code]\n1\n", "create": true}),
            Works,
        ),
        (
            "run",
            json!({"notebook": "a.ipynb", "parameters": {"year": 1}}),
            Works,
        ),
        ("eval", json!({"source": "1 + 1"}), Works),
        ("eval", json!({"code": "1", "session_name": "s"}), Works),
        (
            "kernels",
            json!({"action": "variables", "name": "main"}),
            Works,
        ),
        // Arguments that hosts add.
        (
            "eval",
            json!({"code": "1", "wait_for_previous": true}),
            Works,
        ),
        (
            "read",
            json!({"path": "a.ipynb", "wait_for_previous": "false"}),
            Works,
        ),
        // Other types of values.
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": 1, "source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": "1", "source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": "cell:1", "source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": "first-code", "source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": "id:first", "source": "x = 1"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "index": 1, "source": ["x = 1\n", "y = 2"]}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "move", "path": "a.ipynb", "cell": "first-code", "to": "0"}),
            Works,
        ),
        (
            "notebook",
            json!({"action": "move", "path": "a.ipynb", "cell": 1.0, "index": 0.0}),
            Works,
        ),
        ("run", json!({"path": "a.ipynb", "cells": [1, 2]}), Works),
        ("run", json!({"path": "a.ipynb", "cells": "[1, 2]"}), Works),
        ("run", json!({"path": "a.ipynb", "cells": 1}), Works),
        (
            "run",
            json!({"path": "a.ipynb", "cells": "first-code,last"}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "restart": "true", "timeout": "30"}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "params": "{\"year\": 1}"}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "edits": "[{\"action\": \"edit\", \"cell\": 1, \"source\": \"x = 1\"}]"}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "edits": [{"action": "edit", "cell": 1, "source": "x = 1"}]}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "edit_cell": 1, "source": "x = 1"}),
            Works,
        ),
        (
            "run",
            json!({"path": "a.ipynb", "tag": "none"}),
            Rejected(&["none", "tag"]),
        ),
        ("eval", json!({"cells": ["1 + 1", "2"]}), Works),
        (
            "eval",
            json!({"code": "1", "timeout": "30", "background": "false"}),
            Works,
        ),
        ("read", json!({"path": "a.ipynb", "offset": "10"}), Works),
        // Rejected, with the argument and what to write instead.
        (
            "read",
            json!({"path": "a.ipynb", "cells": "2-3"}),
            Rejected(&["`cells`", "a.ipynb:cells=2-3"]),
        ),
        (
            "read",
            json!({"path": "a.ipynb", "cell": 2}),
            Rejected(&["`cell`", "a.ipynb:cells=2"]),
        ),
        (
            "read",
            json!({"pth": "a.ipynb"}),
            Rejected(&["`pth`", "did you mean `path`?"]),
        ),
        ("read", json!({}), Rejected(&["`path` is missing"])),
        (
            "read",
            json!({"path": ["a.ipynb", 1]}),
            Rejected(&["`path` must be text"]),
        ),
        (
            "notebook",
            json!({"action": "move", "path": "a.ipynb", "cell": 1, "to": -1}),
            Rejected(&["`index` must be a whole number"]),
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": {"index": 1}, "source": ""}),
            Rejected(&["`cell` must be a cell"]),
        ),
        (
            "notebook",
            json!({"action": "explode", "path": "a.ipynb"}),
            Rejected(&["`action` must be one of edit, insert", "outline"]),
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": 1}),
            Rejected(&["requires `source`"]),
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": 99, "source": ""}),
            Rejected(&["99 out of range (0-2)"]),
        ),
        (
            "notebook",
            json!({"action": "edit", "path": "a.ipynb", "cell": "nothere", "source": ""}),
            Rejected(&["nothere", "existing ids: "]),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "nowhere", "new": "x"}),
            Rejected(&["does not occur", "`read"]),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "answer", "new": "x"}),
            Rejected(&[
                "occurs 3 times",
                "cell 1, line 1: answer = 42",
                "cell 2, line 1: answer + 1.0",
                "`all`",
            ]),
        ),
        (
            "edit",
            json!({"path": "a.ipynb", "old": "42", "new": "x", "revision": "latest"}),
            Rejected(&["Invalid `revision`", "hexadecimal"]),
        ),
        (
            "edit",
            json!({"path": "data.csv", "old": "1", "new": "2"}),
            Rejected(&["notebook", ".ipynb"]),
        ),
        (
            "write",
            json!({"path": "sub/new.ipynb", "text": "# %% [code]\n1", "create": true}),
            Rejected(&["sub", "does not exist"]),
        ),
        (
            "write",
            json!({"path": "other.ipynb", "text": "# %% [code]\n1"}),
            Rejected(&["`create`"]),
        ),
        (
            "write",
            json!({"path": "other.ipynb", "text": "x = 1", "create": true}),
            Rejected(&["# %% [code]"]),
        ),
        (
            "run",
            json!({"path": "a.ipynb:cells=1"}),
            Rejected(&["selector"]),
        ),
        (
            "run",
            json!({"path": "a.ipynb", "cells": "77"}),
            Rejected(&["77"]),
        ),
        (
            "run",
            json!({"path": "a.ipynb", "timeout": "soon"}),
            Rejected(&["`timeout` must be a number of seconds"]),
        ),
        (
            "run",
            json!({"path": "missing.ipynb"}),
            Rejected(&["missing.ipynb", "a.ipynb"]),
        ),
        (
            "run",
            json!({"path": "a.ipynb", "edits": [{"cell": 1}]}),
            Rejected(&["`edits[0]`", "`action` is missing"]),
        ),
        ("eval", json!({}), Rejected(&["either `code` or `cells`"])),
        (
            "eval",
            json!({"code": "1", "backend": "abacus"}),
            Rejected(&["`backend` must be one of runner, jupyter"]),
        ),
        (
            "eval",
            json!({"code": "1", "session": "@9"}),
            Rejected(&["no session @9", "`kernels` list"]),
        ),
        (
            "runs",
            json!({"action": "wait"}),
            Rejected(&["`wait` needs the id of a `run`"]),
        ),
        (
            "runs",
            json!({"action": "status"}),
            Rejected(&["one of list, wait, tail"]),
        ),
        (
            "kernels",
            json!({"action": "restart", "session": "main"}),
            Rejected(&["one of list, specs"]),
        ),
        (
            "kernels",
            json!({"action": "variables"}),
            Rejected(&["needs a `session`"]),
        ),
        (
            "stop",
            json!({"action": "interrupt", "session": "unknown"}),
            Rejected(&["unknown"]),
        ),
        (
            "artifact",
            json!({"action": "search", "id": "artifact://1"}),
            Rejected(&["`grep` or `regex`"]),
        ),
        (
            "artifact",
            json!({"action": "read", "id": "artifact://1"}),
            Rejected(&["one of list, search"]),
        ),
        (
            "read",
            json!({"path": "https://example.org/a.ipynb"}),
            Rejected(&["cannot be read", "artifact://ID"]),
        ),
        (
            "read",
            json!({"path": "../a.ipynb"}),
            Rejected(&["`..` is not allowed"]),
        ),
    ]
}

/// Words of the implementation that a model cannot use.
const FOREIGN_WORDS: [&str; 7] = [
    "usize",
    "struct",
    "expected a sequence",
    "invalid type",
    "unknown field",
    "--",
    "visitor",
];

#[test]
fn a_wrong_call_works_or_says_how_to_correct_it() {
    let calls = calls();
    assert!(calls.len() >= 60, "{}", calls.len());
    let mut problems = Vec::new();
    let context = Context::with_notebook();
    let original = context.content("a.ipynb");
    std::fs::write(context.path("data.csv"), "1,2\n3,4\n").unwrap();
    let mut client = Client::older(&context);
    client.call("eval", json!({"code": "x = 1"})).ok();
    for (tool, arguments, expected) in calls {
        std::fs::write(context.path("a.ipynb"), &original).unwrap();
        std::fs::remove_file(context.path("new.ipynb")).ok();
        let reply = client.call(tool, arguments.clone());
        let text = reply.text();
        let is_error = reply.is_error() || text.starts_with("error: ");
        let problem = match expected {
            Works if is_error => "does not work".to_owned(),
            Works => continue,
            Rejected(_) if !reply.is_error() => "is not rejected".to_owned(),
            Rejected(parts) => {
                let missing: Vec<&&str> =
                    parts.iter().filter(|part| !text.contains(**part)).collect();
                let foreign: Vec<&&str> = FOREIGN_WORDS
                    .iter()
                    .filter(|word| text.contains(**word))
                    .collect();
                if context.content("a.ipynb") != original {
                    "changes the notebook".to_owned()
                } else if !missing.is_empty() {
                    format!("lacks {missing:?}")
                } else if !foreign.is_empty() {
                    format!("contains {foreign:?}")
                } else if text.lines().count() > 12 {
                    "is long".to_owned()
                } else {
                    continue;
                }
            }
        };
        problems.push(format!("{tool} {arguments} {problem}:\n{text}"));
    }
    assert!(
        problems.is_empty(),
        "{} calls:\n{}",
        problems.len(),
        problems.join("\n\n")
    );
}
