//! `mcp`: serves notebooks and kernels to AI agents.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::absolute_path;
use cellwright_host::kernel_host::KernelHost;
use cellwright_mcp::config::{self, Client, Transport};
use cellwright_mcp::http::{self, AccessPolicy, SessionLimits};
use cellwright_mcp::{Server, ServerOptions, stdio, token};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::Console;

/// Arguments of `mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
MCP clients start `cellwright mcp` themselves and exchange messages with it over stdin and stdout; `--print-config` \
prints the configuration for a client. Sessions belong to the client and stop with it. With `--shared` they are \
those of `cellwright eval --session` and stay.

Paths in requests must be inside the roots of the client, or inside the directory in which the server was started; \
`--root` names other directories. This is not a sandbox: code runs with your permissions.

With `--http` the server listens on an address. Every request needs the token in the token file (`Authorization: \
Bearer …`). Only this machine can connect, unless `--allow-remote` is given.

Examples:
  cellwright mcp --print-config claude
  cellwright mcp --root ~/project
  cellwright mcp --http 127.0.0.1:8484
  claude mcp add cellwright -- cellwright mcp")]
pub(crate) struct McpArgs {
    /// Listen on an address instead of stdin and stdout; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Directory that clients can access; can be repeated [default: the roots of the client, or the current directory]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Use the sessions of the host, which other commands share and which stay
    #[arg(long)]
    shared: bool,
    /// File with the token; created if missing [default: mcp.token in the state directory]
    #[arg(long, value_name = "FILE", help_heading = "With --http")]
    token_file: Option<PathBuf>,
    /// Allow an address that other machines can reach; the connection is not encrypted
    #[arg(long, requires = "http", help_heading = "With --http")]
    allow_remote: bool,
    /// Host name that requests can use for this machine; can be repeated
    #[arg(
        long = "allow-host",
        value_name = "NAME",
        requires = "http",
        help_heading = "With --http"
    )]
    hosts: Vec<String>,
    /// Origin of web pages that can send requests, as in `https://example.org`; can be repeated
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        value_parser = http::parse_origin,
        requires = "http",
        help_heading = "With --http"
    )]
    origins: Vec<String>,
    /// Print the configuration for a client and exit
    #[arg(long, value_name = "CLIENT")]
    print_config: Option<ClientName>,
}

/// An MCP client.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClientName {
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

impl From<ClientName> for Client {
    fn from(name: ClientName) -> Self {
        match name {
            ClientName::Claude => Self::Claude,
            ClientName::Codex => Self::Codex,
            ClientName::Cursor => Self::Cursor,
            ClientName::Vscode => Self::Vscode,
            ClientName::Zed => Self::Zed,
            ClientName::Gemini => Self::Gemini,
            ClientName::Qwen => Self::Qwen,
            ClientName::Copilot => Self::Copilot,
            ClientName::Cline => Self::Cline,
            ClientName::Opencode => Self::Opencode,
            ClientName::Vibe => Self::Vibe,
            ClientName::Continue => Self::Continue,
        }
    }
}

