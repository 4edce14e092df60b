//! Arbitrary bytes through all code that makes text safe to show.
//!
//! The first byte sets the chunk size.

#![no_main]

use cellwright_output::{Capture, Event, Limits, LiveTarget, LiveText, Sink, Stream, clean};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let chunk_size = 1 + usize::from(first % 7);
    let lossy = String::from_utf8_lossy(bytes);
    let plain = clean::plain(&lossy);
    assert!(!plain.contains(is_harmful), "{plain:?}");
    assert_eq!(clean::plain(&plain), plain);
    assert_eq!(clean::plain(&clean::coloured(&lossy)), plain);

    // Nothing is truncated here, so the text does not depend on the chunks.
    let limits = Limits {
        inline_bytes: 1 << 20,
        line_bytes: 0,
        line_characters: 1 << 16,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, None);
    for bytes in bytes.chunks(chunk_size) {
        let stream = Stream::Stdout;
        capture.push(Event::Text { stream, bytes });
    }
    assert_eq!(capture.finish().text, plain);

    for target in [
        LiveTarget::ColourTerminal,
        LiveTarget::PlainTerminal,
        LiveTarget::Pipe,
    ] {
        let whole = live_text(target, bytes, bytes.len().max(1));
        assert_eq!(live_text(target, bytes, chunk_size), whole);
        if target == LiveTarget::Pipe {
            assert!(!whole.contains(is_harmful), "{whole:?}");
        }
    }
});

fn live_text(target: LiveTarget, bytes: &[u8], chunk_size: usize) -> String {
    let mut live = LiveText::new(target);
    let mut out = String::new();
    for bytes in bytes.chunks(chunk_size) {
        live.push(bytes, &mut out);
    }
    live.finish(&mut out);
    out
}

fn is_harmful(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}
