//! The MCP server: verbs as tools; notebooks, artifacts and sessions as resources.
//!
//! ```text
//! stdio ─┐                                     ┌─ tools/*  ── operations ──► files
//! http ──┴─► rmcp ─► Handler ─► Server ─────────┼─ followed_run ► KernelHost: in-process or shared host
//!                                              └─ resources, prompts
//! ```
//!
//! Standard output carries only protocol messages. Text from files and code is data: replies enclose it in
//! delimiters that the text cannot forge (`content`), and report everything else in separate fields. Paths
//! must lead into the client's roots ([`roots`]).

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

mod arguments;
pub mod config;
mod content;
mod followed_run;
mod handler;
pub mod http;
mod http_sessions;
mod images;
mod in_flight_calls;
mod input;
mod line_filter;
mod message_check;
mod output_excerpt;
mod progress;
mod prompts;
pub mod roots;
mod server;
mod session_target;
pub mod stdio;
pub mod token;
mod tool_names;
mod tools;
mod wording;

#[cfg(feature = "fuzz")]
pub use message_check::message_error;
pub use server::{Server, ServerOptions};
