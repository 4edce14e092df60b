//! JSON as it is in the file: scanned, never rebuilt.
//!
//! [`input`] provides the bytes ([`read_ahead`] reads them on a second thread), [`lexer`] finds
//! where values start and end, [`object`] lists the members and elements of one value, [`text`]
//! decodes and encodes string tokens, [`style`] describes white space and escapes,
//! [`format`](mod@format) applies a style to a value, [`object_edit`] changes members of an
//! object, [`content`] compares values independently of their layout.

pub(crate) mod content;
pub(crate) mod format;
pub(crate) mod input;
pub(crate) mod lexer;
pub(crate) mod object;
pub(crate) mod object_edit;
pub(crate) mod read_ahead;
pub(crate) mod style;
pub(crate) mod text;
mod utf8;
