//! Selection of the cells that run.

use insta::assert_snapshot;
use serde_json::json;

use super::{
    BACKENDS, RunFixture, code, executed, markdown, masked_output, notebook_json, notices,
    statuses, tagged,
};

/// The source of a cell that writes its name into `log`.
fn logging_source(name: &str) -> String {
    format!("with open('log', 'a') as file: file.write('{name}')\nprint('{name}')")
}

/// Cells 0 to 6: cell 2 is Markdown, cell 4 is empty, cells 5 and 6 have tags.
fn seven_cells() -> Vec<serde_json::Value> {
    vec![
        executed(&logging_source("0")),
        executed(&logging_source("1")),
        markdown("# text"),
        executed(&logging_source("3")),
        executed(" \n"),
        tagged(&logging_source("5"), &["plot"]),
        tagged(&logging_source("6"), &["plot", "slow"]),
    ]
}

#[test]
fn selected_cells_run_in_order_and_other_cells_are_not_changed() {
    let choices: [(&[&str], &str); 17] = [
        (&[], "01356"),
        (&["--cells", "3"], "3"),
        (&["--cells", "id:c5,0-1"], "015"),
        (&["--cells", "5-"], "56"),
        (&["--cells", "0-4"], "013"),
        (&["--from", "3"], "356"),
        (&["--from", "id:c3"], "356"),
        (&["--to", "3"], "013"),
        (&["--above", "3"], "01"),
        (&["--below", "3"], "56"),
        (&["--above", "2"], "01"),
        (&["--below", "2"], "356"),
        (&["--tag", "plot"], "56"),
        (&["--tag", "slow", "--tag", "plot"], "56"),
        (&["--tag", "plot", "--to", "5"], "5"),
        (&["--from", "1", "--to", "3"], "13"),
        (&["--cells", "0,5", "--from", "1"], "5"),
    ];
    for (arguments, expected) in choices {
        let fixture = RunFixture::with(&seven_cells());
        let mut all = vec!["--json"];
        all.extend(arguments);
        let report = fixture.run(&all).exits(0).json();
        assert_eq!(fixture.log(), expected, "{arguments:?}");
        let indexes: String = report["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["index"].to_string())
            .collect();
        assert_eq!(indexes, expected);
        // Cells that did not run are not changed.
        for (index, output) in fixture.outputs().iter().enumerate() {
            let is_selected = expected.contains(&index.to_string());
            let unchanged = if index == 2 { "" } else { "old" };
            assert_eq!(
                output,
                if is_selected {
                    &expected[expected.find(&index.to_string()).unwrap()..][..1]
                } else {
                    unchanged
                }
            );
        }
        let counts = fixture.counts();
        let new_counts: Vec<_> = counts
            .iter()
            .filter(|count| count.is_u64() && **count != 99)
            .collect();
        assert_eq!(new_counts.len(), expected.len(), "{counts:?}");
    }
}

#[test]
fn all_code_cells_run_on_every_backend() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&seven_cells());
        let report = fixture.run_on(backend, &["--json"]).exits(0).json();
        assert_eq!(report["kernel"]["backend"], backend);
        assert_eq!(fixture.log(), "01356");
        assert_eq!(fixture.outputs(), ["0", "1", "", "3", "old", "5", "6"]);
        assert_eq!(
            fixture.counts(),
            [
                json!(1),
                json!(2),
                json!(null),
                json!(3),
                json!(99),
                json!(4),
                json!(5)
            ]
        );
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn an_invalid_selection_is_refused_and_nothing_runs() {
    let fixture = RunFixture::with(&seven_cells());
    let before = fixture.content("a.ipynb");
    for (name, arguments) in [
        ("text", &["--cells", "2"][..]),
        ("beyond", &["--cells", "7"]),
        ("backwards", &["--cells", "5-3"]),
        ("nonsense", &["--cells", "x"]),
        ("no_such_id", &["--from", "id:zz"]),
        ("no_such_tag", &["--tag", "no"]),
        ("stale_alone", &["--stale"]),
        ("and_below_alone", &["--and-below"]),
        ("two_forms", &["--json", "--events"]),
    ] {
        let result = fixture.run(arguments).exits(2);
        assert_snapshot!(format!("refused_{name}"), result.output_masked());
        assert_eq!(fixture.log(), "", "{name}");
        assert_eq!(fixture.content("a.ipynb"), before);
    }
}

