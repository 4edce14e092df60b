//! Selects the Python interpreter: an explicit choice, the active environment, an environment in the
//! project, or the interpreter on `PATH`. The search reads only the file system and starts no process.
//! [`Shim`] resolves a shim to the interpreter that it starts.

mod shim;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use shim::{ResolvedShim, Shim, ShimContext};

/// The inputs of the search. The caller reads the environment variables; this module does not.
#[derive(Clone, Debug, Default)]
pub struct InterpreterSearch {
    /// The user's choice: a path, the directory of an environment, or the name of a command.
    pub explicit: Option<PathBuf>,
    /// `VIRTUAL_ENV`.
    pub virtual_env: Option<PathBuf>,
    /// `CONDA_PREFIX`.
    pub conda_prefix: Option<PathBuf>,
    /// The working directory of the kernel, absolute.
    pub cwd: PathBuf,
    /// The environment that Cellwright manages, if there is one.
    pub managed: Option<PathBuf>,
    /// The directories of `PATH`.
    pub path: Vec<PathBuf>,
    /// The user's home directory, for `~`.
    pub home: Option<PathBuf>,
}

/// The selected interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// Where it was found.
    pub origin: Origin,
    /// The virtual environment it belongs to.
    pub environment: Option<PathBuf>,
    /// Candidates that were tried before and are not usable.
    pub rejected: Vec<RejectedInterpreter>,
    /// Environment variables that the interpreter's shim would set. Empty for an interpreter without a shim.
    pub variables: Vec<(OsString, OsString)>,
}

impl Interpreter {
    /// Replaces a shim by the interpreter that it starts.
    #[must_use]
    pub fn with_resolved_shim(self, resolved: ResolvedShim) -> Self {
        Self {
            environment: environment_of(&resolved.program),
            program: resolved.program,
            variables: resolved.variables,
            ..self
        }
    }
}

/// Where an interpreter was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user chose it.
    Explicit,
    /// `VIRTUAL_ENV` names its environment.
    VirtualEnv,
    /// `CONDA_PREFIX` names its environment.
    Conda,
    /// An environment in the working directory or above it.
    Project {
        /// The directory that holds the environment.
        dir: PathBuf,
    },
    /// The environment that Cellwright manages.
    Managed,
    /// `PATH`.
    Path,
}

/// A candidate that is not usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedInterpreter {
    /// Its path.
    pub path: PathBuf,
    /// Why it is not usable.
    pub reason: &'static str,
}

/// Selects an interpreter, or returns all rejected candidates.
pub fn resolve(search: &InterpreterSearch) -> Result<Interpreter, Vec<RejectedInterpreter>> {
    let mut rejected = Vec::new();
    let selected = if let Some(explicit) = &search.explicit {
        // An explicit choice has no fallback.
        resolve_explicit(explicit, search, &mut rejected).map(|program| (program, Origin::Explicit))
    } else {
        discover(search, &mut rejected)
    };
    match selected {
        Some((program, origin)) => Ok(Interpreter {
            environment: environment_of(&program),
            program,
            origin,
            rejected,
            variables: Vec::new(),
        }),
        None => Err(rejected),
    }
}

fn resolve_explicit(
    explicit: &Path,
    search: &InterpreterSearch,
    rejected: &mut Vec<RejectedInterpreter>,
) -> Option<PathBuf> {
    let mut path = explicit.to_owned();
    if let (Ok(rest), Some(home)) = (explicit.strip_prefix("~"), &search.home) {
        path = home.join(rest);
    }
    if path.components().count() == 1 && !explicit.starts_with(".") {
        // A bare name is a command, unless the working directory has such a file or directory.
        let here = search.cwd.join(&path);
        if !here.exists() {
            return find_on_path(&[&path.to_string_lossy()], search, rejected);
        }
    }
    let path = search.cwd.join(path);
    if path.is_dir() {
        return find_in_environment(&path, rejected);
    }
    check_usable(&path, rejected)
}

