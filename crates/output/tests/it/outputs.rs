//! Outputs as a notebook holds them.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Data, Event, Limits, Notice, Retention, Sink, Stream,
    Traceback,
};
use serde_json::{Map, Value, json};

fn captured(events: Vec<Event<'_>>) -> Captured {
    let mut capture = Capture::new(Limits::default(), None);
    for event in events {
        capture.push(event);
    }
    capture.finish()
}

fn check(events: Vec<Event<'_>>, expected: &Value) {
    let captured = captured(events);
    let values = Value::Array(captured.outputs.to_values());
    assert_eq!(&values, expected);
    let mut whole = Vec::new();
    captured.outputs.write_whole(&mut whole).unwrap();
    assert_eq!(&serde_json::from_slice::<Value>(&whole).unwrap(), expected);
}

fn out(text: &str) -> Event<'_> {
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

fn show(text: &str, id: Option<&str>, result: Option<u32>) -> Event<'static> {
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
        vec![out("\x1b[31m10%\r20%\r\nx\u{c}y\u{2028}z")],
        &json!([{"name": "stdout", "output_type": "stream",
                 "text": ["\x1b[31m10%\r", "20%\r\n", "x\u{c}", "y\u{2028}", "z"]}]),
    );
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
    let text = Value::Array(captured.outputs.to_values()).to_string();
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
fn clearing_takes_outputs_away() {
    let wait = Event::Clear { wait: true };
    check(vec![out("a"), Event::Clear { wait: false }], &json!([]));
    let kept = json!([{"name": "stdout", "output_type": "stream", "text": ["a"]}]);
    check(vec![out("a"), wait.clone()], &kept);
    let new = json!([{"name": "stdout", "output_type": "stream", "text": ["b"]}]);
    check(vec![out("a"), wait, out("b")], &new);
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
    let values = captured.outputs.to_values();
    assert_eq!(values.len(), 3);
    let held = text_of(&values[1]);
    assert!(held.len() < 4 << 20);
    assert!(held.starts_with("line 0 é\n") && held.ends_with("line 599999 é\n"));
    assert!(held.contains("MiB elided, see artifact://1 …]\n"));
    let mut whole = Vec::new();
    captured.outputs.write_whole(&mut whole).unwrap();
    let whole: Vec<Value> = serde_json::from_slice(&whole).unwrap();
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
fn without_artifacts_what_is_lost_is_counted() {
    let mut capture = Capture::new(Limits::default(), None);
    let text = numbered(600_000);
    capture.push(out(&text));
    let captured = capture.finish();
    let held = text_of(&captured.outputs.to_values()[0]);
    let (head, rest) = held.split_once("[… ").unwrap();
    let (_, tail) = rest.split_once(" …]\n").unwrap();
    // A newline ends what may be half a line.
    let head = head.strip_suffix('\n').unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.len() + tail.len() > 3 << 20);
}

#[test]
fn what_is_left_of_a_character_is_not_newer_than_what_follows() {
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
        capture.finish().outputs.to_values()
    };
    let whole = run(1000);
    assert_eq!(text_of(&whole[2]), "[… 3 B elided …]\n");
    assert_eq!(run(3), whole);
}

#[test]
fn displays_that_are_too_large_move_to_artifacts() {
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
        let values = captured.outputs.to_values();
        assert!(values[0]["data"]["image/png"].is_string());
        assert_eq!(values[2]["data"], json!({"text/plain": ["image 2"]}));
        let kinds: Vec<_> = captured.notices.iter().map(Notice::kind).collect();
        assert_eq!(kinds, ["displays_moved"]);
        assert_eq!(captured.images.len(), 3);
        assert_eq!(captured.images[2].original().is_ok(), stored);
        if stored {
            assert_eq!(&*captured.images[2].original().unwrap(), &[2; 8000]);
        }
    }
}

#[test]
fn replaced_displays_make_room() {
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
fn too_many_outputs_are_counted_and_the_error_is_kept() {
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
    let values = captured.outputs.to_values();
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