#[test]
fn tags_skip_cells_and_permit_exceptions() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            tagged(&logging_source("0"), &["skip-execution"]),
            tagged("1 / 0", &["raises-exception"]),
            code(&logging_source("2")),
            tagged(&logging_source("3"), &["raises-exception"]),
        ]);
        let report = fixture.run_on(backend, &["--json"]).exits(0).json();
        assert_eq!(report["status"], "ok");
        assert_eq!(statuses(&report), ["error", "ok", "ok"]);
        assert_eq!(fixture.outputs(), ["old", "!ZeroDivisionError", "2", "3"]);
        assert_eq!(fixture.log(), "23");
    }
}

/// Python writes values such as NaN that are not JSON. Tags in the same metadata still apply.
#[test]
fn tags_apply_beside_values_that_are_not_json() {
    let fixture = RunFixture::new();
    let mut skipped = tagged(&logging_source("0"), &["skip-execution"]);
    skipped["metadata"]["score"] = json!("SCORE");
    for value in ["NaN", "-Infinity", "1e999", r#""\ud800""#] {
        let text = notebook_json(&[skipped.clone(), code(&logging_source("1"))])
            .replace("\"SCORE\"", value);
        let text = text.replace("\"metadata\": {},\n \"nbformat\"", &format!("\"metadata\": {{\"x\": {value}, \"kernelspec\": {{\"name\": \"python3\", \"display_name\": \"mine\", \"language\": \"python\"}}}},\n \"nbformat\""));
        fixture.host.context.file("a.ipynb", &text);
        std::fs::remove_file(fixture.path("log")).ok();
        fixture.run(&[]).exits(0);
        assert_eq!(fixture.log(), "1", "{value}");
        let now = fixture.content("a.ipynb");
        assert!(now.contains("\"display_name\": \"mine\""), "{now}");
        assert!(now.contains(value), "{now}");
    }
}

#[test]
fn a_notebook_without_cells_to_run_is_not_changed() {
    let nothing: [&[serde_json::Value]; 3] =
        [&[], &[markdown("# text")], &[executed(""), executed("  ")]];
    for cells in nothing {
        let fixture = RunFixture::with(cells);
        let before = fixture.content("a.ipynb");
        let result = fixture.run(&[]).exits(0);
        assert!(
            result
                .stderr
                .contains("no cell is selected to run, nothing written"),
            "{}",
            result.stderr
        );
        let report = fixture.run(&["--json"]).exits(0).json();
        assert_eq!(report["status"], "ok");
        assert_eq!(notices(&report), ["nothing_to_run"]);
        for name in ["session", "kernel", "died"] {
            assert!(report[name].is_null() && report.as_object().unwrap().contains_key(name));
        }
        let events = fixture.run(&["--events"]).exits(0).stdout;
        let event: serde_json::Value = serde_json::from_str(&events).unwrap();
        assert_eq!(event["event"], "done");
        assert_eq!(fixture.content("a.ipynb"), before);
        // `-o` still writes a copy.
        fixture.run(&["-o", "b.ipynb"]).exits(0);
        assert_eq!(fixture.content("b.ipynb"), before);
    }
}

#[test]
fn a_file_that_is_no_notebook_is_refused() {
    let fixture = RunFixture::new();
    for (name, content) in [
        ("empty", ""),
        ("text", "hello"),
        ("old", "{\"nbformat\": 3, \"worksheets\": []}"),
    ] {
        fixture.host.context.file("a.ipynb", content);
        let result = fixture.run(&[]).exits(2);
        assert_snapshot!(format!("no_notebook_{name}"), masked_output(&result));
        assert_eq!(fixture.content("a.ipynb"), content);
    }
    std::fs::remove_file(fixture.path("a.ipynb")).unwrap();
    let result = fixture.run(&[]).exits(2);
    assert_snapshot!("no_notebook_missing", masked_output(&result));
    assert!(!fixture.path("a.ipynb").exists());
}
