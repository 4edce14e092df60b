//! Arbitrary HTML becomes some Markdown, soon.

#![no_main]

use cellwright_output::{Bundle, Limits, displayed_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let html = String::from_utf8_lossy(data);
    let bundle = Bundle::text("text/html", html.as_ref());
    let limits = Limits::default();
    let text = displayed_text(&bundle, &limits).unwrap_or_default();
    // Spans may add empty cells, and escapes a character to each; nothing else makes it longer.
    assert!(text.len() <= 600 * data.len() + 100, "{} of {}", text.len(), data.len());
});
