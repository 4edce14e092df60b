//! The MCP server: verbs as tools; notebooks, artifacts and sessions as resources.
//!
//! ```text
//! stdio ─┐                                     ┌─ tools/*  ── operations ──► files
//! http ──┴─► rmcp ─► Handler ─► Server ─────────┼─ tool_run ──► KernelHost: in-process or shared host
//!                                              └─ resources, prompts
//! ```
//!
//! Standard output carries only protocol messages. Text from files and code is data: replies enclose it in
//! delimiters that the text cannot forge (`content`), and report everything else in separate fields. Paths
//! must lead into the client's roots ([`roots`]).

#![expect(
    missing_docs,
    reason = "an internal crate: fields and variants whose names say it all"
)]

mod arguments;
pub mod config;
mod content;
mod handler;
pub mod http;
mod images;
mod in_flight_calls;
mod input;
mod line_guard;
mod progress;
mod prompts;
pub mod roots;
mod server;
pub mod stdio;
pub mod token;
mod tool_names;
mod tool_run;
mod tools;
mod wording;

pub use server::{Server, ServerOptions};
