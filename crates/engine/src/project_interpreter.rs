//! [`ProjectInterpreter`]: an interpreter that Cellwright found in a project. The environment may come with the project's
//! files, so that whatever starts it runs code of the project.
//!
//! An interpreter is one of a project if the search found it in `.venv` or `venv` of the working directory or of a directory
//! above it. One that the user names (flag, setting, active environment, `PATH`) is not, and neither is one in the user's home
//! directory itself. Commands that run code use it and report that once. Commands that only inspect start it only if the
//! user trusts it, or has run code with it before.

use std::io;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Hint, Kind, command, flag_value, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_kernel::python::{Interpreter, Origin};

use crate::engine::Engine;
use crate::env;
use crate::trust::{InterpreterTrust, Trust, canonical_path};

/// An interpreter in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectInterpreter {
    /// The program, as it was found.
    program: PathBuf,
    /// The directory of its environment, canonical.
    environment: PathBuf,
}

impl ProjectInterpreter {
    /// Returns `None` for an interpreter that is not one of a project.
    pub fn new(interpreter: &Interpreter) -> Option<Self> {
        let Origin::Project { dir } = &interpreter.origin else {
            return None;
        };
        let home = env::value(env::HOME).map(PathBuf::from);
        if home.is_some_and(|home| canonical_path(&home) == canonical_path(dir)) {
            return None;
        }
        Some(Self {
            environment: environment_dir(&interpreter.program)?,
            program: interpreter.program.clone(),
        })
    }

    /// Returns an interpreter of a project that commands must not start just to inspect it.
    pub fn unknown(engine: &Engine, interpreter: Option<&Interpreter>) -> Option<Self> {
        let found = Self::new(interpreter?)?;
        (!found.is_known(engine)).then_some(found)
    }

    /// Whether the user trusts it, or has run code with it.
    fn is_known(&self, engine: &Engine) -> bool {
        // With an unreadable record, nothing is known.
        let trust = Trust::read(engine.state_dir.as_deref()).unwrap_or_default();
        trust.interpreter(&self.environment).is_some()
    }

    /// Whether a program is in the environment.
    pub fn contains(&self, program: &Path) -> bool {
        let dir = program.parent().map(canonical_path);
        dir.is_some_and(|dir| dir.starts_with(&self.environment))
    }

    /// Records that code runs with it. Returns a notice the first time.
    pub fn record_use(&self, engine: &Engine) -> Option<UserNotice> {
        if self.is_known(engine) {
            return None;
        }
        if let Some(state) = engine.state_dir.as_deref() {
            // Without the record, the next command reports it again.
            record(state, &self.environment, InterpreterTrust::Used).ok();
        }
        let text = format!(
            "code runs with the interpreter of this project, {}, which may come with the project's files; this notice \
             appears once",
            self.program.display()
        );
        Some(UserNotice::new(NoticeKind::ProjectInterpreter, text))
    }

    /// Says that the interpreter was found and not started.
    pub fn describe_unknown(&self) -> String {
        format!(
            "{} was not started: it is in a project that you do not trust",
            self.program.display()
        )
    }

    /// The notice of a command that does not start it.
    pub fn not_started_notice(&self) -> UserNotice {
        let text = format!(
            "{}; {}",
            self.describe_unknown(),
            self.hint().for_command_line()
        );
        UserNotice::new(NoticeKind::InterpreterNotStarted, text)
    }

    /// The failure of a command that needs it.
    pub fn not_started_failure(&self) -> Failure {
        let message = format!("The interpreter {}", self.describe_unknown());
        Failure::new(Kind::Refused, message).hint(self.hint())
    }

    /// How to trust or choose it.
    pub fn hint(&self) -> Hint {
        let program = self.program.display().to_string();
        hint![
            command("trust"),
            " approves it, ",
            flag_value("python", &program),
            " names it for one command; code that you run uses it with a notice",
        ]
    }
}

/// The directory of the environment that a program `bin/python3` is in.
pub fn environment_dir(program: &Path) -> Option<PathBuf> {
    Some(canonical_path(program.parent()?.parent()?))
}

/// Records an environment, unless it has at least this trust.
pub fn record(state: &Path, environment: &Path, trust: InterpreterTrust) -> io::Result<()> {
    Trust::add_interpreter(state, environment.to_owned(), trust)
}
