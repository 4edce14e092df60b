//! Values that arrive in files behave like values in memory.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Data, Encoding, Event, JsonStyle, Limits, Retention,
    Scratch, Sink, Stream, displayed_text,
};
use serde_json::Value;

use crate::outputs::values;

/// The same bundle, with all values in a file.
fn on_disk(bundle: &Bundle, scratch: &Scratch) -> Bundle {
    let mut bundle = bundle.clone();
    for (_, data) in &mut bundle.data {
        let (form, bytes) = match &*data {
            Data::Text(text) => (Encoding::Text, text.clone().into_bytes()),
            Data::Bytes(bytes) => (Encoding::Bytes, bytes.clone()),
            Data::Json(value) => (Encoding::Json, value.to_string().into_bytes()),
            Data::Stored(_) => continue,
        };
        *data = Data::Stored(scratch.store(form, &bytes).unwrap());
    }
    bundle
}

/// Captures a bundle between two lines. Returns the result and all artifacts.
fn run(bundle: &Bundle, limits: &Limits) -> (Captured, Vec<Vec<u8>>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path(), Retention::default());
    let mut capture = Capture::new(limits.clone(), Some(artifacts.clone()));
    let stream = Stream::Stdout;
    let (id, result) = (Some("x".to_owned()), None);
    capture.push(Event::Text {
        stream,
        bytes: b"before",
    });
    capture.push(Event::Display {
        bundle: Bundle::text("text/plain", "old"),
        id: id.clone(),
        result,
    });
    capture.push(Event::Display {
        bundle: bundle.clone(),
        id: None,
        result: Some(1),
    });
    capture.push(Event::Update {
        bundle: bundle.clone(),
        id: id.unwrap(),
    });
    capture.push(Event::Text {
        stream,
        bytes: b"after",
    });
    let captured = capture.finish();
    let stored_files = artifacts.list().unwrap();
    let stored_files = stored_files
        .iter()
        .map(|entry| std::fs::read(&entry.path).unwrap());
    (captured, stored_files.collect(), dir)
}

#[test]
fn stored_values_behave_like_values_in_memory() {
    let text = |length: usize| "é \"line\"\n\r\u{1b}[31mred".repeat(length);
    let svg = "<svg width='3' height='2'></svg>\n".repeat(3000);
    let bundles = [
        Bundle::text("text/plain", text(10)),
        Bundle::text("text/plain", text(5000)),
        Bundle::text("text/markdown", text(5000)).with("text/plain", Data::Text("x".into())),
        Bundle::text("text/html", "<p>é</p>\n".repeat(40_000)),
        Bundle::text("text/html", "<i>short</i>"),
        Bundle::text("text/latex", "$x$\n".repeat(40_000)),
        Bundle::text("text/plain", "").with("image/svg+xml", Data::Text(svg)),
        Bundle::text("image/png", "iVBORw0KGgo=\n".repeat(9000)),
        Bundle::text("image/png", "no base64!".repeat(9000)),
        Bundle::default().with("image/png", Data::Bytes(vec![7; 100_001])),
        Bundle::default().with("application/pdf", Data::Text("QUJD".repeat(40_000))),
        Bundle::default().with("application/x-foo", Data::Text(text(5000))),
        Bundle::default(),
    ];
    let scratch = Scratch::default();
    for (at, bundle) in bundles.iter().enumerate() {
        let small = Limits {
            display_bytes: 1000,
            ..Limits::default()
        };
        for limits in [Limits::default(), small] {
            let stored = on_disk(bundle, &scratch);
            assert_eq!(
                displayed_text(&stored, &[], &limits),
                displayed_text(bundle, &[], &limits)
            );
            let (expected, artifacts, _folder) = run(bundle, &limits);
            let (captured, stored_files, _other) = run(&stored, &limits);
            assert!(stored_files == artifacts, "artifacts of {at}");
            // A value that is not base64 takes another number.
            let masked = |text: &str| -> String {
                let parts = text.split_inclusive("artifact://");
                let parts = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
                parts.collect()
            };
            let texts = [&captured.text, &expected.text].map(|text| masked(text));
            assert_eq!(texts[0], texts[1], "text of {at}");
            assert_eq!(
                captured.truncation, expected.truncation,
                "truncation of {at}"
            );
            let notices = [&captured.notices, &expected.notices]
                .map(|notices| format!("{notices:?}").replace(|c: char| c.is_ascii_digit(), ""));
            assert_eq!(notices[0], notices[1], "notices of {at}");
            let json = |captured: &Captured| {
                let values = serde_json::to_string(&values(&captured.outputs)).unwrap();
                let outputs = serde_json::to_string(&captured.outputs).unwrap();
                masked(&(values + &outputs))
            };
            assert!(json(&captured) == json(&expected), "JSON of {at}");
            let written = |captured: &Captured| {
                let mut written = Vec::new();
                let style = JsonStyle::default();
                captured.outputs.write(&mut written, &style, 3).unwrap();
                written
            };
            let written_text = |captured| masked(&String::from_utf8(written(captured)).unwrap());
            assert!(
                written_text(&captured) == written_text(&expected),
                "notebook of {at}"
            );
            let values: Vec<Value> = serde_json::from_slice(&written(&captured)).unwrap();
            assert_eq!(values.len(), 4);
            assert_eq!(captured.images.len(), expected.images.len());
            for (image, other) in captured.images.iter().zip(&expected.images) {
                assert_eq!(image.bytes, other.bytes, "image of {at}");
                assert!(image.original().unwrap() == other.original().unwrap());
            }
        }
    }
}
