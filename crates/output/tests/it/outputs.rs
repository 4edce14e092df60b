//! Outputs as a notebook stores them.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Data, Event, JsonStyle, Limits, Notice, Outputs,
    Retention, Sink, Stream, Traceback,
};
use serde_json::{Map, Value, json};

pub(crate) fn captured(events: Vec<Event<'_>>) -> Captured {
    let mut capture = Capture::new(Limits::default(), None);
    for event in events {
        capture.push(event);
    }
    capture.finish()
}

fn check(events: Vec<Event<'_>>, expected: &Value) {
    let captured = captured(events);
    let values = Value::Array(values(&captured.outputs));
    assert_eq!(&values, expected);
    assert_eq!(&written(&captured.outputs), expected);
    assert_eq!(&serde_json::to_value(&captured.outputs).unwrap(), expected);
}

/// The outputs as a report contains them.
pub(crate) fn values(outputs: &Outputs) -> Vec<Value> {
    serde_json::from_value(serde_json::to_value(outputs).unwrap()).unwrap()
}

/// The outputs as written to a notebook.
pub(crate) fn written(outputs: &Outputs) -> Value {
    let mut json = Vec::new();
    outputs.write(&mut json, &JsonStyle::default(), 3).unwrap();
    serde_json::from_slice(&json).unwrap()
}

pub(crate) fn out(text: &str) -> Event<'_> {
    Event::Text {
        stream: Stream::Stdout,
        bytes: text.as_bytes(),
    }
}

fn err(text: &str) -> Event<'_> {
    Event::Text {
        stream: Stream::Stderr,
        bytes: text.as_bytes(),
    }
}

pub(crate) fn show(text: &str, id: Option<&str>, result: Option<u32>) -> Event<'static> {
    Event::Display {
        bundle: Bundle::text("text/plain", text),
        id: id.map(str::to_owned),
        result,
    }
}

#[test]
fn consecutive_text_of_a_stream_is_one_output() {
    check(
        vec![out("a"), out("b\nc"), err("e\n"), err(""), out("d")],
        &json!([
            {"name": "stdout", "output_type": "stream", "text": ["ab\n", "c"]},
            {"name": "stderr", "output_type": "stream", "text": ["e\n"]},
            {"name": "stdout", "output_type": "stream", "text": ["d"]},
        ]),
    );
}

#[test]
fn streams_stay_raw() {
    check(
        vec![out("\x1b[31mred\x1b]0;title\x07\r\nx\u{c}y\u{2028}z")],
        &json!([{"name": "stdout", "output_type": "stream",
                 "text": ["\x1b[31mred\x1b]0;title\x07\r\n", "x\u{c}", "y\u{2028}", "z"]}]),
    );
}

#[test]
fn progress_bar_is_stored_in_its_final_state() {
    let mut bar = "before\n".to_owned();
    for step in 0..=20_000 {
        let colour = if step == 20_000 { 32 } else { 34 };
        bar.push_str(&format!(
            "\r\x1b[{colour}m{:6.2}%\x1b[0m of \x08\x08\x08it",
            f64::from(step) / 200.0
        ));
    }
    bar.push_str("\nafter\n");
    let expected = json!([{"name": "stdout", "output_type": "stream",
        "text": ["before\n", "\x1b[0;32m100.00%\x1b[0m it \n", "after\n"]}]);
    check(vec![out(&bar)], &expected);
    // The same with most of the text on disk, where the artifact keeps all of it.
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let limits = Limits {
        stream_bytes: 10_000,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, Some(artifacts.clone()));
    for chunk in bar.as_bytes().chunks(7) {
        let stream = Stream::Stdout;
        capture.push(Event::Text {
            stream,
            bytes: chunk,
        });
    }
    let captured = capture.finish();
    assert_eq!(written(&captured.outputs), expected);
    let path = artifacts.list().unwrap()[0].path.clone();
    assert!(std::fs::read(path).unwrap() == bar.as_bytes());
}

#[test]
fn displays_and_results_keep_data_and_metadata() {
    let mut metadata = Map::new();
    metadata.insert("image/png".to_owned(), json!({"width": 10, "height": 5}));
    let bundle = Bundle {
        metadata,
        ..Bundle::default()
    }
    .with("text/plain", Data::Text("two\nlines".to_owned()))
    .with("image/png", Data::Bytes(vec![0; 60]))
    .with("application/json", Data::Json(json!({"b": 1, "a": [2]})))
    .with("application/x-foo", Data::Text("a\nb".to_owned()))
    .with("image/svg+xml", Data::Text("<svg>\n</svg>".to_owned()));
    check(
        vec![
            Event::Display {
                bundle,
                id: None,
                result: Some(7),
            },
            show("", None, None),
        ],
        &json!([
            {"data": {
                "application/json": {"a": [2], "b": 1},
                "application/x-foo": "a\nb",
                "image/png": "A".repeat(80),
                "image/svg+xml": ["<svg>\n", "</svg>"],
                "text/plain": ["two\n", "lines"]},
             "execution_count": 7,
             "metadata": {"image/png": {"height": 5, "width": 10}},
             "output_type": "execute_result"},
            {"data": {"text/plain": []}, "metadata": {}, "output_type": "display_data"},
        ]),
    );
}

