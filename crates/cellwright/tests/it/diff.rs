//! `diff`: differences between two notebooks.

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

/// A notebook that differs from `THREE_CELLS` in everything that `diff` reports.
fn changed_notebook() -> String {
    let cells = THREE_CELLS
        .replace("answer = 42\\n", "answer = 43\\n")
        .replace("\"42\\n\"", "\"43\\n\", \"44\\n\"")
        .replace("\"execution_count\": 1", "\"execution_count\": 7")
        .replace("\"tags\": []", "\"tags\": [\"slow\"]")
        .replace("\"Python 3\"", "\"Python 3.14\"");
    // The title moves to the end, and there is a new cell.
    let (before, rest) = cells
        .split_once("  {\n   \"cell_type\": \"markdown\"")
        .unwrap();
    let (title, rest) = rest.split_once("  },\n").unwrap();
    let (middle, after) = rest.split_once("\n  }\n ],").unwrap();
    let new = "  {\n   \"cell_type\": \"raw\",\n   \"id\": \"new\",\n   \"metadata\": {},\n   \"source\": []\n  }";
    format!(
        "{before}{middle}\n  }},\n{new},\n  {{\n   \"cell_type\": \"markdown\"{title}  }}\n ],{after}"
    )
}

#[test]
fn differences_are_shown_cell_by_cell() {
    let context = Context::with_notebook();
    context.file("b.ipynb", changed_notebook());
    assert_snapshot!(
        context
            .run(&["diff", "a.ipynb", "b.ipynb"])
            .exits(1)
            .output_masked()
    );
    assert_snapshot!(
        "diff_backwards_with_outputs",
        context
            .run(&["diff", "b.ipynb", "a.ipynb", "--outputs"])
            .exits(1)
            .output_masked()
    );
    assert_snapshot!(
        "diff_sources",
        context
            .run(&["diff", "a.ipynb", "b.ipynb", "--sources"])
            .exits(1)
            .output_masked()
    );
}

#[test]
fn equal_notebooks_are_success_and_layout_is_no_difference() {
    let context = Context::with_notebook();
    let result = context.run(&["diff", "a.ipynb", "a.ipynb"]).exits(0);
    assert_eq!(result.stdout, "");
    let value: serde_json::Value = serde_json::from_str(THREE_CELLS).unwrap();
    context.file("minified.ipynb", value.to_string());
    let result = context.run(&["diff", "a.ipynb", "minified.ipynb"]).exits(0);
    assert_eq!(result.stdout, "");
    assert_eq!(result.stderr, "no difference\n");
    let rerun = THREE_CELLS.replace("\"42\\n\"", "\"again\\n\"");
    context.file("rerun.ipynb", rerun);
    context
        .run(&["diff", "a.ipynb", "rerun.ipynb", "--sources"])
        .exits(0);
    context.run(&["diff", "a.ipynb", "rerun.ipynb"]).exits(1);
}

#[test]
fn the_json_report_contains_all_differences() {
    let context = Context::with_notebook();
    context.file("b.ipynb", changed_notebook());
    let report = context
        .run(&["diff", "a.ipynb", "b.ipynb", "--json"])
        .exits(1)
        .json();
    assert_eq!(report["same"], false);
    assert_eq!(
        report["members"][0]["name"],
        "metadata.kernelspec.display_name"
    );
    assert_eq!(report["members"][0]["new"], "Python 3.14");
    let cells = report["cells"].as_array().unwrap();
    let code = &cells[0];
    assert_eq!(code["change"], "changed");
    assert_eq!(
        (&code["old_index"], &code["new_index"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        code["source"],
        "@@ -1,2 +1,2 @@\n-answer = 42\n+answer = 43\n print(answer)\n"
    );
    assert_eq!(code["outputs"][0]["old"]["what"][0], "stdout");
    assert_eq!(code["output_text"], "@@ -1 +1,2 @@\n-42\n+43\n+44\n");
    assert_eq!(code["execution_count"], serde_json::json!([1, 7]));
    assert_eq!(code["members"][0]["new"], serde_json::json!(["slow"]));
    let kinds: Vec<&str> = cells
        .iter()
        .map(|cell| cell["change"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["changed", "added", "moved"]);
    let same = context
        .run(&["diff", "a.ipynb", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(same["same"], true);
    assert_eq!(same["cells"], serde_json::json!([]));
}

#[test]
fn a_file_that_is_no_notebook_is_an_error_and_not_a_difference() {
    let context = Context::with_notebook();
    context.file("broken.ipynb", "{\"cells\": [");
    for arguments in [
        ["diff", "a.ipynb", "broken.ipynb"],
        ["diff", "broken.ipynb", "a.ipynb"],
        ["diff", "a.ipynb", "missing.ipynb"],
        ["diff", "a.ipynb", "HEAD:a.ipynb"],
    ] {
        let result = context.run(&arguments).exits(2);
        assert!(result.stderr.starts_with("error: "), "{}", result.stderr);
    }
}
