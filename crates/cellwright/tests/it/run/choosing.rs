//! Which cells run.

use insta::assert_snapshot;
use serde_json::json;

use super::{
    BACKENDS, RunFixture, code, markdown, masked_output, notebook_json, notices, old, statuses,
    tagged,
};

/// A cell that writes its name into `log`.
fn logs(name: &str) -> String {
    format!("with open('log', 'a') as file: file.write('{name}')\nprint('{name}')")
}

/// Cells `0` to `6`: the third is text, the fifth is empty, the last two have tags.
fn seven() -> Vec<serde_json::Value> {
    vec![
        old(&logs("0")),
        old(&logs("1")),
        markdown("# text"),
        old(&logs("3")),
        old(" \n"),
        tagged(&logs("5"), &["plot"]),
        tagged(&logs("6"), &["plot", "slow"]),
    ]
}

#[test]
fn what_is_chosen_runs_in_order_and_nothing_else_is_touched() {
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
        let fixture = RunFixture::with(&seven());
        let mut all = vec!["--json"];
        all.extend(arguments);
        let answer = fixture.run(&all).exits(0).json();
        assert_eq!(fixture.log(), expected, "{arguments:?}");
        let indexes: String = answer["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["index"].to_string())
            .collect();
        assert_eq!(indexes, expected);
        // What did not run is as it was.
        for (index, said) in fixture.outputs().iter().enumerate() {
            let ran = expected.contains(&index.to_string());
            let was = if index == 2 { "" } else { "old" };
            assert_eq!(
                said,
                if ran {
                    &expected[expected.find(&index.to_string()).unwrap()..][..1]
                } else {
                    was
                }
            );
        }
        let counts = fixture.counts();
        let ran: Vec<_> = counts
            .iter()
            .filter(|count| count.is_u64() && **count != 99)
            .collect();
        assert_eq!(ran.len(), expected.len(), "{counts:?}");
    }
}

#[test]
fn all_of_them_run_on_every_backend() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&seven());
        let answer = fixture.run_on(backend, &["--json"]).exits(0).json();
        assert_eq!(answer["kernel"]["backend"], backend);
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
fn what_cannot_be_meant_is_refused_and_nothing_runs() {
    let fixture = RunFixture::with(&seven());
    let before = fixture.content("a.ipynb");
    for (name, arguments) in [
        ("text", &["--cells", "2"][..]),
        ("beyond", &["--cells", "7"]),
        ("backwards", &["--cells", "5-3"]),
        ("nonsense", &["--cells", "x"]),
        ("no_such_id", &["--from", "id:zz"]),
        ("no_such_tag", &["--tag", "no"]),
        ("stale_alone", &["--stale"]),
        ("below_nothing", &["--and-below"]),
        ("two_forms", &["--json", "--events"]),
    ] {
        let ran = fixture.run(arguments).exits(2);
        assert_snapshot!(format!("refused_{name}"), ran.output_masked());
        assert_eq!(fixture.log(), "", "{name}");
        assert_eq!(fixture.content("a.ipynb"), before);
    }
}

#[test]
fn cells_say_themselves_that_they_do_not_run_or_may_fail() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            tagged(&logs("0"), &["skip-execution"]),
            tagged("1 / 0", &["raises-exception"]),
            code(&logs("2")),
            tagged(&logs("3"), &["raises-exception"]),
        ]);
        let answer = fixture.run_on(backend, &["--json"]).exits(0).json();
        assert_eq!(answer["status"], "ok");
        assert_eq!(statuses(&answer), ["error", "ok", "ok"]);
        assert_eq!(fixture.outputs(), ["old", "!ZeroDivisionError", "2", "3"]);
        assert_eq!(fixture.log(), "23");
    }
}

/// Python writes NaN where JSON has no word for it; what else such a cell says about itself still counts.
#[test]
fn tags_are_seen_beside_things_that_only_python_calls_json() {
    let fixture = RunFixture::new();
    let mut skipped = tagged(&logs("0"), &["skip-execution"]);
    skipped["metadata"]["score"] = json!("SCORE");
    for odd in ["NaN", "-Infinity", "1e999", r#""\ud800""#] {
        let text = notebook_json(&[skipped.clone(), code(&logs("1"))]).replace("\"SCORE\"", odd);
        let text = text.replace("\"metadata\": {},\n \"nbformat\"", &format!("\"metadata\": {{\"x\": {odd}, \"kernelspec\": {{\"name\": \"python3\", \"display_name\": \"mine\", \"language\": \"python\"}}}},\n \"nbformat\""));
        fixture.host.context.file("a.ipynb", &text);
        std::fs::remove_file(fixture.path("log")).ok();
        fixture.run(&[]).exits(0);
        assert_eq!(fixture.log(), "1", "{odd}");
        let now = fixture.content("a.ipynb");
        assert!(now.contains("\"display_name\": \"mine\""), "{now}");
        assert!(now.contains(odd), "{now}");
    }
}

#[test]
fn a_notebook_without_anything_to_run_is_left_alone() {
    let nothing: [&[serde_json::Value]; 3] = [&[], &[markdown("# text")], &[old(""), old("  ")]];
    for cells in nothing {
        let fixture = RunFixture::with(cells);
        let before = fixture.content("a.ipynb");
        let ran = fixture.run(&[]).exits(0);
        assert!(
            ran.stderr.contains("no cell is to run, nothing written"),
            "{}",
            ran.stderr
        );
        let answer = fixture.run(&["--json"]).exits(0).json();
        assert_eq!(answer["status"], "ok");
        assert_eq!(notices(&answer), ["nothing_to_run"]);
        for name in ["session", "kernel", "died"] {
            assert!(answer[name].is_null() && answer.as_object().unwrap().contains_key(name));
        }
        let events = fixture.run(&["--events"]).exits(0).stdout;
        let event: serde_json::Value = serde_json::from_str(&events).unwrap();
        assert_eq!(event["event"], "done");
        assert_eq!(fixture.content("a.ipynb"), before);
        // Whoever wants it somewhere else gets it there all the same.
        fixture.run(&["-o", "b.ipynb"]).exits(0);
        assert_eq!(fixture.content("b.ipynb"), before);
    }
}

#[test]
fn what_is_not_a_notebook_is_refused() {
    let fixture = RunFixture::new();
    for (name, content) in [
        ("empty", ""),
        ("text", "hello"),
        ("old", "{\"nbformat\": 3, \"worksheets\": []}"),
    ] {
        fixture.host.context.file("a.ipynb", content);
        let ran = fixture.run(&[]).exits(2);
        assert_snapshot!(format!("no_notebook_{name}"), masked_output(&ran));
        assert_eq!(fixture.content("a.ipynb"), content);
    }
    std::fs::remove_file(fixture.path("a.ipynb")).unwrap();
    let ran = fixture.run(&[]).exits(2);
    assert_snapshot!("no_notebook_missing", masked_output(&ran));
    assert!(!fixture.path("a.ipynb").exists());
}
