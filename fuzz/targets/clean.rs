//! Arbitrary bytes through everything that makes text safe to read.
//!
//! The first byte says how the rest is cut when it comes.

#![no_main]

use cellwright_output::{Capture, Event, Limits, Live, Sink, Stream, Target, clean};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let chunk = 1 + usize::from(first % 7);
    let lossy = String::from_utf8_lossy(bytes);
    let plain = clean::plain(&lossy);
    assert!(!plain.contains(is_harmful), "{plain:?}");
    assert_eq!(clean::plain(&plain), plain);
    assert_eq!(clean::plain(&clean::coloured(&lossy)), plain);

    // Nothing is cut here, so the text is the same, however it comes.
    let limits = Limits {
        inline_bytes: 1 << 20,
        column_bytes: 0,
        line_characters: 1 << 16,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, None);
    for bytes in bytes.chunks(chunk) {
        let stream = Stream::Stdout;
        capture.push(Event::Text { stream, bytes });
    }
    assert_eq!(capture.finish().text, plain);

    for target in [Target::Colours, Target::Terminal, Target::Pipe] {
        let whole = live(target, bytes, bytes.len().max(1));
        assert_eq!(live(target, bytes, chunk), whole);
        if target == Target::Pipe {
            assert!(!whole.contains(is_harmful), "{whole:?}");
        }
    }
});

fn live(target: Target, bytes: &[u8], chunk: usize) -> String {
    let mut live = Live::new(target);
    let mut out = String::new();
    for bytes in bytes.chunks(chunk) {
        live.push(bytes, &mut out);
    }
    live.finish(&mut out);
    out
}

fn is_harmful(character: char) -> bool {
    character.is_control() && character != '\n' && character != '\t'
}
