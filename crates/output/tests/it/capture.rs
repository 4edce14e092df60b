//! Events to text and notices.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Data, Event, Limits, Notice, Retention, Sink, Stream,
    Traceback,
};

use crate::outputs::values;

fn capture() -> Capture {
    Capture::new(Limits::default(), None)
}

fn out(capture: &mut Capture, text: &str) {
    write(capture, Stream::Stdout, text.as_bytes());
}

fn err(capture: &mut Capture, text: &str) {
    write(capture, Stream::Stderr, text.as_bytes());
}

fn write(capture: &mut Capture, stream: Stream, bytes: &[u8]) {
    capture.push(Event::Text { stream, bytes });
}

fn show(capture: &mut Capture, text: &str, id: Option<&str>) {
    capture.push(Event::Display {
        bundle: Bundle::text("text/plain", text),
        id: id.map(str::to_owned),
        result: None,
    });
}

fn update(capture: &mut Capture, text: &str, id: &str) {
    capture.push(Event::Update {
        bundle: Bundle::text("text/plain", text),
        id: id.to_owned(),
    });
}

#[test]
fn stdout_and_stderr_keep_their_order() {
    let mut capture = capture();
    out(&mut capture, "a\n");
    err(&mut capture, "b\n");
    out(&mut capture, "c\n");
    assert_eq!(capture.finish().text, "a\nb\nc\n");
}

#[test]
fn open_line_ends_when_the_other_stream_writes() {
    let mut capture = capture();
    out(&mut capture, "a");
    err(&mut capture, "b");
    out(&mut capture, "c");
    assert_eq!(capture.finish().text, "a\nb\nc");
}

#[test]
fn progress_bar_stays_open_while_the_other_stream_writes() {
    let mut capture = capture();
    for number in 0..3 {
        err(&mut capture, &format!("\r{number}/3"));
        out(&mut capture, &format!("step {number}\n"));
    }
    err(&mut capture, "\r3/3\n");
    assert_eq!(capture.finish().text, "step 0\nstep 1\nstep 2\n3/3\n");
}

#[test]
fn two_progress_bars_on_two_streams_end_on_two_lines() {
    let mut capture = capture();
    err(&mut capture, "\r50%");
    out(&mut capture, "\r99%");
    assert_eq!(capture.finish().text, "50%\n99%");
}

#[test]
fn line_after_a_redrawn_line_ends_normally() {
    let mut capture = capture();
    out(&mut capture, "\rabc\ndef");
    err(&mut capture, "e\n");
    out(&mut capture, "g\n");
    assert_eq!(capture.finish().text, "abc\ndef\ne\ng\n");
}

#[test]
fn character_split_by_the_other_stream_is_decoded() {
    let mut capture = capture();
    write(&mut capture, Stream::Stdout, b"x\n\xe2\x82");
    err(&mut capture, "e\n");
    write(&mut capture, Stream::Stdout, b"\xac\n");
    let captured = capture.finish();
    assert_eq!(captured.text, "x\ne\n\u{20ac}\n");
    let texts: Vec<_> = values(&captured.outputs);
    assert_eq!(texts[0]["text"], serde_json::json!(["x\n"]));
    assert_eq!(texts[2]["text"], serde_json::json!(["\u{20ac}\n"]));
}

#[test]
fn displays_start_on_a_new_line() {
    let mut capture = capture();
    out(&mut capture, "before");
    show(&mut capture, "shown", None);
    out(&mut capture, "after");
    assert_eq!(capture.finish().text, "before\nshown\nafter");
}

#[test]
fn the_traceback_ends_the_text() {
    let mut capture = capture();
    out(&mut capture, "before");
    capture.push(Event::Raised(Traceback {
        name: "ValueError".to_owned(),
        value: "no".to_owned(),
        lines: vec![
            "\x1b[31mTraceback\x1b[0m:".to_owned(),
            "ValueError: no".to_owned(),
        ],
    }));
    let captured = capture.finish();
    assert_eq!(captured.text, "before\nTraceback:\nValueError: no\n");
    assert_eq!(
        captured.error.unwrap().lines[0],
        "\x1b[31mTraceback\x1b[0m:"
    );
}

