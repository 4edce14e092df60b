//! JSON as it stands in the file: scanned, never rebuilt.
//!
//! [`input`] brings the bytes ([`ahead`] from a thread of its own), [`lexer`] walks over them and finds where values begin and end,
//! [`object`] lists the members and elements of one value, [`text`] turns string tokens into text
//! and back, [`indent`] lays a document out anew, [`alter`] changes members of an object, [`content`]
//! tells what a value says however it is written.

pub(crate) mod ahead;
pub(crate) mod alter;
pub(crate) mod content;
pub(crate) mod indent;
pub(crate) mod input;
pub(crate) mod lexer;
pub(crate) mod object;
pub(crate) mod text;
mod utf8;
