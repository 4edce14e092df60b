//! Arbitrary events: bounds hold, counts add up, and how text is cut when it comes does not show.
//!
//! The first byte says how text is cut. Then each event: a letter, and text up to the next `0xfe`.
//! In letters, so that the seeds can be read: `o` and `e` write to the streams, `d` displays, `i`
//! displays under an id, `u` updates, `h` shows HTML, `s` a status, `c`
//! clears, `w` clears and waits, `r` raises, any other takes a snapshot.

#![no_main]

use cellwright_output::{
    Bundle, Capture, Captured, Data, Event, Limits, Sink, Stream, Style, Traceback,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, events)) = data.split_first() else {
        return;
    };
    let whole = run(events, usize::MAX, limits());
    let cut = run(events, 1 + usize::from(first % 11), limits());
    assert_eq!(whole.text, cut.text);
    assert_eq!(whole.cut, cut.cut);
    assert_eq!(whole.notices, cut.notices);
    assert_eq!(whole.outputs.to_values(), cut.outputs.to_values());

    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!whole.text.contains(harmful), "{:?}", whole.text);
    assert!(whole.text.len() <= limits().inline_bytes);
    assert!(whole.outputs.len() <= limits().outputs + 16);
    if let Some(cut) = &whole.cut {
        let parts = cut.shown.bytes + cut.elided.bytes + cut.columns.bytes;
        assert_eq!(cut.total.bytes, parts);
        assert_eq!(cut.total.lines, cut.shown.lines + cut.elided.lines);
    }
    let text = written(&whole);
    serde_json::from_slice::<serde_json::Value>(&text).unwrap();
    assert_eq!(written(&cut), text);
    // Where displayed values are does not show either.
    let roomy = Limits {
        display_bytes: Limits::default().display_bytes,
        ..limits()
    };
    assert_eq!(written(&run(events, usize::MAX, roomy)), text);
});

/// What a notebook gets.
fn written(captured: &Captured) -> Vec<u8> {
    let mut written = Vec::new();
    let style = Style::default();
    captured.outputs.write(&mut written, &style, 1).unwrap();
    written
}

/// Small, so that every one is reached.
fn limits() -> Limits {
    Limits {
        inline_bytes: 300,
        head_bytes: 90,
        column_bytes: 24,
        line_characters: 40,
        rows: 3,
        stream_bytes: 200,
        display_bytes: 150,
        outputs: 9,
        status_events: 2,
        traceback_bytes: 60,
        ..Limits::default()
    }
}

fn run(events: &[u8], chunk: usize, limits: Limits) -> Captured {
    let mut capture = Capture::new(limits, None);
    for (at, event) in events.split(|&byte| byte == 0xfe).enumerate() {
        let Some((&kind, bytes)) = event.split_first() else {
            continue;
        };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let bundle = Bundle::text("text/plain", text.as_str());
        let id = bytes.first().map_or(0, |byte| byte % 3).to_string();
        match kind {
            b'o' | b'e' => {
                let stream = if kind == b'o' {
                    Stream::Stdout
                } else {
                    Stream::Stderr
                };
                for bytes in bytes.chunks(chunk.min(bytes.len().max(1))) {
                    capture.push(Event::Text { stream, bytes });
                }
            }
            b'd' => capture.push(Event::Display {
                bundle: bundle.with("image/png", Data::Bytes(bytes.to_vec())),
                id: None,
                result: u32::try_from(at).ok(),
            }),
            b'i' => capture.push(Event::Display {
                bundle,
                id: Some(id),
                result: None,
            }),
            b'u' => capture.push(Event::Update { bundle, id }),
            b'h' => capture.push(Event::Display {
                bundle: Bundle::text("text/html", text),
                id: None,
                result: None,
            }),
            b's' => capture.push(Event::Display {
                bundle: Bundle::text("application/x-cellwright-status", text),
                id: None,
                result: None,
            }),
            b'c' => capture.push(Event::Clear { wait: false }),
            b'w' => capture.push(Event::Clear { wait: true }),
            b'r' => capture.push(Event::Raised(Traceback {
                name: "E".to_owned(),
                value: text.clone(),
                lines: text.lines().map(str::to_owned).collect(),
            })),
            _ => drop(capture.snapshot()),
        }
    }
    capture.finish()
}
