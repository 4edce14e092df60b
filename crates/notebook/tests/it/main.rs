//! The guarantees of the crate, tested through its public API: no content is lost, edits change
//! only what they name, nbformat agrees, and no update is lost.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "the interpreter and the number of cases come from variables"
)]

mod blocks;
mod compare;
mod corpus;
mod faults;
mod generate;
mod guard;
mod identity;
mod merge;
mod merge_random;
mod operations;
mod oracle;
mod other_writers;
mod parse;
mod percent;
mod record;
mod replace;
mod robust;
mod select;
mod single;
mod support;
mod three_way;
mod three_way_random;
mod three_way_sides;
mod window;