#[test]
fn exception_without_traceback_shows_its_name() {
    let mut capture = capture();
    capture.push(Event::Raised(Traceback {
        name: "KeyboardInterrupt".to_owned(),
        ..Traceback::default()
    }));
    assert_eq!(capture.finish().text, "KeyboardInterrupt\n");
}

#[test]
fn update_replaces_the_text_in_place() {
    let mut capture = capture();
    show(&mut capture, "0%", Some("bar"));
    out(&mut capture, "between\n");
    show(&mut capture, "again 0%", Some("bar"));
    show(&mut capture, "other", Some("x"));
    update(&mut capture, "100%\nand more", "bar");
    update(&mut capture, "changed", "x");
    update(&mut capture, "nothing", "unknown");
    out(&mut capture, "\x1b[Aend\n");
    let text = "100%\nand more\nbetween\n100%\nand more\nchanged\nend\n";
    assert_eq!(capture.finish().text, text);
}

#[test]
fn update_can_add_the_first_text() {
    let mut capture = capture();
    capture.push(Event::Display {
        bundle: Bundle::default(),
        id: Some("x".to_owned()),
        result: None,
    });
    out(&mut capture, "after\n");
    update(&mut capture, "now", "x");
    assert_eq!(capture.finish().text, "now\nafter\n");
}

#[test]
fn clear_removes_earlier_text() {
    let mut capture = capture();
    out(&mut capture, "gone\nhalf");
    capture.push(Event::Clear { wait: false });
    out(&mut capture, "new\n");
    assert_eq!(capture.finish().text, "new\n");
}

#[test]
fn clear_with_wait_happens_at_the_next_output() {
    let mut waiting = capture();
    out(&mut waiting, "kept\n");
    waiting.push(Event::Clear { wait: true });
    assert_eq!(waiting.current_text(), "kept\n");
    // Neither empty text nor a status event is an output.
    out(&mut waiting, "");
    waiting.push(Event::Display {
        bundle: Bundle::text("application/x-cellwright-status", "{}"),
        id: None,
        result: None,
    });
    assert_eq!(waiting.current_text(), "kept\n");
    show(&mut waiting, "new", None);
    out(&mut waiting, "more\n");
    assert_eq!(waiting.finish().text, "new\nmore\n");
}

#[test]
fn exception_triggers_a_pending_clear() {
    let mut waiting = capture();
    out(&mut waiting, "old\n");
    show(&mut waiting, "old display", Some("x"));
    waiting.push(Event::Clear { wait: true });
    waiting.push(Event::Raised(Traceback {
        name: "ValueError".to_owned(),
        value: "new".to_owned(),
        lines: Vec::new(),
    }));
    assert_eq!(waiting.current_text(), "ValueError: new\n");
    let captured = waiting.finish();
    assert_eq!(captured.text, "ValueError: new\n");
    let outputs = values(&captured.outputs);
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    assert_eq!(outputs[0]["output_type"], "error");
}

#[test]
fn update_does_not_trigger_a_pending_clear() {
    let mut waiting = capture();
    show(&mut waiting, "old", Some("x"));
    waiting.push(Event::Clear { wait: true });
    update(&mut waiting, "new", "x");
    assert_eq!(waiting.current_text(), "new\n");
    out(&mut waiting, "next\n");
    assert_eq!(waiting.finish().text, "next\n");
}

#[test]
fn reading_the_current_text_changes_nothing() {
    let mut capture = capture();
    write(&mut capture, Stream::Stdout, b"\r50%\xe2\x82");
    assert_eq!(capture.current_text(), "50%\u{fffd}");
    write(&mut capture, Stream::Stdout, b"\xac\r75%\n");
    assert_eq!(capture.current_text(), "75%\u{20ac}\n");
    assert_eq!(capture.finish().text, "75%\u{20ac}\n");
}

#[test]
fn refused_input_is_reported() {
    let mut capture = capture();
    capture.push(Event::InputRefused {
        prompt: "name? ".to_owned(),
    });
    assert_eq!(capture.finish().stdin_refused.unwrap(), "name? ");
}

