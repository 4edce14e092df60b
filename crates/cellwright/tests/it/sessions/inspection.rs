//! `kernels list`, `variables`, `inspect`, `complete`, `history` and `export`.

use std::process::Command;

use serde_json::Value;

use super::SessionFixture;

#[test]
fn variables_are_listed_with_type_and_value() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["import json\nnames = ['a', 'b']\ndef add(a, b=1):\n    'Adds two numbers.'\n    return a + b\n_hidden = 1"]).exits(0);
    let listed = fixture
        .run(&["kernels", "variables", "s", "--json"])
        .exits(0)
        .json();
    let listed = listed["variables"].as_array().unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"names") && names.contains(&"add"),
        "{names:?}"
    );
    assert!(!names.contains(&"_hidden"), "{names:?}");
    let table = fixture.run(&["kernels", "variables", "s"]).exits(0).stdout;
    let row = table
        .lines()
        .find(|line| line.starts_with("names"))
        .unwrap();
    assert!(row.contains("list") && row.contains("['a', 'b']"), "{row}");
    let inspected = fixture
        .run(&["kernels", "inspect", "s", "add"])
        .exits(0)
        .stdout;
    assert!(inspected.contains("Adds two numbers."), "{inspected}");
    let source = fixture
        .run(&["kernels", "inspect", "s", "add", "--source"])
        .exits(0)
        .stdout;
    assert!(source.contains("return a + b"), "{source}");
    let unknown = fixture.run(&["kernels", "inspect", "s", "nothing_of_the_kind"]);
    assert!(unknown.exits(2).stderr.contains("nothing_of_the_kind"));
    let found = fixture
        .run(&["kernels", "complete", "s", "names.app"])
        .exits(0)
        .stdout;
    assert!(found.lines().any(|line| line.contains("append")), "{found}");
    let found = fixture
        .run(&["kernels", "complete", "s", "json.dum", "--json"])
        .exits(0)
        .json();
    assert!(found.to_string().contains("dumps"), "{found}");
    // None of these requests counts as an execution.
    assert_eq!(fixture.kernel("s")["executions"], 1);
    let other = fixture.run(&["kernels", "variables", "t"]).exits(2);
    assert!(
        other.stderr.contains("existing sessions: s"),
        "{}",
        other.stderr
    );
}

#[test]
fn the_list_shows_every_session() {
    let fixture = SessionFixture::new();
    let none = fixture.run(&["kernels", "list"]).exits(0);
    assert!(none.stderr.contains("no sessions"), "{}", none.stderr);
    assert!(
        !fixture.host.file("host.json").exists(),
        "`kernels list` started a host"
    );
    fixture.eval("s", &["1"]).exits(0);
    let kernel = fixture.kernel("s");
    assert_eq!(kernel["state"], "idle");
    assert_eq!(kernel["executions"], 1);
    assert_eq!(kernel["generation"], 1);
    assert_eq!(kernel["owners"], serde_json::json!(["user"]));
    assert!(kernel["memory_bytes"].as_u64().unwrap() > 1_000_000);
    let pid = fixture.eval_stdout("s", "import os; os.getpid()");
    assert_eq!(kernel["pid"].to_string(), pid.trim());
    let table = fixture.run(&["kernels", "list"]).exits(0).stdout;
    assert!(
        table.starts_with("SESSION") && table.contains("idle"),
        "{table}"
    );
    let all = fixture.run(&["kernels", "stop", "--all"]).exits(0);
    assert!(all.stderr.contains("1 session was ended"), "{}", all.stderr);
    assert!(fixture.kernels().is_empty());
}

