//! `kernels`: lists, inspects and controls sessions.

mod export;
pub(crate) mod list;
mod server_kernels;
pub(crate) mod specs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_engine::servers::ServerChoice;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::{SessionQuery, SessionSelector};
use cellwright_operations::kernels::{
    CompletionReport, InspectionReport, VARIABLES_MAX, VariablesReport,
};
use cellwright_operations::seconds::parse_seconds;
use cellwright_operations::server_kernels::ServerKernelAction;
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::console::Console;

use crate::verbs::kernel_args::{interpreter, server};
pub(crate) use list::StoppedSessions;

/// Arguments of `kernels`.
#[derive(Debug, Args)]
#[command(after_help = "\
`cellwright eval --session NAME` creates a session. A session is selected by its name, or by `@` and its number in \
the list. If several have the same name, the one of the current project is selected; `--cwd` selects another.

Examples:
  cellwright kernels list
  cellwright kernels variables work
  cellwright kernels interrupt work
  cellwright kernels export work out.ipynb")]
pub(crate) struct KernelsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions, or the kernels of a Jupyter server
    #[command(after_help = "\
With `--gateway`, lists all kernels of the server, the notebooks that have them, and which ones belong to sessions of this \
machine.

Examples:
  cellwright kernels list --json
  cellwright kernels list --gateway work")]
    List {
        #[command(flatten)]
        server: ServerArg,
    },
    /// List the kernels that can be started here
    #[command(after_help = "\
Lists the built-in runner and all installed Jupyter kernels, as `jupyter kernelspec list` with the same \
interpreter. A kernel that cannot be started is listed with the reason.

Examples:
  cellwright kernels specs
  cellwright kernels specs --python .venv --json
  cellwright eval --kernel NAME CODE")]
    Specs {
        /// Directory in which the kernel would start [default: the current directory]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// Interpreter whose kernels are found first: a path, the directory of an environment, or a command
        #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
        python: Option<PathBuf>,
    },
    /// Interrupt the running cell of a session, as Ctrl-C does; variables are kept
    #[command(after_help = "\
Examples:
  cellwright kernels interrupt work
  cellwright kernels interrupt --gateway lab 3f1c2ab4")]
    Interrupt(ServerKernelArgs),
    /// Replace the kernel of a session immediately; variables are lost
    #[command(
        alias = "restart",
        after_help = "\
Other owners of the session keep the kernel; this owner gets a separate one. With `--gateway`, the kernel is restarted for \
all of its clients.

Examples:
  cellwright kernels reset work
  cellwright kernels reset --gateway lab 3f1c2ab4"
    )]
    Reset(ServerKernelArgs),
    /// Stop a session
    #[command(after_help = "\
With `--owner`, only that owner leaves; the session stops when the last owner leaves.

Examples:
  cellwright kernels stop work
  cellwright kernels stop work --owner alice
  cellwright kernels stop --all
  cellwright kernels stop --gateway lab 3f1c2ab4")]
    Stop(StopArgs),
    /// List the variables of a session
    #[command(after_help = "\
Example:
  cellwright kernels variables work --json")]
    Variables(QueryArgs),
    /// Print the documentation of a name in a session
    #[command(after_help = "\
Example:
  cellwright kernels inspect work json.dumps")]
    Inspect {
        #[command(flatten)]
        session: QueryArgs,
        /// Name, or code that ends with the name
        code: String,
        /// Also print its source
        #[arg(long)]
        source: bool,
    },
    /// List completions of code
    #[command(after_help = "\
Example:
  cellwright kernels complete work 'import js'")]
    Complete {
        #[command(flatten)]
        session: QueryArgs,
        /// Code
        code: String,
        /// Position of the cursor in characters [default: the end]
        #[arg(long, value_name = "N")]
        cursor: Option<usize>,
    },
    /// List the cells that ran in a session
    #[command(after_help = "\
Example:
  cellwright kernels history work")]
    History(SessionArgs),
    /// Save the cells that ran in a session, with their outputs, as a notebook
    #[command(after_help = "\
Example:
  cellwright kernels export work out.ipynb")]
    Export {
        #[command(flatten)]
        session: SessionArgs,
        /// Notebook to write
        out: PathBuf,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
}