#[test]
fn keys_are_sorted_as_nbformat_sorts_them() {
    let captured = captured(vec![out("x"), show("y", None, Some(1))]);
    let text = Value::Array(values(&captured.outputs)).to_string();
    assert_eq!(
        text,
        r#"[{"name":"stdout","output_type":"stream","text":["x"]},{"data":{"text/plain":["y"]},"execution_count":1,"metadata":{},"output_type":"execute_result"}]"#
    );
}

#[test]
fn an_update_reaches_every_display_of_its_id() {
    let update = |text: &str, id: &str| Event::Update {
        bundle: Bundle::text("text/plain", text),
        id: id.to_owned(),
    };
    let events = vec![
        show("1", Some("x"), None),
        out("between\n"),
        show("2", Some("x"), Some(3)),
        update("new", "x"),
        update("first", "elsewhere"),
        update("last", "elsewhere"),
    ];
    check(
        events.clone(),
        &json!([
            {"data": {"text/plain": ["new"]}, "metadata": {}, "output_type": "display_data"},
            {"name": "stdout", "output_type": "stream", "text": ["between\n"]},
            {"data": {"text/plain": ["new"]}, "execution_count": 3, "metadata": {},
             "output_type": "execute_result"},
        ]),
    );
    let captured = captured(events);
    let last = ("elsewhere".to_owned(), Bundle::text("text/plain", "last"));
    assert_eq!(captured.outputs.updates(), [last]);
}

#[test]
fn clear_removes_outputs() {
    let wait = Event::Clear { wait: true };
    check(vec![out("a"), Event::Clear { wait: false }], &json!([]));
    let unchanged = json!([{"name": "stdout", "output_type": "stream", "text": ["a"]}]);
    check(vec![out("a"), wait.clone()], &unchanged);
    let new = json!([{"name": "stdout", "output_type": "stream", "text": ["b"]}]);
    check(vec![out("a"), wait.clone(), out("b")], &new);
    let error = Event::Raised(Traceback {
        name: "E".to_owned(),
        value: "v".to_owned(),
        lines: Vec::new(),
    });
    let only_error =
        json!([{"ename": "E", "evalue": "v", "output_type": "error", "traceback": []}]);
    check(vec![out("a"), wait, error], &only_error);
}

#[test]
fn errors_keep_their_traceback() {
    check(
        vec![Event::Raised(Traceback {
            name: "E".to_owned(),
            value: "v".to_owned(),
            lines: vec!["\x1b[31ml1".to_owned(), "l2".to_owned()],
        })],
        &json!([{"ename": "E", "evalue": "v", "output_type": "error",
                 "traceback": ["\x1b[31ml1", "l2"]}]),
    );
}

fn numbered(lines: usize) -> String {
    (0..lines).map(|n| format!("line {n} é\n")).collect()
}

fn text_of(output: &Value) -> String {
    let lines = output["text"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap()).collect()
}

#[test]
fn long_text_is_held_in_part_and_written_whole() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts));
    let text = numbered(600_000);
    capture.push(show("first", None, None));
    for chunk in text.as_bytes().chunks(9973) {
        capture.push(Event::Text {
            stream: Stream::Stdout,
            bytes: chunk,
        });
    }
    capture.push(err("\x1b[31moops\n"));
    let captured = capture.finish();
    let values = values(&captured.outputs);
    assert_eq!(values.len(), 3);
    let held = text_of(&values[1]);
    assert!(held.len() < 4 << 20);
    assert!(held.starts_with("line 0 é\n") && held.ends_with("line 599999 é\n"));
    assert!(held.contains("MiB elided, see artifact://1 …]\n"));
    let whole = written(&captured.outputs);
    assert!(text_of(&whole[1]) == text);
    assert_eq!(whole[1]["text"].as_array().unwrap().len(), 600_000);
    assert_eq!(text_of(&whole[2]), "\x1b[31moops\n");
    assert!(
        captured
            .notices
            .iter()
            .any(|notice| notice.kind() == "streams_shortened")
    );
}

#[test]
fn without_artifacts_lost_text_is_counted() {
    let mut capture = Capture::new(Limits::default(), None);
    let text = numbered(600_000);
    capture.push(out(&text));
    let captured = capture.finish();
    let held = text_of(&values(&captured.outputs)[0]);
    let (head, rest) = held.split_once("[… ").unwrap();
    let (_, tail) = rest.split_once(" …]\n").unwrap();
    // The elision line adds a newline after a partial line.
    let head = head.strip_suffix('\n').unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.len() + tail.len() > 3 << 20);
}

