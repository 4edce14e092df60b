//! The MCP server, used as clients use it: over its standard streams and over HTTP.

pub(crate) mod client;
mod ends;
mod exchanged_dirs;
mod files;
mod forgery;
mod http;
mod http_browser;
mod http_server;
mod http_sessions;
mod images;
mod input;
mod interleaved;
mod invalid_messages;
mod output;
mod paths;
mod projects;
mod protocol;
mod replies;
mod resources;
mod run_output;
mod shared_host;
mod story;
mod wrong_calls;