/// The session that an action applies to.
#[derive(Debug, Args)]
struct SessionArgs {
    /// Name of the session, or `@` and its number
    #[arg(value_name = "NAME")]
    name: String,
    /// Directory of the session, if several have the same name
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Owner [default: the setting eval.owner]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

/// The server whose kernels an action applies to.
#[derive(Debug, Args)]
struct ServerArg {
    /// Jupyter server: the name of a table `[server.NAME]` in the settings, or a URL. NAME is then the id of a kernel
    /// there, or its start, or the path of its notebook
    #[arg(long, value_name = "NAME|URL", value_parser = server)]
    gateway: Option<ServerChoice>,
}

/// A session, or a kernel of a server.
#[derive(Debug, Args)]
struct ServerKernelArgs {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    server: ServerArg,
}

/// A session, and how long to wait for its kernel.
#[derive(Debug, Args)]
struct QueryArgs {
    #[command(flatten)]
    session: SessionArgs,
    /// Maximum wait for a busy kernel in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    timeout: Duration,
}

/// The session to stop.
#[derive(Debug, Args)]
struct StopArgs {
    /// Name of the session, or `@` and its number
    #[arg(value_name = "NAME", required_unless_present = "all")]
    name: Option<String>,
    /// Directory of the session, if several have the same name
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Remove only this owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Stop all sessions
    #[arg(long, conflicts_with_all = ["name", "cwd", "owner", "gateway"])]
    all: bool,
    #[command(flatten)]
    server: ServerArg,
}

impl SessionArgs {
    fn selector(&self, engine: &Engine) -> Result<SessionSelector, Failure> {
        select_session(&self.name, self.cwd.as_ref(), self.owner.as_ref(), engine)
    }
}

fn select_session(
    name: &str,
    cwd: Option<&PathBuf>,
    owner: Option<&String>,
    engine: &Engine,
) -> Result<SessionSelector, Failure> {
    let here = working_directory(None).ok();
    let owner = if let Some(owner) = owner {
        owner.clone()
    } else {
        let here = here.as_deref().unwrap_or(Path::new("/"));
        engine.settings(here)?.eval.owner.clone()
    };
    Ok(SessionSelector {
        name: name.to_owned(),
        cwd: match cwd {
            Some(cwd) => Some(engine.project_dir(&working_directory(Some(cwd))?)),
            None => None,
        },
        here: here.map(|here| engine.project_dir(&here)),
        owner,
    })
}

/// Carries out an action and prints its result.
pub(crate) fn kernels(
    args: &KernelsArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    match &args.action {
        Action::List { server } => match &server.gateway {
            Some(choice) => server_kernels::list(choice, engine, console),
            None => list::list(console),
        },
        Action::Specs { cwd, python } => {
            specs::specs(cwd.as_deref(), python.as_deref(), engine, console)
        }
        Action::Interrupt(ServerKernelArgs { session, server }) => {
            if let Some(choice) = &server.gateway {
                let action = ServerKernelAction::Interrupted;
                return server_kernels::act(action, choice, &session.name, engine, console);
            }
            let host = KernelHost::Shared;
            let result = host.block_on(host.interrupt(session.selector(engine)?))?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            let text = if result.interrupted {
                format!("session {} was interrupted", session.name)
            } else {
                format!("session {} runs nothing", session.name)
            };
            show(&result, &text, console)
        }
        Action::Reset(ServerKernelArgs { session, server }) => {
            if let Some(choice) = &server.gateway {
                let action = ServerKernelAction::Restarted;
                return server_kernels::act(action, choice, &session.name, engine, console);
            }
            let host = KernelHost::Shared;
            let result = host.block_on(host.reset(session.selector(engine)?))?;
            let result = result.ok_or_else(cellwright_host::host_not_running)?;
            let text = if result.private {
                format!(
                    "other owners keep the kernel of session {}; you have a fresh private one",
                    session.name
                )
            } else {
                format!("session {} has a fresh kernel", session.name)
            };
            show(&result, &text, console)
        }
        Action::Stop(args) => stop(args, engine, console),
        Action::Variables(args) => {
            let answer = args.send(
                SessionQuery::Variables {
                    limit: VARIABLES_MAX,
                },
                engine,
            )?;
            list::variables(&VariablesReport::new(args.name(), &answer), console)
        }
        Action::Inspect {
            session,
            code,
            source,
        } => {
            let query = SessionQuery::Inspect {
                code: code.clone(),
                cursor: code.chars().count(),
                source: *source,
            };
            let report = InspectionReport::new(session.name(), &session.send(query, engine)?);
            list::inspection(report, code, console)
        }
        Action::Complete {
            session,
            code,
            cursor,
        } => {
            let query = SessionQuery::Complete {
                code: code.clone(),
                cursor: cursor.unwrap_or_else(|| code.chars().count()),
            };
            let report = CompletionReport::new(session.name(), &session.send(query, engine)?);
            list::completions(&report, console)
        }
        Action::History(session) => {
            export::history(&session.name, &session.selector(engine)?, console)
        }
        Action::Export {
            session,
            out,
            force,
        } => export::export(&session.selector(engine)?, out, *force, console),
    }
}

impl QueryArgs {
    /// Name of the session, as given.
    fn name(&self) -> &str {
        &self.session.name
    }

    fn send(&self, query: SessionQuery, engine: &Engine) -> Result<Value, Failure> {
        let host = KernelHost::Shared;
        let session = self.session.selector(engine)?;
        let reply = host.block_on(host.query(session, query, self.timeout))?;
        reply.ok_or_else(cellwright_host::host_not_running)
    }
}

fn stop(args: &StopArgs, engine: &Engine, console: &Console) -> Result<(), Failure> {
    if args.all {
        return list::stop_all(console);
    }
    let name = args.name.as_deref().unwrap_or_default();
    if let Some(choice) = &args.server.gateway {
        let action = ServerKernelAction::Ended;
        return server_kernels::act(action, choice, name, engine, console);
    }
    let session = select_session(name, args.cwd.as_ref(), args.owner.as_ref(), engine)?;
    let host = KernelHost::Shared;
    let result = host.block_on(host.end_session(session, args.owner.clone()))?;
    let result = result.ok_or_else(cellwright_host::host_not_running)?;
    let text = if result.ended {
        format!("session {name} was ended")
    } else {
        format!("session {name} stays: other owners use it")
    };
    show(&result, &text, console)
}

/// Prints a result: as JSON, or as a note.
fn show(
    result: &(impl Serialize + JsonSchema),
    text: &str,
    console: &Console,
) -> Result<(), Failure> {
    if console.json {
        return console.print_json(result);
    }
    console.note(text);
    Ok(())
}
