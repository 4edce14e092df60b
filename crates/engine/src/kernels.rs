//! Selects kernels and builds what the `kernel` crate needs to start them. That crate reads no environment variables.

pub mod gateway;
pub mod installed;
pub mod jupyter;
pub mod local;
mod notebook;
mod selection;
mod serialized_selection;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_kernel::LaunchContext;
use cellwright_kernel::backend::runner::RunnerSpec;
use cellwright_kernel::python::{self, Interpreter, InterpreterSearch, Shim, ShimContext};
use cellwright_kernel::variables::set_variable;
use cellwright_stdext::Directory;

pub use notebook::select_for_notebook;
pub use selection::{KernelRequest, KernelSelection};
pub use serialized_selection::{FailingLauncher, SerializedSelection};

use crate::engine::Engine;
use crate::env;
use crate::environment::{self, FilteredEnvironment};
use crate::program::own_supervisor;
use crate::project_interpreter::ProjectInterpreter;
use crate::settings::{Origin, Settings};
use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};

/// Smallest interrupt grace. It stands for none: the backends repeat the interrupt within the grace, so it cannot be 0.
const INTERRUPT_GRACE_MIN: Duration = Duration::from_millis(10);

/// Start timeout that stands for no limit: one year.
const UNLIMITED_START_TIMEOUT: Duration = Duration::from_hours(365 * 24);

/// Returns the absolute path of `path`, or the current directory.
pub fn working_directory(path: Option<&Path>) -> Result<PathBuf, Failure> {
    let current = std::env::current_dir().map_err(|error| no_current_directory(&error));
    match path {
        Some(path) if path.is_absolute() => Ok(path.to_owned()),
        Some(path) => Ok(current?.join(path)),
        None => current,
    }
}

/// Returns the absolute path of a file that an argument names.
pub fn absolute_path(path: &Path) -> Result<PathBuf, Failure> {
    match std::path::absolute(path) {
        // An empty path is not the current directory.
        Err(error) if !path.as_os_str().is_empty() => Err(no_current_directory(&error)),
        absolute => Ok(absolute?),
    }
}

fn no_current_directory(error: &std::io::Error) -> Failure {
    let message = "The current directory does not exist any more";
    let mut failure = Failure::new(Kind::BadFile, message);
    failure.causes.push(error.to_string());
    failure.hint(hint![
        "change to another directory, or name one with ",
        flag("cwd")
    ])
}

/// Where the `kernel` crate searches for an interpreter; `explicit` comes first.
pub fn interpreter_search(
    engine: &Engine,
    explicit: Option<&Path>,
    cwd: &Path,
) -> InterpreterSearch {
    let path = |name| env::value(name).map(PathBuf::from);
    InterpreterSearch {
        explicit: explicit.map(Path::to_owned),
        virtual_env: path(env::VIRTUAL_ENV),
        conda_prefix: path(env::CONDA_PREFIX),
        cwd: cwd.to_owned(),
        managed: None,
        path: env::value(env::PATH)
            .map(|path| std::env::split_paths(&path).collect())
            .unwrap_or_default(),
        home: path(env::HOME),
        owner_rule: engine.owner_rule(),
    }
}

/// The context in which this process starts kernels. It has no directory for sockets: the launcher of a Jupyter kernel
/// creates one.
pub fn launch_context(engine: &Engine, cwd: impl Into<Directory>) -> LaunchContext {
    LaunchContext {
        cwd: cwd.into(),
        supervisor: own_supervisor().clone(),
        staging: engine.staging.dirs(),
        sockets: Vec::new(),
    }
}

/// The interpreter of a flag or a setting, and which of them names it.
pub struct NamedInterpreter<'a> {
    /// `None`: neither names one.
    pub python: Option<&'a Path>,
    pub origin: Origin,
}