/// A notebook that nbformat reads and validates; `None` without the interpreter of the tests.
fn read_with_nbformat(path: &std::path::Path) -> Option<Value> {
    let python = cellwright_test_support::python()?;
    let check = "import json, sys, nbformat\nbook = nbformat.read(sys.argv[1], as_version=nbformat.NO_CONVERT)\nnbformat.validate(book)\nassert nbformat.validator.isvalid(book)\nprint(json.dumps(book))";
    let output = Command::new(python)
        .args(["-W", "error", "-c", check])
        .arg(path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn an_exported_session_is_a_notebook_with_the_outputs_of_its_cells() {
    let fixture = SessionFixture::new();
    let cells = [
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n'value'",
        "display({'text/html': '<b>bold</b>', 'text/plain': 'bold'}, raw=True)",
        "1 / 0",
        "x = 1",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    ];
    for cell in cells {
        fixture.eval("s", &[cell]);
    }
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    fixture.eval("s", &["'after'"]).exits(0);
    fixture
        .run(&["kernels", "export", "s", "out.ipynb"])
        .exits(0);
    let own: Value = serde_json::from_str(&fixture.host.context.content("out.ipynb")).unwrap();
    let book = read_with_nbformat(&fixture.path("out.ipynb")).unwrap_or(own);
    let written = book["cells"].as_array().unwrap();
    assert_eq!(written.len(), cells.len() + 2);
    assert_eq!(written[5]["cell_type"], "markdown");
    let sources: Vec<String> = written
        .iter()
        .filter(|cell| cell["cell_type"] == "code")
        .map(|cell| match &cell["source"] {
            Value::String(text) => text.clone(),
            lines => lines
                .as_array()
                .unwrap()
                .iter()
                .map(|line| line.as_str().unwrap())
                .collect(),
        })
        .collect();
    assert_eq!(sources[..5], cells);
    let outputs = |cell: usize| written[cell]["outputs"].as_array().unwrap();
    let kinds = |cell: usize| -> Vec<&str> {
        outputs(cell)
            .iter()
            .map(|entry| entry["output_type"].as_str().unwrap())
            .collect()
    };
    assert_eq!(kinds(0), ["stream", "stream", "execute_result"]);
    assert_eq!(outputs(0)[0]["name"], "stdout");
    assert_eq!(
        outputs(0)[2]["execution_count"],
        written[0]["execution_count"]
    );
    assert_eq!(kinds(1), ["display_data"]);
    assert!(
        outputs(1)[0]["data"]["text/html"]
            .to_string()
            .contains("<b>bold</b>")
    );
    assert_eq!(kinds(2), ["error"]);
    assert_eq!(outputs(2)[0]["ename"], "ZeroDivisionError");
    assert_eq!(kinds(3), [""; 0]);
    let has_matplotlib = !kinds(4).contains(&"error");
    if has_matplotlib {
        assert!(
            outputs(4)
                .iter()
                .any(|entry| entry["data"]["image/png"] != Value::Null)
        );
    }
    assert_eq!(written[6]["execution_count"], 1);
    // `read` shows the exported cells.
    let view = fixture.run(&["read", "out.ipynb"]).exits(0).stdout;
    assert!(view.contains("1 / 0"), "{view}");

    let before = fixture.host.context.content("out.ipynb");
    let refused = fixture
        .run(&["kernels", "export", "s", "out.ipynb"])
        .exits(2);
    assert!(refused.stderr.contains("exists"), "{}", refused.stderr);
    assert_eq!(fixture.host.context.content("out.ipynb"), before);
    fixture.eval("s", &["'more'"]).exits(0);
    fixture
        .run(&["kernels", "export", "s", "out.ipynb", "--force"])
        .exits(0);
    read_with_nbformat(&fixture.path("out.ipynb"));
    assert!(fixture.host.context.content("out.ipynb").contains("'more'"));
}

#[test]
fn the_history_contains_the_generation_of_each_cell() {
    let fixture = SessionFixture::new();
    fixture.eval("s", &["x = 1"]).exits(0);
    fixture
        .eval("s", &["--cell", "x +", "--cell", "never"])
        .exits(1);
    fixture.eval("s", &["--reset", "y = 2\ny"]).exits(0);
    fixture
        .eval("s", &["--cell", "a = 1", "--cell", "a"])
        .exits(0);
    let history = fixture
        .run(&["kernels", "history", "s", "--json"])
        .exits(0)
        .json();
    let lines: Vec<String> = history["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry["generation"], entry["execution_count"], entry["status"], entry["code"]
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            r#"1 1 "ok" "x = 1""#,
            r#"1 2 "error" "x +""#,
            r#"2 1 "ok" "y = 2\ny""#,
            r#"2 2 "ok" "a = 1""#,
            r#"2 3 "ok" "a""#,
        ]
    );
    let table = fixture.run(&["kernels", "history", "s"]).exits(0).stdout;
    assert!(table.contains("y = 2 […]"), "{table}");
    // A new session with the same name has an empty history.
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    fixture.eval("s", &["1"]).exits(0);
    let history = fixture
        .run(&["kernels", "history", "s", "--json"])
        .exits(0)
        .json();
    assert_eq!(history["cells"].as_array().unwrap().len(), 1);
}
