//! What the crate promises, tested from outside: nothing is lost, only what was asked for changes,
//! Python's own notebook library agrees, and no update is lost.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "who runs the tests gives them an interpreter and patience in variables"
)]

mod blocks;
mod compare;
mod corpus;
mod faults;
mod generate;
mod identity;
mod merge;
mod merge_random;
mod operations;
mod oracle;
mod record;
mod robust;
mod single;
mod support;
mod three_way;
mod three_way_random;
mod three_way_sides;
mod window;