/// Returns the interpreter that the flag names, else the settings.
pub fn named_interpreter<'a>(
    flag: Option<&'a Path>,
    settings: &'a Settings,
) -> NamedInterpreter<'a> {
    match flag {
        Some(python) => NamedInterpreter {
            python: Some(python),
            origin: Origin::Flag("--python"),
        },
        None => NamedInterpreter {
            python: settings.python.interpreter.as_deref(),
            origin: settings.origin("python.interpreter").clone(),
        },
    }
}

/// Finds the interpreter; `python` is the flag.
pub fn resolve_interpreter(
    engine: &Engine,
    settings: &Settings,
    python: Option<&Path>,
    cwd: &Path,
) -> Result<Interpreter, Failure> {
    let named = named_interpreter(python, settings);
    let resolved = python::resolve(&interpreter_search(engine, named.python, cwd));
    let interpreter = resolved.map_err(|rejected| {
        let failure = Failure::from(cellwright_kernel::KernelError::NoPython { rejected });
        match named.origin {
            Origin::Default | Origin::Flag(_) => failure,
            origin => failure.hint(format!("`python.interpreter` comes from {origin}")),
        }
    })?;
    Ok(resolve_shim(engine, settings, interpreter, cwd))
}

/// Replaces a shim of a version manager by the interpreter that it starts, because a shim delays every start.
fn resolve_shim(
    engine: &Engine,
    settings: &Settings,
    interpreter: Interpreter,
    cwd: &Path,
) -> Interpreter {
    if ProjectInterpreter::new(&interpreter).is_some() {
        // An environment has no shim: a script in its place is started only to run code.
        return interpreter;
    }
    let resolved = Shim::read(&interpreter.program).and_then(|shim| {
        shim.resolve(&ShimContext {
            cwd,
            env: &filtered_env(settings).variables,
            cache: engine.interpreter_cache.as_deref(),
        })
    });
    match resolved {
        Some(resolved) => interpreter.with_resolved_shim(resolved),
        // Started as it is, the shim reports what is wrong.
        None => interpreter,
    }
}

/// Returns how to start the built-in runner with an interpreter.
pub fn runner_spec(engine: &Engine, settings: &Settings, interpreter: Interpreter) -> RunnerSpec {
    RunnerSpec {
        env: kernel_env(engine, settings, Some(&interpreter)),
        python: interpreter.program,
        start_timeout: start_timeout(settings),
        interrupt_grace: interrupt_grace(settings),
        trace: engine.frame_log(settings),
    }
}

fn start_timeout(settings: &Settings) -> Duration {
    unlimited_if_zero(settings.kernel.start_timeout)
}

/// The limit that a setting means: zero stands for none.
fn unlimited_if_zero(timeout: Duration) -> Duration {
    if timeout.is_zero() {
        UNLIMITED_START_TIMEOUT
    } else {
        timeout
    }
}

fn interrupt_grace(settings: &Settings) -> Duration {
    settings.kernel.interrupt_grace.max(INTERRUPT_GRACE_MIN)
}

/// The variables of this process that kernels receive, and the names of those that they do not receive.
pub fn filtered_env(settings: &Settings) -> FilteredEnvironment {
    environment::filter(env::all(), &settings.environment_rules())
}

/// The environment variables of a kernel; those of the interpreter's environment come first in `PATH`.
pub fn kernel_env(
    engine: &Engine,
    settings: &Settings,
    interpreter: Option<&Interpreter>,
) -> Vec<(OsString, OsString)> {
    let mut variables = filtered_env(settings).variables;
    if let Some(interpreter) = interpreter {
        environment::activate(&mut variables, interpreter);
    }
    if !settings.kernel.prelude {
        set_variable(&mut variables, env::PRELUDE, "0".into());
    }
    if let Some(artifacts) = &engine.artifacts {
        for name in [env::ARTIFACTS_DIR, "PI_ARTIFACTS_DIR"] {
            set_variable(&mut variables, name, artifacts.dir().into());
        }
    }
    variables
}
