//! Arbitrary HTML becomes Markdown, within bounded time and size.

#![no_main]

use cellwright_output::{Bundle, Limits, displayed_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let html = String::from_utf8_lossy(data);
    let bundle = Bundle::text("text/html", html.as_ref());
    let limits = Limits::default();
    let text = displayed_text(&bundle, &[], &limits).unwrap_or_default();
    // Spans may add cells, but only a bounded number.
    assert!(
        text.len() <= 10 * data.len() + (5 << 20),
        "{} of {}",
        text.len(),
        data.len()
    );
});
