//! Arbitrary text through the functions that make it safe for a terminal.

#![no_main]

use cellwright_output::{LiveTarget, LiveText};
use cellwright_stdext::terminal_text::{
    escape_json, is_control, show_controls, show_other_controls,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let shown = show_controls(&text);
    assert!(!shown.contains(is_control), "{shown:?}");
    assert_eq!(show_controls(&shown), shown);
    check_sequences(&show_other_controls(&text));

    let json = Value::from(&*text).to_string();
    let escaped = escape_json(&json);
    assert!(!escaped.contains(is_control), "{escaped:?}");
    assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), *text);
    // Any JSON stays the same value.
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        assert_eq!(
            serde_json::from_str::<Value>(&escape_json(&text)).unwrap(),
            value
        );
    }

    // As the text of a kernel reaches a terminal.
    let mut live = LiveText::new(LiveTarget::ColourTerminal);
    let mut out = String::new();
    live.push(data, &mut out);
    live.finish(&mut out);
    let shown = show_other_controls(&out);
    check_sequences(&shown);
    assert!(!shown.contains('␛') || text.contains('␛'), "{shown:?}");
});

/// Fails if a terminal would receive anything but colours and redrawn lines.
fn check_sequences(text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(is_control) {
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix(['\r', '\u{8}']) {
            rest = after;
            continue;
        }
        let sequence = rest.strip_prefix("\u{1b}[").expect(text);
        let is_parameter = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
        let sequence = sequence.trim_start_matches(is_parameter);
        rest = sequence.strip_prefix(['m', 'K']).expect(text);
    }
}
