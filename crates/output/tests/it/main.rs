//! Integration tests of the output crate.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test environment names the interpreter in a variable"
)]
#![expect(clippy::format_collect, reason = "short inputs, made once")]

mod artifacts;
mod capture;
mod clean;
mod display_text;
mod html;
mod images;
mod live;
mod oracle;
mod outputs;
mod properties;
mod show_only;
mod stored_value;
mod terminal;
