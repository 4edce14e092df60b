//! The MCP server: the verbs as tools, notebooks, artifacts and kernels as resources.
//!
//! ```text
//! stdio ─┐                                     ┌─ tools/*  ── verbs ──► files
//! http ──┴─► rmcp ─► Handler ─► Server ─────────┼─ conversation ── frames ──► Reach: own kernels, or the host
//!                                              └─ resources, prompts
//! ```
//!
//! Standard output belongs to the protocol. Text from files and code is data: it stands between borders
//! that it cannot know ([`content`]), and what we have to say about it in fields of its own. Paths lead
//! into the client's roots, or nowhere ([`roots`]).

mod arguments;
pub(crate) mod config;
mod content;
mod conversation;
mod guarded;
mod handler;
pub(crate) mod http;
mod images;
mod in_flight_calls;
mod input;
mod line_guard;
mod progress;
mod prompts;
mod resources;
pub(crate) mod roots;
mod server;
pub(crate) mod stdio;
mod subscriptions;
pub(crate) mod token;
mod tools;
mod wording;

pub(crate) use server::{Server, ServerOptions};