fn discover(
    search: &InterpreterSearch,
    rejected: &mut Vec<RejectedInterpreter>,
) -> Option<(PathBuf, Origin)> {
    if let Some(dir) = &search.virtual_env
        && let Some(program) = find_in_environment(dir, rejected)
    {
        return Some((program, Origin::VirtualEnv));
    }
    if let Some(dir) = &search.conda_prefix
        && let Some(program) = find_in_environment(dir, rejected)
    {
        return Some((program, Origin::Conda));
    }
    for dir in dirs_up_to_repository(&search.cwd) {
        for name in [".venv", "venv"] {
            let environment = dir.join(name);
            if environment.is_dir()
                && let Some(program) = find_in_environment(&environment, rejected)
            {
                let dir = dir.to_owned();
                return Some((program, Origin::Project { dir }));
            }
        }
    }
    if let Some(dir) = &search.managed
        && dir.is_dir()
        && let Some(program) = find_in_environment(dir, rejected)
    {
        return Some((program, Origin::Managed));
    }
    find_on_path(&["python3", "python"], search, rejected).map(|program| (program, Origin::Path))
}

/// The working directory and its parents up to the root of the repository; without a repository only
/// the directory itself, because its parents are not part of the project.
pub fn dirs_up_to_repository(cwd: &Path) -> Vec<&Path> {
    let depth = cwd.ancestors().position(|dir| dir.join(".git").exists());
    cwd.ancestors().take(depth.unwrap_or(0) + 1).collect()
}

fn find_in_environment(dir: &Path, rejected: &mut Vec<RejectedInterpreter>) -> Option<PathBuf> {
    if !dir.is_dir() {
        rejected.push(RejectedInterpreter {
            path: dir.to_owned(),
            reason: "there is no such directory",
        });
        return None;
    }
    let programs = ["bin/python3", "bin/python"].map(|name| dir.join(name));
    let existing = programs
        .iter()
        .find(|program| program.symlink_metadata().is_ok());
    let Some(program) = existing else {
        rejected.push(RejectedInterpreter {
            path: dir.to_owned(),
            reason: "it has no bin/python3",
        });
        return None;
    };
    check_usable(program, rejected)
}

fn find_on_path(
    names: &[&str],
    search: &InterpreterSearch,
    rejected: &mut Vec<RejectedInterpreter>,
) -> Option<PathBuf> {
    for name in names {
        for dir in &search.path {
            let program = dir.join(name);
            if program.symlink_metadata().is_ok()
                && let Some(program) = check_usable(&program, rejected)
            {
                return Some(program);
            }
        }
        rejected.push(RejectedInterpreter {
            path: PathBuf::from(name),
            reason: "it is not on PATH",
        });
    }
    None
}

/// The path, if it is an executable file.
fn check_usable(path: &Path, rejected: &mut Vec<RejectedInterpreter>) -> Option<PathBuf> {
    use rustix::fs::{Access, access};

    let reason = match path.metadata() {
        Err(_) if path.symlink_metadata().is_ok() => "the link is broken",
        Err(_) => "there is no such file",
        Ok(metadata) if metadata.is_dir() => "it is a directory",
        Ok(_) if access(path, Access::EXEC_OK).is_err() => "it is not executable",
        Ok(_) => return Some(path.to_owned()),
    };
    rejected.push(RejectedInterpreter {
        path: path.to_owned(),
        reason,
    });
    None
}

/// The virtual environment (or conda environment) that a program belongs to.
fn environment_of(program: &Path) -> Option<PathBuf> {
    let dir = program.parent()?.parent()?;
    let markers = ["pyvenv.cfg", "conda-meta"];
    markers
        .iter()
        .any(|marker| dir.join(marker).exists())
        .then(|| dir.to_owned())
}

#[cfg(test)]
mod tests;
