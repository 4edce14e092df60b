//! `kernels`: the sessions that the host keeps, and what is in them.

mod export;
pub(crate) mod list;
pub(crate) mod specs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::console::Console;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::host::client;
use crate::host::protocol::{HostRequest, SessionQuery, SessionSelector};
use crate::hosted_execution::without_end;
use crate::kernels::working_directory;
use crate::operations::eval::canonical;
use crate::operations::seconds::parse_seconds;
use crate::verbs::kernel_args::interpreter;

/// How long a reset or a stop may take: a cell is given time to react, a kernel to end.
pub(crate) const SLOW: Duration = Duration::from_secs(90);

/// How many variables are listed.
pub(crate) const VARIABLES: usize = 1000;

/// Arguments of `kernels`.
#[derive(Debug, Args)]
#[command(after_help = "\
Sessions are made by `cellwright eval --session NAME` and named by what stands there, or by the sign @
and their number in the list. Of several with the same name that of the current folder is meant, unless
--cwd names another.

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
    /// List the sessions
    #[command(after_help = "\
Example:
  cellwright kernels list --json")]
    List,
    /// List the kernels that could be started here
    #[command(after_help = "\
The built-in runner, and every kernel of Jupyter's that is installed, as `jupyter kernelspec list`
finds them with the same interpreter. One that cannot be started is listed with the reason.

Examples:
  cellwright kernels specs
  cellwright kernels specs --python .venv --json
  cellwright eval --kernel NAME CODE")]
    Specs {
        /// Where the kernel would start
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// The interpreter whose kernels come first: a path, an environment's folder, or a command
        #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
        python: Option<PathBuf>,
    },
    /// Interrupt what a session runs, as Ctrl-C would; variables stay
    #[command(after_help = "\
Example:
  cellwright kernels interrupt work")]
    Interrupt(Session),
    /// Give a session a fresh kernel, at once; variables are lost
    #[command(after_help = "\
If others share the session, they keep the kernel, and this owner gets one of its own.

Example:
  cellwright kernels reset work")]
    Reset(Session),
    /// End a session
    #[command(after_help = "\
With --owner only that owner leaves; the session ends with the last one.

Examples:
  cellwright kernels stop work
  cellwright kernels stop work --owner alice
  cellwright kernels stop --all")]
    Stop(StopArgs),
    /// List the variables of a session
    #[command(after_help = "\
Example:
  cellwright kernels variables work --json")]
    Variables(Question),
    /// Say what is known of a name in a session
    #[command(after_help = "\
Example:
  cellwright kernels inspect work json.dumps")]
    Inspect {
        #[command(flatten)]
        session: Question,
        /// The name, or code with the name at its end
        code: String,
        /// Print its source, too
        #[arg(long)]
        source: bool,
    },
    /// List how code could go on
    #[command(after_help = "\
Example:
  cellwright kernels complete work 'import js'")]
    Complete {
        #[command(flatten)]
        session: Question,
        /// The code
        code: String,
        /// Where the cursor is, in characters [default: the end]
        #[arg(long, value_name = "N")]
        cursor: Option<usize>,
    },
    /// List the cells that ran on a session
    #[command(after_help = "\
Example:
  cellwright kernels history work")]
    History(Session),
    /// Write the cells that ran on a session, with their outputs, as a notebook
    #[command(after_help = "\
Example:
  cellwright kernels export work out.ipynb")]
    Export {
        #[command(flatten)]
        session: Session,
        /// The notebook to write
        out: PathBuf,
        /// Replace a file that is there
        #[arg(long)]
        force: bool,
    },
}

