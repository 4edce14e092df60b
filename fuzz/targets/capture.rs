//! Arbitrary events: limits hold, counts add up, and the result does not depend on the chunks.
//!
//! The first byte sets the chunk size. Each event is a letter, and text up to the next `0xfe`. Letters make
//! the seeds readable: `o` and `e` write to the streams, `d` displays, `i` displays with an id, `u` updates,
//! `h` displays HTML, `s` sends a status event, `c` clears, `w` clears with wait, `r` raises, any other
//! letter reads the current text.

#![no_main]

use cellwright_output::{
    Bundle, Capture, Captured, Data, Event, JsonStyle, Limits, Sink, Stream, Traceback,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, events)) = data.split_first() else {
        return;
    };
    let whole = run(events, usize::MAX, limits());
    let chunked = run(events, 1 + usize::from(first % 11), limits());
    assert_eq!(whole.text, chunked.text);
    assert_eq!(whole.truncation, chunked.truncation);
    assert_eq!(whole.notices, chunked.notices);
    assert_eq!(values(&whole), values(&chunked));

    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!whole.text.contains(harmful), "{:?}", whole.text);
    assert!(whole.text.len() <= limits().inline_bytes);
    assert!(whole.outputs.len() <= limits().outputs + 16);
    if let Some(truncation) = &whole.truncation {
        let parts = truncation.shown.bytes + truncation.elided.bytes + truncation.long_lines.bytes;
        assert_eq!(truncation.total.bytes, parts);
        assert_eq!(
            truncation.total.lines,
            truncation.shown.lines + truncation.elided.lines
        );
    }
    let text = written(&whole);
    serde_json::from_slice::<serde_json::Value>(&text).unwrap();
    assert_eq!(written(&chunked), text);
    // The result does not depend on where displayed values are stored.
    let roomy = Limits {
        display_bytes: Limits::default().display_bytes,
        ..limits()
    };
    assert_eq!(written(&run(events, usize::MAX, roomy)), text);
});

/// The outputs as a report contains them.
fn values(captured: &Captured) -> serde_json::Value {
    serde_json::to_value(&captured.outputs).unwrap()
}

/// The outputs as written to a notebook.
fn written(captured: &Captured) -> Vec<u8> {
    let mut written = Vec::new();
    let style = JsonStyle::default();
    captured.outputs.write(&mut written, &style, 1).unwrap();
    written
}

/// Small limits, so that each one is reached.
fn limits() -> Limits {
    Limits {
        inline_bytes: 300,
        head_bytes: 90,
        line_bytes: 24,
        line_characters: 40,
        cursor_rows: 3,
        stream_bytes: 200,
        display_bytes: 150,
        outputs: 9,
        status_events: 2,
        traceback_bytes: 60,
        ..Limits::default()
    }
}

fn run(events: &[u8], chunk_size: usize, limits: Limits) -> Captured {
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
                for bytes in bytes.chunks(chunk_size.min(bytes.len().max(1))) {
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
            _ => drop(capture.current_text()),
        }
    }
    capture.finish()
}
