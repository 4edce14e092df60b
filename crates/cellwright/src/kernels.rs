//! How the binary starts kernels: what it passes down to the `kernel` crate, which reads no
//! environment itself.

mod choice;
mod chosen;
pub(crate) mod ipykernel;
pub(crate) mod jupyter;
mod notebook;
pub(crate) mod offers;

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use cellwright_kernel::backend::runner::RunnerSpec;
use cellwright_kernel::environment;
use cellwright_kernel::process::{Supervisor, supervisor};
use cellwright_kernel::python::{self, Interpreter, Search};

pub(crate) use choice::{KernelChoice, Unlaunchable};
pub(crate) use chosen::{Backend, Chosen, Flags};
pub(crate) use jupyter::EXISTING;
pub(crate) use notebook::for_notebook;

use crate::engine::Engine;
use crate::env;
use crate::failure::{Failure, Kind};
use crate::settings::{Origin, Settings};

/// The first argument by which the binary becomes the supervisor of a kernel.
const SUPERVISE: &str = "__supervise";

/// As good as no grace; interrupts are repeated within it, so it cannot be nothing.
const LEAST_GRACE: Duration = Duration::from_millis(10);

/// As good as no limit to the time a kernel takes to be ready.
const A_YEAR: Duration = Duration::from_hours(365 * 24);

/// If this process was started to supervise a kernel: does that, and says how it went.
pub(crate) fn supervise() -> Option<bool> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SUPERVISE {
        return None;
    }
    let owner = std::io::stdin().as_fd().try_clone_to_owned();
    Some(
        owner
            .and_then(|owner| supervisor::main(&owner, arguments))
            .is_ok(),
    )
}

/// The folder a kernel starts in: as given, absolute.
pub(crate) fn working_directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "The current directory is gone");
        failure.causes.push(error.to_string());
        failure.hint("go to another directory, or name one with --cwd")
    });
    match given {
        Some(given) if given.is_absolute() => Ok(given.to_owned()),
        Some(given) => Ok(here?.join(given)),
        None => here,
    }
}

/// Where to look for an interpreter.
pub(crate) fn search(explicit: Option<&Path>, cwd: &Path) -> Search {
    let folder = |name| env::value(name).map(PathBuf::from);
    Search {
        explicit: explicit.map(Path::to_owned),
        virtual_env: folder(env::VIRTUAL_ENV),
        conda_prefix: folder(env::CONDA_PREFIX),
        cwd: cwd.to_owned(),
        managed: None,
        path: env::value(env::PATH)
            .map(|path| std::env::split_paths(&path).collect())
            .unwrap_or_default(),
        home: folder(env::HOME),
    }
}

fn supervisor_of_own() -> Supervisor {
    Supervisor {
        // This very binary, also when its file has been replaced meanwhile.
        program: own_program(),
        arguments: vec![SUPERVISE.into()],
    }
}

/// The interpreter that somebody named, and where.
pub(crate) struct Named<'a> {
    pub(crate) python: Option<&'a Path>,
    pub(crate) origin: Origin,
}

/// The interpreter that was named: by the flag, else by the settings.
pub(crate) fn named<'a>(flag: Option<&'a Path>, settings: &'a Settings) -> Named<'a> {
    match flag {
        Some(python) => Named {
            python: Some(python),
            origin: Origin::Flag("--python"),
        },
        None => Named {
            python: settings.python.interpreter.as_deref(),
            origin: settings.origin("python.interpreter").clone(),
        },
    }
}

/// The interpreter of choice; `python` is the flag.
pub(crate) fn interpreter(
    settings: &Settings,
    python: Option<&Path>,
    cwd: &Path,
) -> Result<Interpreter, Failure> {
    let named = named(python, settings);
    python::resolve(&search(named.python, cwd)).map_err(|rejected| {
        let failure = Failure::from(cellwright_kernel::KernelError::NoPython { rejected });
        match named.origin {
            Origin::Default | Origin::Flag(_) => failure,
            origin => failure.hint(format!("`python.interpreter` comes from {origin}")),
        }
    })
}

/// How to start the built-in runner; `python` is the flag.
pub(crate) fn runner(
    engine: &Engine,
    settings: &Settings,
    python: Option<&Path>,
    cwd: PathBuf,
) -> Result<RunnerSpec, Failure> {
    let interpreter = interpreter(settings, python, &cwd)?;
    Ok(RunnerSpec {
        env: variables(engine, settings, Some(&interpreter)),
        interpreter,
        cwd,
        supervisor: supervisor_of_own(),
        staging: engine.staging.clone(),
        start_timeout: start_timeout(settings),
        interrupt_grace: interrupt_grace(settings),
        trace: engine.trace(settings),
    })
}

fn start_timeout(settings: &Settings) -> Duration {
    let set = settings.kernel.start_timeout;
    if set.is_zero() { A_YEAR } else { set }
}

fn interrupt_grace(settings: &Settings) -> Duration {
    settings.kernel.interrupt_grace.max(LEAST_GRACE)
}

/// The environment of a kernel, led by that of an interpreter.
pub(crate) fn variables(
    engine: &Engine,
    settings: &Settings,
    interpreter: Option<&Interpreter>,
) -> Vec<(OsString, OsString)> {
    let mut variables = environment::filtered(env::all(), &settings.choices());
    if let Some(interpreter) = interpreter {
        environment::lead_with(&mut variables, interpreter);
    }
    if !settings.kernel.prelude {
        environment::set(&mut variables, env::PRELUDE, "0".into());
    }
    if let Some(artifacts) = &engine.artifacts {
        for name in [env::ARTIFACTS_DIR, "PI_ARTIFACTS_DIR"] {
            environment::set(&mut variables, name, artifacts.dir().into());
        }
    }
    variables
}

/// The program of this very process.
pub(crate) fn own_program() -> PathBuf {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    let own = OWN.get_or_init(|| {
        let link = Path::new("/proc/self/exe");
        if link.exists() {
            return link.to_owned();
        }
        std::env::current_exe().unwrap_or_else(|_| OsStr::new("cellwright").into())
    });
    own.clone()
}
