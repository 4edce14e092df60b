//! Parses arbitrary text as the settings file of a project.

#![no_main]

use cellwright_engine::settings::parse_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(failure) = parse_text(text) {
        assert!(!failure.message.is_empty());
    }
});
