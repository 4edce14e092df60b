//! Output of `run` as text, events and JSON, and displays in the file.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, code, executed, markdown, masked_output, tagged};

fn failing_cells() -> Vec<Value> {
    vec![
        markdown("# A story"),
        code("print('first')\n40 + 2"),
        code("quiet = True"),
        code(
            "import sys\nprint('to stderr', file=sys.stderr)\ndisplay({'text/markdown': '**bold**', 'text/plain': 'bold'}, raw=True)",
        ),
        tagged("raise ValueError('meant')", &["raises-exception"]),
        code("def f(): raise KeyError('not meant')\nf()"),
        code("print('never')"),
        code("print('never either')"),
    ]
}

#[test]
fn the_text_output_names_each_cell_and_its_status() {
    let fixture = RunFixture::with(&failing_cells());
    assert_snapshot!("failed_run", masked_output(&fixture.run(&[]).exits(1)));
    assert_snapshot!(
        "failed_run_quiet",
        masked_output(&fixture.run(&["--quiet"]).exits(1))
    );
    let fixture = RunFixture::with(&[code("1"), code("2")]);
    assert_snapshot!("successful_run", masked_output(&fixture.run(&[]).exits(0)));
    assert_snapshot!(
        "output_file",
        masked_output(&fixture.run(&["-o", "b.ipynb", "--cells", "1"]).exits(0))
    );
    assert_snapshot!(
        "nothing_to_run",
        masked_output(&fixture.run(&["--above", "0"]).exits(0))
    );
}

#[test]
fn the_error_names_the_reason_of_the_end() {
    let fixture = RunFixture::with(&[code("1"), code("import os\nos._exit(7)"), code("2")]);
    assert_snapshot!("died", masked_output(&fixture.run(&[]).exits(2)));
    let fixture = RunFixture::with(&[code("1"), code("import time\ntime.sleep(100)"), code("2")]);
    assert_snapshot!(
        "timed_out",
        masked_output(&fixture.run(&["--timeout", "2"]).exits(124))
    );
    let fixture = RunFixture::with(&[code("1 / 0"), code("2"), code("oops")]);
    assert_snapshot!(
        "keep_going",
        masked_output(&fixture.run(&["--keep-going"]).exits(1))
    );
}

/// Each line is a JSON document. `begin` and `end` alternate, and `done` is the last event.
#[test]
fn events_report_each_step_of_a_run() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            code("print('ä' * 3)\n5"),
            markdown("x"),
            code("import sys\nprint('e', file=sys.stderr)\n1 / 0"),
            code("3"),
        ]);
        let result = fixture.run_on(backend, &["--events"]).exits(1);
        let events: Vec<Value> = result
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let names: Vec<&str> = events
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        let marks: Vec<(&str, &Value)> = events
            .iter()
            .filter_map(|event| {
                Some((
                    event["event"]
                        .as_str()
                        .filter(|name| ["begin", "end"].contains(name))?,
                    &event["index"],
                ))
            })
            .collect();
        assert_eq!(
            marks,
            [
                ("begin", &json!(0)),
                ("end", &json!(0)),
                ("begin", &json!(2)),
                ("end", &json!(2))
            ]
        );
        assert_eq!(names[..2], ["kernel_ready", "begin"]);
        assert_eq!(events[0]["kernel"]["backend"], backend);
        assert_eq!(names.last(), Some(&"done"));
        assert_eq!(names.iter().filter(|name| **name == "done").count(), 1);
        let mut begin = events[1].clone();
        begin.as_object_mut().unwrap().remove("time");
        assert_eq!(
            begin,
            json!({"version": 1, "event": "begin", "index": 0, "id": "c0", "number": 1, "total": 3, "first_line": "print('ä' * 3)"})
        );
        let text_of = |index: u64, stream: &str| -> String {
            let texts = events.iter().filter(|event| {
                event["event"] == "text" && event["index"] == index && event["stream"] == stream
            });
            texts.map(|event| event["text"].as_str().unwrap()).collect()
        };
        assert_eq!(text_of(0, "stdout"), "äää\n");
        assert_eq!(text_of(2, "stderr"), "e\n");
        let display = events
            .iter()
            .find(|event| event["event"] == "display")
            .unwrap();
        assert_eq!(
            (&display["index"], &display["text"]),
            (&json!(0), &json!("5"))
        );
        let end = events
            .iter()
            .rfind(|event| event["event"] == "end")
            .unwrap();
        assert_eq!(
            (&end["status"], &end["error"]["ename"]),
            (&json!("error"), &json!("ZeroDivisionError"))
        );
        let done = events.last().unwrap();
        assert_eq!(end["error"], done["cells"][1]["error"]);
        assert_eq!(super::statuses(done), ["ok", "error", "skipped"]);
        assert_eq!(
            done["notebook"]["revision"],
            fixture.host.context.revision("a.ipynb")
        );
    }
}

