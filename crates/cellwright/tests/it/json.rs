//! The JSON of every verb: its schemas, and real documents that a foreign validator compares with them.

mod collector;
mod documents;
mod events;
mod executions;
mod schemas;