fn numbered(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn a_long_text_shows_head_and_tail() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path().join("new/artifacts"), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    let text = numbered(20_000);
    out(&mut capture, &text);
    let captured = capture.finish();
    let truncation = captured.truncation.unwrap();
    assert!(captured.text.len() <= 50 * 1024 && captured.text.len() > 49 * 1024);
    assert!(captured.text.starts_with("line 1\nline 2\n"));
    assert!(captured.text.ends_with("line 19999\nline 20000\n"));
    assert_eq!(truncation.total.lines, 20_000);
    assert_eq!(truncation.total.bytes, text.len() as u64);
    assert_eq!(
        truncation.shown.bytes + truncation.elided.bytes,
        truncation.total.bytes
    );
    assert_eq!(
        truncation.shown.lines + truncation.elided.lines,
        truncation.total.lines
    );
    let (head, rest) = captured.text.split_once("[… ").unwrap();
    assert!(head.len() > 20_000 && head.ends_with('\n'));
    assert!(rest.starts_with(&format!("{} lines (", truncation.elided.lines)));
    let stored =
        std::fs::read(artifacts.open(truncation.artifact.unwrap()).unwrap().path()).unwrap();
    assert!(stored == text.as_bytes());
    assert_eq!(captured.notices, [Notice::Truncated(truncation)]);
}

#[test]
fn text_at_the_limit_is_not_truncated() {
    let limits = Limits::default();
    let mut text = numbered(10_000);
    text.truncate(limits.inline_bytes);
    let mut fits = Capture::new(limits.clone(), None);
    out(&mut fits, &text);
    let captured = fits.finish();
    assert!(captured.truncation.is_none() && captured.text == text);
    let mut longer = Capture::new(limits, None);
    out(&mut longer, &text);
    out(&mut longer, "x");
    assert!(longer.finish().truncation.is_some());
}

#[test]
fn long_line_is_truncated_and_stored() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    let line = "é".repeat(1000);
    out(&mut capture, &format!("short\n{line}\n"));
    let captured = capture.finish();
    let shown_line = captured.text.lines().nth(1).unwrap();
    assert_eq!(shown_line.len(), 767);
    assert!(shown_line.ends_with("é…"));
    let truncation = captured.truncation.unwrap();
    assert_eq!(
        (truncation.long_lines.lines, truncation.long_lines.bytes),
        (1, 2000 - 767)
    );
    assert_eq!(truncation.total.bytes, 2007);
    assert_eq!(
        truncation.total.bytes,
        truncation.shown.bytes + truncation.long_lines.bytes
    );
    let stored = artifacts.open(truncation.artifact.unwrap()).unwrap();
    assert_eq!(stored.bytes(), 2007);
}

#[test]
fn redrawn_long_line_counts_once() {
    let mut capture = capture();
    for _ in 0..3 {
        out(&mut capture, &format!("\r{}", "é".repeat(5000)));
    }
    out(&mut capture, &format!("\r{}", "é".repeat(6000)));
    let truncation = capture.finish().truncation.unwrap();
    assert_eq!(truncation.total.bytes, 12_000);
    assert_eq!(truncation.long_lines.lines, 1);
}

#[test]
fn short_output_creates_no_artifact() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path().join("a"), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    out(&mut capture, "short\n");
    capture.finish();
    assert!(!artifacts.dir().exists());
}

#[test]
fn long_display_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    out(&mut capture, "printed");
    let repr = numbered(20_000);
    show(&mut capture, &repr, None);
    let captured = capture.finish();
    let stored = artifacts
        .open(captured.truncation.unwrap().artifact.unwrap())
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(stored.path()).unwrap(),
        format!("printed\n{repr}")
    );
}

