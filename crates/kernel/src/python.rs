//! Selects the Python interpreter: an explicit choice, the active environment, an environment in the
//! project, or the interpreter on `PATH`. The search reads only the file system and starts no process.
//! [`Shim`] resolves a shim to the interpreter that it starts.

mod shim;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cellwright_stdext::private::OwnerRule;

pub use shim::{ResolvedShim, Shim, ShimContext};

/// Names of the directories in a project that contain an environment.
pub const ENVIRONMENT_NAMES: [&str; 2] = [".venv", "venv"];

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
    /// Decides which repositories and environments count.
    pub owner_rule: OwnerRule,
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
    for dir in project_dirs(search) {
        for name in ENVIRONMENT_NAMES {
            let environment = dir.join(name);
            if environment.is_dir()
                && is_own(dir, &environment, &search.owner_rule, rejected)
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

/// The directories whose environments belong to the project: the working directory and its parents up to the root of the
/// repository. A repository of another user is none. Without a repository the search ends below the home directory and the root directory, and at the first parent that
/// another user owns or where every user can create files.
fn project_dirs(search: &InterpreterSearch) -> Vec<&Path> {
    let cwd = search.cwd.as_path();
    let is_repository = |dir: &Path| {
        let marker = dir.join(".git");
        marker.exists() && search.owner_rule.check_all([dir, &marker]).is_ok()
    };
    if let Some(depth) = cwd.ancestors().position(is_repository) {
        return cwd.ancestors().take(depth + 1).collect();
    }
    let home = search
        .home
        .as_deref()
        .and_then(|home| home.canonicalize().ok());
    let is_home = |dir: &Path| home.is_some() && dir.canonicalize().ok() == home;
    if is_home(cwd) {
        return vec![cwd];
    }
    let is_project = |dir: &&Path| dir.parent().is_some() && !is_home(dir) && is_private(dir);
    let parents = cwd.ancestors().skip(1).take_while(is_project);
    std::iter::once(cwd).chain(parents).collect()
}

/// Whether the user owns a directory, and other users outside of its group cannot create files there.
fn is_private(dir: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    dir.metadata()
        .is_ok_and(|metadata| metadata.uid() == user && metadata.mode() & 0o002 == 0)
}

/// Whether only this user or root can have put an environment of a project there, and its programs.
fn is_own(
    dir: &Path,
    environment: &Path,
    rule: &OwnerRule,
    rejected: &mut Vec<RejectedInterpreter>,
) -> bool {
    let bin = environment.join("bin");
    let own = rule.check_all([dir, environment, &bin]);
    if own.is_err() {
        rejected.push(RejectedInterpreter {
            path: environment.to_owned(),
            reason: "another user owns it or can write to it",
        });
    }
    own.is_ok()
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
