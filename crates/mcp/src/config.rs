//! Configuration snippets for MCP clients, for `mcp --print-config`.

use serde_json::{Value, json};

/// An MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
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

/// How the client connects to the server.
pub enum Transport {
    /// The client starts this program with these arguments and uses its standard input and output.
    Stdio {
        program: String,
        arguments: Vec<String>,
    },
    /// The client sends requests to this URL, with the token in this file.
    Http { url: String, token_file: String },
}

/// A configuration snippet.
#[derive(Debug, PartialEq)]
pub struct ClientConfig {
    /// The file that it belongs into, and other ways to configure the client.
    pub location: String,
    pub text: String,
}

/// Environment variable from which clients read the token.
const TOKEN_VARIABLE: &str = "CELLWRIGHT_MCP_TOKEN";

/// Returns the snippet for a client.
pub fn client_config(client: Client, transport: &Transport) -> ClientConfig {
    let (location, text) = match (client, transport) {
        (Client::Claude, Transport::Stdio { program, arguments }) => {
            let line = shell_command(program, arguments);
            (
                format!(".mcp.json in the project; or run: claude mcp add cellwright -- {line}"),
                to_pretty_json(&json!({"mcpServers": {"cellwright": {
                    "command": program, "args": arguments,
                }}})),
            )
        }
        (Client::Claude, Transport::Http { url, .. }) => (
            format!(".mcp.json in the project, with the token in {TOKEN_VARIABLE}"),
            to_pretty_json(&json!({"mcpServers": {"cellwright": {
                "type": "http", "url": url, "headers": {"Authorization": format!("Bearer ${{{TOKEN_VARIABLE}}}")},
            }}})),
        ),
        (Client::Codex, Transport::Stdio { program, arguments }) => (
            format!(
                "~/.codex/config.toml; or run: codex mcp add cellwright -- {}",
                shell_command(program, arguments)
            ),
            format!(
                "[mcp_servers.cellwright]\ncommand = {}\nargs = {}\ntool_timeout_sec = 120",
                json!(program),
                json!(arguments)
            ),
        ),
        (Client::Codex, Transport::Http { url, .. }) => (
            format!("~/.codex/config.toml, with the token in {TOKEN_VARIABLE}"),
            format!(
                "[mcp_servers.cellwright]\nurl = {}\nbearer_token_env_var = \"{TOKEN_VARIABLE}\"",
                json!(url)
            ),
        ),
        (Client::Cursor, transport) => (
            ".cursor/mcp.json in the project, or ~/.cursor/mcp.json".to_owned(),
            to_pretty_json(
                &json!({"mcpServers": {"cellwright": server_entry(transport, &format!("${{env:{TOKEN_VARIABLE}}}"))}}),
            ),
        ),
        (Client::Vscode, transport) => {
            let mut server = server_entry(transport, "${input:cellwright-token}");
            let kind = if matches!(transport, Transport::Stdio { .. }) {
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
                to_pretty_json(&document),
            )
        }
        (Client::Zed, Transport::Stdio { program, arguments }) => (
            "Zed's settings.json".to_owned(),
            to_pretty_json(&json!({"context_servers": {"cellwright": {
                "command": program, "args": arguments,
            }}})),
        ),
        (Client::Zed, Transport::Http { url, .. }) => (
            "Zed's settings.json, with the token instead of TOKEN".to_owned(),
            to_pretty_json(&json!({"context_servers": {"cellwright": {
                "url": url, "headers": {"Authorization": "Bearer TOKEN"},
            }}})),
        ),
        (Client::Gemini, Transport::Stdio { program, arguments }) => (
            ".gemini/settings.json in the project, or ~/.gemini/settings.json".to_owned(),
            to_pretty_json(&json!({"mcpServers": {"cellwright": {
                "command": program, "args": arguments, "timeout": 120_000,
            }}})),
        ),
        (Client::Gemini, Transport::Http { url, .. }) => (
            format!(".gemini/settings.json in the project, with the token in {TOKEN_VARIABLE}"),
            to_pretty_json(&json!({"mcpServers": {"cellwright": {
                "httpUrl": url, "headers": {"Authorization": format!("Bearer ${TOKEN_VARIABLE}")},
            }}})),
        ),
    };
    let mut location = location;
    if let Transport::Http { token_file, .. } = transport {
        location.push_str(&format!(" (the token is in {token_file})"));
    }
    ClientConfig { location, text }
}

/// The server's entry for clients that do not start servers in the project's directory but have a variable for it.
fn server_entry(transport: &Transport, token: &str) -> Value {
    match transport {
        Transport::Stdio { program, arguments } => {
            let mut arguments = arguments.clone();
            if !arguments.iter().any(|argument| argument == "--root") {
                arguments.extend(["--root".to_owned(), "${workspaceFolder}".to_owned()]);
            }
            json!({"command": program, "args": arguments})
        }
        Transport::Http { url, .. } => {
            json!({"url": url, "headers": {"Authorization": format!("Bearer {token}")}})
        }
    }
}

fn to_pretty_json(value: &Value) -> String {
    format!("{value:#}")
}

/// Quotes a command line for a shell.
fn shell_command(program: &str, arguments: &[String]) -> String {
    let quote = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.map(quote).collect::<Vec<_>>().join(" ")
}