#[test]
fn store_failure_does_not_fail_the_capture() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let artifacts = Artifacts::new(file.join("artifacts"), Retention::default());
    let mut capture = Capture::new(Limits::default(), Some(artifacts));
    let text = numbered(20_000);
    out(&mut capture, &text);
    show_image(&mut capture);
    let captured = capture.finish();
    assert!(captured.text.ends_with("[figure image/png, 4 B]\n"));
    assert_eq!(captured.truncation.as_ref().unwrap().artifact, None);
    let kinds: Vec<_> = captured.notices.iter().map(Notice::kind).collect();
    assert_eq!(
        kinds,
        ["output_truncated", "output_not_stored", "output_not_stored"]
    );
    match &captured.notices[1] {
        Notice::NotStored { kept, lost, .. } => {
            let length = text.len() + "[figure image/png, 4 B]\n".len();
            assert_eq!((*kept, *lost), (0, length as u64));
        }
        other => panic!("{other:?}"),
    }
}

fn show_image(capture: &mut Capture) {
    capture.push(Event::Display {
        bundle: Bundle::default().with("image/png", Data::Bytes(vec![1, 2, 3, 4])),
        id: None,
        result: None,
    });
}

#[test]
fn full_store_keeps_the_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let retention = Retention {
        bytes: 100_000,
        ..Retention::default()
    };
    let artifacts = Artifacts::new(dir.path(), retention);
    let mut capture = Capture::new(Limits::default(), Some(artifacts.clone()));
    let text = numbered(100_000);
    for chunk in text.as_bytes().chunks(5000) {
        write(&mut capture, Stream::Stdout, chunk);
    }
    let captured = capture.finish();
    let (id, kept, lost) = captured
        .notices
        .iter()
        .find_map(|notice| match notice {
            Notice::NotStored {
                artifact,
                kept,
                lost,
                ..
            } => Some((artifact.unwrap(), *kept, *lost)),
            _ => None,
        })
        .unwrap();
    assert!(kept > 0 && kept <= 100_000);
    assert_eq!(kept + lost, text.len() as u64);
    let stored = std::fs::read(artifacts.open(id).unwrap().path()).unwrap();
    assert_eq!(stored, &text.as_bytes()[..usize::try_from(kept).unwrap()]);
    assert!(captured.text.ends_with("line 100000\n"));
}

#[test]
fn an_enormous_exception_is_bounded() {
    let mut capture = capture();
    capture.push(Event::Raised(Traceback {
        name: "E".to_owned(),
        value: "x".repeat(10_000_000),
        lines: (0..100_000).map(|n| format!("frame {n}")).collect(),
    }));
    let Captured { error, text, .. } = capture.finish();
    let error = error.unwrap();
    assert!(error.value.len() <= 256 * 1024);
    let bytes: usize = error.lines.iter().map(String::len).sum();
    assert!(bytes <= 256 * 1024);
    assert_eq!(error.lines[0], "frame 0");
    assert_eq!(error.lines.last().unwrap(), "frame 99999");
    assert!(
        error
            .lines
            .iter()
            .any(|line| line.contains("frames elided"))
    );
    assert!(text.len() <= 50 * 1024 && text.ends_with("frame 99999\n"));
}

#[test]
fn an_update_reaches_the_end_of_a_long_text() {
    // Without truncation, and with it.
    for lines in [3000, 30_000] {
        let mut capture = capture();
        out(&mut capture, &numbered(lines));
        show(&mut capture, "0%", Some("x"));
        out(&mut capture, "after\n");
        update(&mut capture, "one\nhundred", "x");
        out(&mut capture, "end\n");
        let captured = capture.finish();
        let end = format!("line {lines}\none\nhundred\nafter\nend\n");
        assert!(captured.text.ends_with(&end), "{lines}");
        assert_eq!(captured.truncation.is_some(), lines == 30_000);
    }
}

#[test]
fn large_update_is_truncated_and_counted() {
    let mut capture = capture();
    show(&mut capture, "small", Some("x"));
    update(&mut capture, &numbered(50_000), "x");
    out(&mut capture, "end\n");
    let captured = capture.finish();
    assert!(captured.text.len() <= 50 * 1024);
    assert!(captured.text.starts_with("line 1\n") && captured.text.ends_with("end\n"));
    assert!(captured.truncation.is_some());
}
