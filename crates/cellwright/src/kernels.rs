//! How the binary starts kernels: what it passes down to the `kernel` crate, which reads no
//! environment itself.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_kernel::backend::runner::{INTERRUPT_GRACE, RunnerSpec};
use cellwright_kernel::environment::{self, Choices};
use cellwright_kernel::process::{Supervisor, supervisor};
use cellwright_kernel::python::{self, Interpreter, Search};

use crate::engine::Engine;
use crate::env;
use crate::failure::{Failure, Kind};

/// The first argument by which the binary becomes the supervisor of a kernel.
const SUPERVISE: &str = "__supervise";

/// How long a kernel may take to be ready. Slow disks and cold caches have been seen to need ten
/// seconds.
const START_TIMEOUT: Duration = Duration::from_mins(1);

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

/// How to start the built-in runner.
pub(crate) fn runner(
    engine: &Engine,
    python: Option<&Path>,
    cwd: PathBuf,
) -> Result<RunnerSpec, Failure> {
    let interpreter = python::resolve(&search(python, &cwd))
        .map_err(|rejected| Failure::from(cellwright_kernel::KernelError::NoPython { rejected }))?;
    Ok(RunnerSpec {
        env: variables(engine, &interpreter),
        interpreter,
        cwd,
        supervisor: Supervisor {
            // This very binary, also when its file has been replaced meanwhile.
            program: own_program(),
            arguments: vec![SUPERVISE.into()],
        },
        staging: engine.staging.clone(),
        start_timeout: START_TIMEOUT,
        interrupt_grace: INTERRUPT_GRACE,
    })
}

/// The environment of a kernel.
pub(crate) fn variables(engine: &Engine, interpreter: &Interpreter) -> Vec<(OsString, OsString)> {
    let mut variables = environment::filtered(env::all(), &Choices::default());
    environment::lead_with(&mut variables, interpreter);
    if let Some(artifacts) = &engine.artifacts {
        for name in [env::ARTIFACTS_DIR, "PI_ARTIFACTS_DIR"] {
            environment::set(&mut variables, name, artifacts.dir().into());
        }
    }
    variables
}

pub(crate) fn own_program() -> PathBuf {
    let link = Path::new("/proc/self/exe");
    if link.exists() {
        return link.to_owned();
    }
    std::env::current_exe().unwrap_or_else(|_| OsStr::new("cellwright").into())
}