/// Events are printed during the run, not at its end.
#[test]
fn events_are_printed_while_a_cell_runs() {
    use std::io::{BufRead, BufReader};
    let fixture = RunFixture::with(&[
        code("print('early', flush=True)"),
        code(super::WAITING_CELL),
    ]);
    let mut child = fixture.command("runner", &["--events"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["event"], "kernel_ready");
    assert_eq!(next()["event"], "begin");
    assert_eq!(next()["text"], "early\n");
    assert_eq!(next()["event"], "end");
    assert_eq!(next()["index"], 1);
    fixture.release_cell();
    while next()["event"] != "done" {}
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_json_report_has_the_specified_fields() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("print('x')\n1"), code("1 / 0"), code("2")]);
        let report = fixture.run_on(backend, &["--json"]).exits(1).json();
        let names =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        for name in [
            "status", "session", "kernel", "cells", "died", "notices", "notebook",
        ] {
            assert!(names(&report).contains(&name.to_owned()), "{name}");
        }
        for name in ["backend", "name", "pid", "interpreter", "generation"] {
            assert!(
                names(&report["kernel"]).contains(&name.to_owned()),
                "{name}"
            );
        }
        let fields = [
            "index",
            "id",
            "title",
            "status",
            "execution_count",
            "duration_ms",
            "text",
            "truncated",
            "images",
            "json",
            "events",
            "error",
            "outputs",
        ];
        for cell in report["cells"].as_array().unwrap() {
            let mut found = names(cell);
            found.sort();
            let mut expected = fields.map(str::to_owned).to_vec();
            expected.sort();
            assert_eq!(found, expected);
        }
        let cells = &report["cells"];
        assert_eq!(
            (&cells[0]["execution_count"], &cells[2]["execution_count"]),
            (&json!(1), &json!(null))
        );
        assert_eq!(cells[0]["id"], "c0");
        assert!(cells[0]["duration_ms"].as_f64().unwrap() > 0.0);
        // The report contains the outputs of the file.
        let document = fixture.document("a.ipynb");
        for cell in 0..3 {
            assert_eq!(cells[cell]["outputs"], document["cells"][cell]["outputs"]);
        }
        assert!(report["died"].is_null() && report["session"].is_null());
    }
}

#[test]
fn a_later_cell_updates_a_display_of_an_earlier_cell() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[
            executed("h = display(1, display_id=True)\ndisplay('between')"),
            executed("h.update(2)"),
            executed("print('x')\nh.update(3)\ng = display(4, display_id='g')\ng.update(5)"),
            executed("h.update(6)\ng.update(7)\nh.update(8)"),
        ]);
        let report = fixture.run_on(backend, &["--json"]).exits(0).json();
        assert_eq!(
            fixture.outputs(),
            ["=8 ='between'", "", "x =7", ""],
            "{backend}"
        );
        assert_eq!(
            report["cells"][0]["outputs"],
            fixture.document("a.ipynb")["cells"][0]["outputs"]
        );
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn cleared_outputs_are_not_saved() {
    for backend in BACKENDS {
        let clear = "from IPython.display import clear_output\n";
        let fixture = RunFixture::with(&[
            executed(&format!("{clear}print(1)\nclear_output()\nprint(2)")),
            executed(&format!(
                "{clear}print(1)\nclear_output(wait=True)\nprint(2)"
            )),
            executed("print(1)\nclear_output(wait=True)"),
            executed("print(1)\nclear_output()"),
            executed("display(1)\nprint(1)\nclear_output()\ndisplay(2)\n1 / 0"),
        ]);
        fixture.run_on(backend, &[]).exits(1);
        assert_eq!(
            fixture.outputs(),
            ["2", "2", "1", "", "=2 !ZeroDivisionError"],
            "{backend}"
        );
    }
}

/// Output of a thread after the end of its cell belongs to the cell that started the thread.
#[test]
fn late_output_of_a_thread_is_saved() {
    let thread = "import threading, time\nh = display('shown', display_id=True)\nprint('early', flush=True)\ndef late():\n    while not go: time.sleep(0.01)\n    print('late', flush=True)\n    open('said', 'w').close()\ngo = []\nthreading.Thread(target=late).start()";
    let waits = "import os\ngo.append(1)\nwhile not os.path.exists('said'): time.sleep(0.01)\ntime.sleep(0.2)";
    // Long enough for a save between two cells.
    let sleeps = "time.sleep(1.5)";
    let fixture = RunFixture::with(&[
        executed(thread),
        executed(waits),
        executed(sleeps),
        executed("h.update('updated')"),
        executed("print('end')"),
    ]);
    fixture.run(&[]).exits(0);
    assert_eq!(
        fixture.outputs(),
        ["='updated' early late", "", "", "", "end"]
    );
    fixture.assert_valid(&["a.ipynb"]);
    // Also after the last cell.
    let last = "import threading, time\ndef late():\n    time.sleep(0.3)\n    print('at last', flush=True)\nthreading.Thread(target=late).start()";
    let fixture = RunFixture::with(&[executed(last)]);
    fixture.run(&[]).exits(0);
    assert_eq!(fixture.outputs(), ["at last"]);
}

