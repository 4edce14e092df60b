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
    /// Qwen Code
    Qwen,
    /// GitHub Copilot CLI
    Copilot,
    /// Cline
    Cline,
    /// opencode
    Opencode,
    /// Mistral Vibe
    Vibe,
    /// Continue
    Continue,
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
    /// The setting for runs without a user, in which no one can approve a call.
    pub headless: Option<&'static str>,
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
                "[mcp_servers.cellwright]\ncommand = {}\nargs = {}\ntool_timeout_sec = 120\n{CODEX_APPROVAL}",
                json!(program),
                json!(arguments)
            ),
        ),
        (Client::Codex, Transport::Http { url, .. }) => (
            format!("~/.codex/config.toml, with the token in {TOKEN_VARIABLE}"),
            format!(
                "[mcp_servers.cellwright]\nurl = {}\nbearer_token_env_var = \"{TOKEN_VARIABLE}\"\n{CODEX_APPROVAL}",
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
        (Client::Gemini, transport) => gemini_config(".gemini", transport),
        (Client::Qwen, transport) => gemini_config(".qwen", transport),
        (Client::Copilot, transport) => (
            "a file such as mcp.json; run: copilot --additional-mcp-config @mcp.json".to_owned(),
            to_pretty_json(&json!({"mcpServers": {"cellwright": plain_entry(transport)}})),
        ),
        (Client::Cline, transport) => (
            "cline_mcp_settings.json (MCP Servers, Configure)".to_owned(),
            to_pretty_json(&json!({"mcpServers": {"cellwright": plain_entry(transport)}})),
        ),
        (Client::Opencode, transport) => (
            "opencode.json in the project, or ~/.config/opencode/opencode.json".to_owned(),
            to_pretty_json(&json!({"mcp": {"cellwright": opencode_entry(transport)}})),
        ),
        (Client::Vibe, transport) => (
            ".vibe/config.toml in the project, or ~/.vibe/config.toml".to_owned(),
            vibe_entry(transport),
        ),
        (Client::Continue, transport) => (
            "~/.continue/config.yaml; the prefix keeps `read` apart from Continue's own tools"
                .to_owned(),
            continue_entry(transport),
        ),
    };
    let mut location = location;
    if let Transport::Http { token_file, .. } = transport {
        location.push_str(&format!(" (the token is in {token_file})"));
    }
    ClientConfig {
        location,
        text,
        headless: headless(client),
    }
}

/// The comment in the configuration of Codex for runs without a user.
const CODEX_APPROVAL: &str = "\
# `codex exec` cannot ask for approval and rejects calls that change files or run code. This line allows all calls of this server:
# default_tools_approval_mode = \"approve\"";

/// The setting for runs without a user.
fn headless(client: Client) -> Option<&'static str> {
    match client {
        Client::Gemini | Client::Qwen => Some(
            "without a terminal (-p) no MCP tool is offered unless the entry has \"trust\": true, which runs all calls \
             of this server without approval",
        ),
        Client::Claude => Some(
            "with `claude -p`, allow the tools: --allowedTools mcp__cellwright; calls then run without approval",
        ),
        Client::Codex => Some(
            "`codex exec` needs default_tools_approval_mode, which the entry has as a comment: calls then run without \
             approval",
        ),
        _ => None,
    }
}

/// The entry of Gemini CLI, and of Qwen Code, which has the same format.
fn gemini_config(dir: &str, transport: &Transport) -> (String, String) {
    match transport {
        Transport::Stdio { program, arguments } => (
            format!("{dir}/settings.json in the project, or ~/{dir}/settings.json"),
            to_pretty_json(&json!({"mcpServers": {"cellwright": {
                "command": program, "args": arguments, "timeout": 120_000,
            }}})),
        ),
        Transport::Http { url, .. } => (
            format!("{dir}/settings.json in the project, with the token in {TOKEN_VARIABLE}"),
            to_pretty_json(&json!({"mcpServers": {"cellwright": {
                "httpUrl": url, "headers": {"Authorization": format!("Bearer ${TOKEN_VARIABLE}")},
            }}})),
        ),
    }
}

/// The entry that Claude Code, Copilot CLI and Cline share.
fn plain_entry(transport: &Transport) -> Value {
    match transport {
        Transport::Stdio { program, arguments } => json!({"command": program, "args": arguments}),
        Transport::Http { url, .. } => json!({
            "type": "http", "url": url,
            "headers": {"Authorization": format!("Bearer ${{{TOKEN_VARIABLE}}}")},
        }),
    }
}

fn opencode_entry(transport: &Transport) -> Value {
    match transport {
        Transport::Stdio { program, arguments } => {
            let command: Vec<&String> = std::iter::once(program).chain(arguments).collect();
            json!({"type": "local", "command": command, "enabled": true})
        }
        Transport::Http { url, .. } => json!({
            "type": "remote", "url": url, "enabled": true,
            "headers": {"Authorization": format!("Bearer {{env:{TOKEN_VARIABLE}}}")},
        }),
    }
}

fn vibe_entry(transport: &Transport) -> String {
    let fields = match transport {
        Transport::Stdio { program, arguments } => format!(
            "transport = \"stdio\"\ncommand = {}\nargs = {}",
            json!(program),
            json!(arguments)
        ),
        Transport::Http { url, .. } => format!(
            "transport = \"streamable-http\"\nurl = {}\napi_key_env = \"{TOKEN_VARIABLE}\"",
            json!(url)
        ),
    };
    format!("[[mcp_servers]]\nname = \"cellwright\"\n{fields}")
}

fn continue_entry(transport: &Transport) -> String {
    let fields = match transport {
        Transport::Stdio { program, arguments } => format!(
            "    command: {}\n    args: {}\n    env:\n      CELLWRIGHT_MCP_TOOL_PREFIX: notebook_",
            json!(program),
            json!(arguments)
        ),
        Transport::Http { url, .. } => format!(
            "    type: streamable-http\n    url: {}\n    requestOptions:\n      headers:\n        \
             Authorization: Bearer ${{{{ secrets.{TOKEN_VARIABLE} }}}}",
            json!(url)
        ),
    };
    format!("mcpServers:\n  - name: cellwright\n{fields}")
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