#[test]
fn carried_bytes_are_not_newer_than_following_text() {
    let limits = Limits {
        stream_bytes: 300,
        ..Limits::default()
    };
    let run = |chunk: usize| {
        let mut capture = Capture::new(limits.clone(), None);
        let texts: [&[u8]; 4] = [&[b'x'; 281], b"e", b"ab\xc2", &[b'y'; 40]];
        for (at, text) in texts.into_iter().enumerate() {
            for bytes in text.chunks(chunk) {
                let stream = if at % 2 == 0 {
                    Stream::Stdout
                } else {
                    Stream::Stderr
                };
                capture.push(Event::Text { stream, bytes });
            }
        }
        values(&capture.finish().outputs)
    };
    let whole = run(1000);
    assert_eq!(text_of(&whole[2]), "[… 3 B elided …]\n");
    assert_eq!(run(3), whole);
}

#[test]
fn large_displays_move_to_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let limits = Limits {
        display_bytes: 10_000,
        ..Limits::default()
    };
    for stored in [true, false] {
        let mut capture = Capture::new(limits.clone(), stored.then(|| artifacts.clone()));
        for number in 0..3_u8 {
            capture.push(Event::Display {
                bundle: Bundle::text("text/plain", format!("image {number}"))
                    .with("image/png", Data::Bytes(vec![number; 8000])),
                id: None,
                result: None,
            });
        }
        let captured = capture.finish();
        let values = values(&captured.outputs);
        assert!(values[0]["data"]["image/png"].is_string());
        assert_eq!(values[2]["data"], json!({"text/plain": ["image 2"]}));
        let kinds: Vec<_> = captured.notices.iter().map(Notice::kind).collect();
        assert_eq!(kinds, ["displays_moved"]);
        assert_eq!(captured.images.len(), 3);
        assert_eq!(captured.images[2].artifact.is_some(), stored);
        assert_eq!(&*captured.images[2].original().unwrap(), &[2; 8000]);
    }
}

/// The beginning of a PNG, followed by arbitrary bytes.
fn image_bytes(bytes: usize) -> Vec<u8> {
    let mut image_bytes =
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x40\0\0\0\x40\x08\x06\0\0\0".to_vec();
    image_bytes.extend(b"\xaa\x69\x71\xde\0\x01\0\0IDAT");
    image_bytes.extend((image_bytes.len()..bytes).map(|at| u8::try_from(at % 251).unwrap()));
    image_bytes
}

/// A bundle with every kind of data, larger than small limits.
fn large_bundle() -> Bundle {
    let mut metadata = Map::new();
    metadata.insert(
        "z".to_owned(),
        json!({"b": "é".repeat(2000), "a": [1.5, {}]}),
    );
    let base64 = base64(&image_bytes(100_003));
    let broken: Vec<&str> = (0..base64.len().div_ceil(76))
        .map(|line| &base64[line * 76..base64.len().min(line * 76 + 76)])
        .collect();
    let members = (0..3000).map(|at| {
        (
            format!("{}", 7919 * at % 3000),
            json!([at, 1e-7, "\u{1f600}\n\u{7f}"]),
        )
    });
    Bundle {
        metadata,
        ..Bundle::default()
    }
    .with("text/plain", Data::Text("é\r\nx\u{2028}\"\\".repeat(9000)))
    .with("image/png", Data::Text(broken.join("\n") + "\n"))
    .with("image/jpeg", Data::Bytes(image_bytes(90_001)))
    .with("application/x-foo", Data::Text("a\nb".repeat(5000)))
    .with(
        "application/vnd.x+json",
        Data::Json(Value::Object(members.collect())),
    )
}

fn base64(bytes: &[u8]) -> String {
    // Encodes with code that other tests cover.
    let bundle = Bundle::default().with("x", Data::Bytes(bytes.to_vec()));
    let event = Event::Display {
        bundle,
        id: None,
        result: None,
    };
    let values = values(&captured(vec![event]).outputs);
    values[0]["data"]["x"].as_str().unwrap().to_owned()
}