/// Serves until the client disconnects.
pub(crate) fn mcp(args: &McpArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    if let Some(client) = args.print_config {
        return print_config(args, client.into(), engine, console);
    }
    for root in &args.roots {
        if !root.is_dir() {
            let message = format!("There is no directory {}", root.display());
            return Err(Failure::new(Kind::BadArguments, message));
        }
        if root
            .canonicalize()
            .is_ok_and(|root| root.parent().is_none())
        {
            let message = "`/` cannot be a root: it confines nothing";
            return Err(Failure::new(Kind::BadArguments, message).hint("name a directory in it"));
        }
    }
    let start_dir = start_dir(args)?;
    let settings = engine.settings(&start_dir)?;
    console.print_notices(&settings.notices());
    let (wait, idle) = (settings.mcp.wait, settings.mcp.http_idle);
    let session_limits = SessionLimits {
        sessions_max: settings.mcp.http_sessions,
        idle_timeout: (!idle.is_zero()).then_some(idle),
    };
    let options = ServerOptions {
        roots: args.roots.clone(),
        start_dir,
        text_limit: settings.mcp.text,
        structured: settings.mcp.structured,
        tool_prefix: settings.mcp.tool_prefix.clone().unwrap_or_default(),
        wait: (!wait.is_zero()).then_some(wait),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("mcp")
        .enable_all()
        .build()?;
    // On this thread, which serves no clients.
    let context = runtime.enter();
    let kernels = if args.shared {
        KernelHost::Shared
    } else {
        KernelHost::in_process(engine.clone())?
    };
    drop(context);
    runtime.block_on(async {
        let server = Server::new(engine.clone(), kernels, options);
        let Some(address) = args.http else {
            if io::stdin().is_terminal() {
                console.note(
                    "waiting for the messages of an MCP client on stdin; `cellwright mcp --print-config CLIENT` prints the \
                     configuration for a client, Ctrl-C stops the server",
                );
            }
            return Box::pin(stdio::serve(server)).await;
        };
        let file = token_file(args, server.engine())?;
        let policy = AccessPolicy {
            token: token::read_or_create(&file)?,
            allowed_hosts: args.hosts.clone(),
            allowed_origins: args.origins.clone(),
        };
        let listener = http::listen(address, args.allow_remote).await?;
        let url = format!("http://{}{}", listener.local_addr()?, http::ENDPOINT);
        if console.json {
            let file = file.display().to_string();
            console.print_json(&Listening {
                url,
                token_file: file,
            })?;
        } else {
            console.note(&format!("listening on {url}, token in {}", file.display()));
        }
        http::serve(listener, server, policy, session_limits).await
    })
}

/// The address of the server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listening {
    /// URL of the endpoint.
    url: String,
    /// The file with the token.
    token_file: String,
}

/// The entry for the configuration of an MCP client.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClientConfigReport {
    /// Where the entry belongs.
    location: String,
    /// The entry.
    entry: String,
    /// How the client runs without a person.
    headless: Option<String>,
}

/// Worker threads of the runtime.
const WORKER_THREADS: usize = 2;

/// The directory in which the server works: the current one. Without one, the first root replaces it.
fn start_dir(args: &McpArgs) -> Result<PathBuf, Failure> {
    match (std::env::current_dir(), args.roots.first()) {
        (Ok(dir), _) => Ok(dir),
        (Err(_), Some(root)) if root.is_absolute() => Ok(root.clone()),
        (Err(error), _) => {
            let message = "The current directory does not exist any more";
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(error.to_string());
            Err(failure.hint(hint![
                "change to another directory, or name one with ",
                flag("root")
            ]))
        }
    }
}

fn token_file(args: &McpArgs, engine: &Engine) -> Result<PathBuf, Failure> {
    match &args.token_file {
        Some(file) => absolute_path(file),
        None => token::default_file(engine),
    }
}

fn print_config(
    args: &McpArgs,
    client: Client,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let transport = if let Some(address) = args.http {
        Transport::Http {
            url: format!("http://{address}{}", http::ENDPOINT),
            token_file: token_file(args, engine)?.display().to_string(),
        }
    } else {
        let mut arguments = vec!["mcp".to_owned()];
        if args.shared {
            arguments.push("--shared".to_owned());
        }
        for root in &args.roots {
            let root = absolute_path(root)?.display().to_string();
            arguments.extend(["--root".to_owned(), root]);
        }
        let program = std::env::current_exe()?.display().to_string();
        Transport::Stdio { program, arguments }
    };
    let config = config::client_config(client, &transport);
    if console.json {
        return console.print_json(&ClientConfigReport {
            location: config.location,
            entry: config.text,
            headless: config.headless.map(str::to_owned),
        });
    }
    console.note(&config.location);
    if let Some(headless) = config.headless {
        console.note(headless);
    }
    console.print(&format!("{}\n", config.text))
}
