//! Tests of what running code produces.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "who runs the tests gives them an interpreter in a variable"
)]
#![expect(clippy::format_collect, reason = "short inputs, made once")]

mod artifacts;
mod asides;
mod capture;
mod clean;
mod html;
mod images;
mod live;
mod oracle;
mod outputs;
mod pick;
mod properties;
mod stored;
mod terminal;
