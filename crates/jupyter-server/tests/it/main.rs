//! Integration tests: records that must not be believed, and servers that do not reply as they should.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod hostile;
mod support;
