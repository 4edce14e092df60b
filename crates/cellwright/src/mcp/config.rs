//! What to paste into a client's settings so that it starts the server.

use clap::ValueEnum;
use serde_json::{Value, json};

/// A client of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// VS Code
    Vscode,
    /// Zed
    Zed,
    /// Gemini CLI
    Gemini,
}

/// How the server is reached.
pub(crate) enum Way {
    /// The client starts this program with these arguments.
    Starts {
        program: String,
        arguments: Vec<String>,
    },
    /// It is reached there, with the token in that file.
    Reaches { url: String, token_file: String },
}

/// Where the entry goes, and the entry.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    /// The file, and how else it can be done.
    pub(crate) place: String,
    pub(crate) text: String,
}

/// The variable that a client takes the token from.
const TOKEN: &str = "CELLWRIGHT_MCP_TOKEN";

/// The entry for a client.
pub(crate) fn entry(client: Client, way: &Way) -> Entry {
    let (place, text) = match (client, way) {
        (Client::Claude, Way::Starts { program, arguments }) => {
            let line = shell(program, arguments);
            (
                format!(".mcp.json in the project; or run: claude mcp add cellwright -- {line}"),
                pretty(&json!({"mcpServers": {"cellwright": {
                    "command": program, "args": arguments,
                }}})),
            )
        }
        (Client::Claude, Way::Reaches { url, .. }) => (
            format!(".mcp.json in the project, with the token in {TOKEN}"),
            pretty(&json!({"mcpServers": {"cellwright": {
                "type": "http", "url": url, "headers": {"Authorization": format!("Bearer ${{{TOKEN}}}")},
            }}})),
        ),
        (Client::Codex, Way::Starts { program, arguments }) => (
            format!(
                "~/.codex/config.toml; or run: codex mcp add cellwright -- {}",
                shell(program, arguments)
            ),
            format!(
                "[mcp_servers.cellwright]\ncommand = {}\nargs = {}\ntool_timeout_sec = 120",
                json!(program),
                json!(arguments)
            ),
        ),
        (Client::Codex, Way::Reaches { url, .. }) => (
            format!("~/.codex/config.toml, with the token in {TOKEN}"),
            format!(
                "[mcp_servers.cellwright]\nurl = {}\nbearer_token_env_var = \"{TOKEN}\"",
                json!(url)
            ),
        ),
        (Client::Cursor, way) => (
            ".cursor/mcp.json in the project, or ~/.cursor/mcp.json".to_owned(),
            pretty(
                &json!({"mcpServers": {"cellwright": in_folder(way, &format!("${{env:{TOKEN}}}"))}}),
            ),
        ),
        (Client::Vscode, way) => {
            let mut server = in_folder(way, "${input:cellwright-token}");
            let kind = if matches!(way, Way::Starts { .. }) {
                "stdio"
            } else {
                "http"
            };
            server["type"] = json!(kind);
            let mut document = json!({"servers": {"cellwright": server}});
            if kind == "http" {
                document["inputs"] = json!([{
                    "type": "promptString", "id": "cellwright-token", "description": "Token", "password": true,
                }]);
            }
            (
                ".vscode/mcp.json in the project".to_owned(),
                pretty(&document),
            )
        }
        (Client::Zed, Way::Starts { program, arguments }) => (
            "settings.json of Zed".to_owned(),
            pretty(&json!({"context_servers": {"cellwright": {
                "command": program, "args": arguments,
            }}})),
        ),
        (Client::Zed, Way::Reaches { url, .. }) => (
            "settings.json of Zed, with the token in the place of TOKEN".to_owned(),
            pretty(&json!({"context_servers": {"cellwright": {
                "url": url, "headers": {"Authorization": "Bearer TOKEN"},
            }}})),
        ),
        (Client::Gemini, Way::Starts { program, arguments }) => (
            ".gemini/settings.json in the project, or ~/.gemini/settings.json".to_owned(),
            pretty(&json!({"mcpServers": {"cellwright": {
                "command": program, "args": arguments, "timeout": 120_000,
            }}})),
        ),
        (Client::Gemini, Way::Reaches { url, .. }) => (
            format!(".gemini/settings.json in the project, with the token in {TOKEN}"),
            pretty(&json!({"mcpServers": {"cellwright": {
                "httpUrl": url, "headers": {"Authorization": format!("Bearer ${TOKEN}")},
            }}})),
        ),
    };
    let mut place = place;
    if let Way::Reaches { token_file, .. } = way {
        place.push_str(&format!(" (the token is in {token_file})"));
    }
    Entry { place, text }
}

/// For clients that do not start servers in the project's folder but know its name.
fn in_folder(way: &Way, token: &str) -> Value {
    match way {
        Way::Starts { program, arguments } => {
            let mut arguments = arguments.clone();
            if !arguments.iter().any(|argument| argument == "--root") {
                arguments.extend(["--root".to_owned(), "${workspaceFolder}".to_owned()]);
            }
            json!({"command": program, "args": arguments})
        }
        Way::Reaches { url, .. } => {
            json!({"url": url, "headers": {"Authorization": format!("Bearer {token}")}})
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// A command line that a shell understands.
fn shell(program: &str, arguments: &[String]) -> String {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}