#[test]
fn values_too_large_for_memory_are_written_verbatim() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let events = |id: Option<&str>| Event::Display {
        bundle: large_bundle(),
        id: id.map(str::to_owned),
        result: Some(3),
    };
    let expected = captured(vec![events(None)]).outputs;
    for style in [
        JsonStyle::default(),
        JsonStyle::compact(),
        JsonStyle {
            ascii: true,
            ..JsonStyle::default()
        },
    ] {
        for artifacts in [Some(artifacts.clone()), None] {
            let limits = Limits {
                display_bytes: 1000,
                ..Limits::default()
            };
            let mut capture = Capture::new(limits, artifacts);
            capture.push(events(None));
            let stored = capture.finish();
            let image = &stored.images[0];
            assert_eq!(
                (image.bytes, image.width, image.height),
                (100_003, Some(64), Some(64))
            );
            assert_eq!(&*image.original().unwrap(), image_bytes(100_003));
            let write = |outputs: &Outputs| {
                let mut bytes = Vec::new();
                outputs.write(&mut bytes, &style, 2).unwrap();
                String::from_utf8(bytes).unwrap()
            };
            assert!(write(&stored.outputs) == write(&expected), "{style:?}");
        }
    }
}

#[test]
fn values_that_cannot_be_stored_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    // No directory can be created below a file.
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let limits = Limits {
        display_bytes: 1000,
        ..Limits::default()
    };
    let mut capture = Capture::new(
        limits,
        Some(Artifacts::new(file.join("x"), Retention::default())),
    );
    let bundle = large_bundle();
    capture.push(Event::Display {
        bundle,
        id: None,
        result: None,
    });
    let captured = capture.finish();
    let notice = captured
        .notices
        .iter()
        .find(|notice| notice.kind() == "displays_moved");
    assert!(
        matches!(notice, Some(Notice::DisplaysMoved { lost: 5, .. })),
        "{notice:?}"
    );
    // The notebook is complete, because the scratch file is in the system's temporary directory.
    assert_eq!(
        written(&captured.outputs)[0]["data"]
            .as_object()
            .unwrap()
            .len(),
        5
    );
}

#[test]
fn later_cell_updates_an_earlier_display() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let limits = Limits {
        display_bytes: 1000,
        ..Limits::default()
    };
    let run = |events: Vec<Event<'_>>| {
        let mut capture = Capture::new(limits.clone(), Some(artifacts.clone()));
        for event in events {
            capture.push(event);
        }
        capture.finish().outputs
    };
    let mut earlier = run(vec![
        show("1", Some("x"), None),
        out("-"),
        show("2", Some("x"), Some(1)),
    ]);
    assert!(earlier.has_display_ids());
    assert!(!run(vec![show("1", None, None), out("-")]).has_display_ids());
    let bundle = large_bundle();
    let later = run(vec![Event::Update {
        bundle,
        id: "x".to_owned(),
    }]);
    let [(id, bundle)] = later.updates() else {
        panic!("{later:?}");
    };
    assert!(
        bundle
            .data
            .iter()
            .all(|(_, data)| matches!(data, Data::Stored(_)))
    );
    assert!(earlier.apply_update(id, bundle));
    assert!(!earlier.apply_update("y", bundle));
    let again = Bundle::text("text/plain", "again");
    let whole = captured(vec![Event::Display {
        bundle: large_bundle(),
        id: None,
        result: None,
    }]);
    let whole = &written(&whole.outputs)[0];
    drop(later);
    let now = written(&earlier);
    for at in [0, 2] {
        assert!(now[at]["data"] == whole["data"] && now[at]["metadata"] == whole["metadata"]);
    }
    assert!(earlier.apply_update("x", &again));
    assert!(
        !earlier.apply_update("x", &again),
        "the same update changes nothing"
    );
    assert_eq!(
        written(&earlier)[2]["data"],
        json!({"text/plain": ["again"]})
    );
}

#[test]
fn replaced_displays_free_memory() {
    let limits = Limits {
        display_bytes: 10_000,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, None);
    for number in 0..100_u8 {
        let bundle = Bundle::default().with("image/png", Data::Bytes(vec![number; 8000]));
        if number == 0 {
            capture.push(Event::Display {
                bundle,
                id: Some("x".to_owned()),
                result: None,
            });
        } else {
            let id = "x".to_owned();
            capture.push(Event::Update { bundle, id });
        }
    }
    let captured = capture.finish();
    assert!(captured.notices.is_empty(), "{:?}", captured.notices);
    assert_eq!(&*captured.images[0].original().unwrap(), &[99; 8000]);
}

#[test]
fn excess_outputs_are_counted_and_the_error_is_stored() {
    let mut capture = Capture::new(Limits::default(), None);
    for number in 0..30_000 {
        let text = number.to_string();
        capture.push(if number % 2 == 0 {
            out(&text)
        } else {
            err(&text)
        });
    }
    capture.push(Event::Raised(Traceback {
        name: "E".to_owned(),
        ..Traceback::default()
    }));
    let captured = capture.finish();
    let values = values(&captured.outputs);
    assert_eq!(values.len(), 10_001);
    assert_eq!(values[10_000]["output_type"], "error");
    assert!(captured.text.ends_with("29999\nE\n"));
    assert!(
        captured
            .notices
            .iter()
            .any(|notice| notice.kind() == "outputs_dropped")
    );
}