#[test]
fn all_output_is_saved_and_printed_output_is_limited() {
    let fixture = RunFixture::with(&[
        code("for i in range(30_000): print('line', i)"),
        code("print('\\r'.join(str(i) for i in range(20_001)))"),
    ]);
    let result = fixture.run(&[]).exits(0);
    assert!(result.stdout.len() < 60 * 1024, "{}", result.stdout.len());
    let document = fixture.document("a.ipynb");
    let text = document["cells"][0]["outputs"][0]["text"]
        .as_array()
        .unwrap();
    assert_eq!(text.len(), 30_000);
    assert_eq!(text[29_999], "line 29999\n");
    assert_eq!(fixture.outputs()[1], "20000");
}

/// The report and the events show what the notebook contains after a later cell has updated a display.
#[test]
fn a_later_display_with_the_same_id_updates_the_report() {
    let sources = [
        "print('a')\ndisplay('one', display_id='here')\nprint('b')",
        "display('two', display_id='here');",
    ];
    let fixture = RunFixture::with(&sources.map(code));
    let report = fixture.run(&["--json"]).exits(0).json();
    let texts = |report: &Value| {
        let cells = report["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["text"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&report), ["a\n'two'\nb\n", "'two'\n"]);
    assert_eq!(fixture.outputs(), ["a ='two' b", "='two'"]);

    let [first, second] = sources;
    let eval = ["eval", "--json", "--cell", first, "--cell", second];
    let report = fixture.run_command(&eval).exits(0).json();
    assert_eq!(texts(&report), ["a\n'two'\nb\n", "'two'\n"]);
    let data = &report["cells"][0]["outputs"][1]["data"];
    assert!(data["text/plain"].to_string().contains("two"));

    let events = fixture.run(&["--events"]).exits(0).stdout;
    let displays: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &Value| event["event"] == "display")
        .collect();
    assert!(
        displays.iter().all(|event| event["display_id"] == "here"),
        "{displays:?}"
    );
}

/// The bar of a page advances as text on the viewer; the notebook stores what nbclient stores.
#[test]
fn progress_bars_of_widgets_advance() {
    let bars = "from tqdm.auto import trange\nfor i in trange(3, desc='outer', mininterval=0): pass\nprint('done')";
    let fixture = RunFixture::with(&[code(bars)]);
    let output = fixture.run_on("jupyter", &["--events"]).exits(0);
    let events: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text: String = events
        .iter()
        .filter(|event| event["event"] == "text" && event["stream"] == "stderr")
        .filter_map(|event| event["text"].as_str())
        .collect();
    let last = text.trim_end().rsplit('\r').next().unwrap_or_default();
    assert!(
        last.starts_with("outer: 100%|██████████| 3/3 ["),
        "{text:?}"
    );
    assert!(!events.iter().any(|event| event["event"] == "display"));

    let stored = fixture.outputs()[0].clone();
    assert!(
        stored.starts_with("=outer:   0%|          | 0/3"),
        "{stored}"
    );
    let report = fixture.run_on("jupyter", &["--json"]).exits(0).json();
    let text = report["cells"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("outer: 100%|██████████| 3/3 ["), "{text}");
    fixture.assert_valid(&["a.ipynb"]);

    let piped = fixture.run_on("jupyter", &[]).exits(0);
    assert_eq!(piped.stderr.matches("outer").count(), 1, "{}", piped.stderr);
}

/// A run without widgets leaves the stored state as it is.
#[test]
fn the_state_of_widgets_is_replaced_only_by_another() {
    let fixture = RunFixture::with(&[
        code("1"),
        code("import ipywidgets\nipywidgets.IntSlider(value=7)"),
    ]);
    let old = json!({"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2, "version_minor": 0}});
    fixture.rewrite(|document| document["metadata"]["widgets"] = old.clone());
    fixture.run_on("jupyter", &["--cells", "0"]).exits(0);
    assert_eq!(fixture.document("a.ipynb")["metadata"]["widgets"], old);
    fixture.run_on("jupyter", &[]).exits(0);
    let document = fixture.document("a.ipynb");
    let stored = &document["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"];
    let view =
        &document["cells"][1]["outputs"][0]["data"]["application/vnd.jupyter.widget-view+json"];
    let model = &stored["state"][view["model_id"].as_str().unwrap()];
    assert_eq!(model["state"]["value"], 7, "{stored}");
    fixture.assert_valid(&["a.ipynb"]);
}