/// Which session.
#[derive(Debug, Args)]
struct Session {
    /// The name of the session
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder it was made in, if there are several of that name
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// On whose behalf [default: the setting eval.owner]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

/// Something to ask a kernel.
#[derive(Debug, Args)]
struct Question {
    #[command(flatten)]
    session: Session,
    /// How long a kernel that is busy is waited for
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    timeout: Duration,
}

/// What to end.
#[derive(Debug, Args)]
struct StopArgs {
    /// The name of the session
    #[arg(value_name = "NAME", required_unless_present = "all")]
    name: Option<String>,
    /// The folder it was made in, if there are several of that name
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Only this owner leaves
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// All sessions
    #[arg(long, conflicts_with_all = ["name", "cwd", "owner"])]
    all: bool,
}

impl Session {
    fn who(&self, engine: &Engine) -> Result<SessionSelector, Failure> {
        who(&self.name, self.cwd.as_ref(), self.owner.as_ref(), engine)
    }
}

fn who(
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
            Some(cwd) => Some(canonical(working_directory(Some(cwd))?)),
            None => None,
        },
        here: here.map(canonical),
        owner,
    })
}

/// Does it and shows the answer; says the exit code.
pub(crate) fn kernels(
    args: &KernelsArgs,
    engine: &Engine,
    screen: &Console,
) -> Result<(), Failure> {
    match &args.action {
        Action::List => list::list(screen),
        Action::Specs { cwd, python } => {
            specs::specs(cwd.as_deref(), python.as_deref(), engine, screen)
        }
        Action::Interrupt(session) => {
            let answer = demand(&HostRequest::Interrupt {
                session: session.who(engine)?,
            })?;
            let words = if answer["interrupted"] == true {
                format!("session {} was interrupted", session.name)
            } else {
                format!("session {} runs nothing", session.name)
            };
            told(answer, &words, screen)
        }
        Action::Reset(session) => {
            let answer = demand(&HostRequest::Reset {
                session: session.who(engine)?,
            })?;
            let words = if answer["private"] == true {
                format!(
                    "others use session {}: they keep its kernel, and you have a fresh one of your own",
                    session.name
                )
            } else {
                format!("session {} has a fresh kernel", session.name)
            };
            told(answer, &words, screen)
        }
        Action::Stop(args) => stop(args, engine, screen),
        Action::Variables(question) => {
            let answer = question.client(SessionQuery::Variables { limit: VARIABLES }, engine)?;
            list::variables(&answer, screen)
        }
        Action::Inspect {
            session,
            code,
            source,
        } => {
            let asked = SessionQuery::Inspect {
                code: code.clone(),
                cursor: code.chars().count(),
                source: *source,
            };
            list::inspection(&session.client(asked, engine)?, code, screen)
        }
        Action::Complete {
            session,
            code,
            cursor,
        } => {
            let asked = SessionQuery::Complete {
                code: code.clone(),
                cursor: cursor.unwrap_or_else(|| code.chars().count()),
            };
            list::completions(&session.client(asked, engine)?, screen)
        }
        Action::History(session) => export::history(&session.who(engine)?, screen),
        Action::Export {
            session,
            out,
            force,
        } => export::export(&session.who(engine)?, out, *force, screen),
    }
}

impl Question {
    fn client(&self, question: SessionQuery, engine: &Engine) -> Result<Value, Failure> {
        let wanted = HostRequest::Query {
            session: self.session.who(engine)?,
            question,
            patience: self.timeout,
        };
        let answer = client::request_blocking(&wanted, self.timeout)?;
        let mut answer = answer.ok_or_else(Failure::host_not_running)?;
        Ok(answer["answer"].take())
    }
}

fn stop(args: &StopArgs, engine: &Engine, screen: &Console) -> Result<(), Failure> {
    if args.all {
        return list::stop_all(screen);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let answer = demand(&HostRequest::EndSession {
        session: who(name, args.cwd.as_ref(), args.owner.as_ref(), engine)?,
        owner: args.owner.clone(),
    })?;
    let words = if answer["ended"] == true {
        format!("session {name} was ended")
    } else {
        format!("session {name} goes on: others use it")
    };
    told(answer, &words, screen)
}

/// Asks for something that needs a host.
fn demand(wanted: &HostRequest) -> Result<Value, Failure> {
    client::request_blocking(wanted, SLOW)?.ok_or_else(Failure::host_not_running)
}

/// Says what was done.
fn told(answer: Value, words: &str, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(&without_end(answer));
    }
    screen.note(words);
    Ok(())
}
