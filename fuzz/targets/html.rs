//! Arbitrary HTML becomes some Markdown, soon.

#![no_main]

use cellwright_output::{Bundle, Limits, displayed_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let html = String::from_utf8_lossy(data);
    let bundle = Bundle::text("text/html", html.as_ref());
    let limits = Limits::default();
    let text = displayed_text(&bundle, &limits).unwrap_or_default();
    // Spans may add cells, but not without end.
    assert!(
        text.len() <= 10 * data.len() + (5 << 20),
        "{} of {}",
        text.len(),
        data.len()
    );
});
