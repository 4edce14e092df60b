//! Which Python interpreter, and why: an explicit choice, the environment the user is in, one beside
//! the work, or the one on the search path. Nothing is started to find out; only files are looked at.

use std::path::{Path, PathBuf};

/// What to look at. The caller reads the environment; this module does not.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// What the user asked for: a path, an environment's folder, or a command's name.
    pub explicit: Option<PathBuf>,
    /// `VIRTUAL_ENV`.
    pub virtual_env: Option<PathBuf>,
    /// `CONDA_PREFIX`.
    pub conda_prefix: Option<PathBuf>,
    /// The working directory of the kernel, absolute.
    pub cwd: PathBuf,
    /// Our own environment, if there is one.
    pub managed: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// The user's home, for `~`.
    pub home: Option<PathBuf>,
}

/// An interpreter that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub program: PathBuf,
    /// Why this one.
    pub origin: Origin,
    /// The virtual environment it belongs to.
    pub environment: Option<PathBuf>,
    /// What came before it and would not do.
    pub rejected: Vec<Rejected>,
}

/// Where an interpreter was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was asked for.
    Explicit,
    /// `VIRTUAL_ENV` names its environment.
    VirtualEnv,
    /// `CONDA_PREFIX` names its environment.
    Conda,
    /// An environment in the working directory or above it.
    Beside {
        /// The folder that holds the environment.
        folder: PathBuf,
    },
    /// Our own environment.
    Managed,
    /// The search path.
    Path,
}

/// A place that would not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The place.
    pub place: PathBuf,
    /// Why it would not do.
    pub why: &'static str,
}

/// Chooses an interpreter, or says everything that would not do.
pub fn resolve(search: &Search) -> Result<Interpreter, Vec<Rejected>> {
    let mut rejected = Vec::new();
    let found = if let Some(explicit) = &search.explicit {
        // Somebody who names one wants no other.
        explicit_choice(explicit, search, &mut rejected).map(|program| (program, Origin::Explicit))
    } else {
        from_surroundings(search, &mut rejected)
    };
    match found {
        Some((program, origin)) => Ok(Interpreter {
            environment: environment_of(&program),
            program,
            origin,
            rejected,
        }),
        None => Err(rejected),
    }
}

fn explicit_choice(
    explicit: &Path,
    search: &Search,
    rejected: &mut Vec<Rejected>,
) -> Option<PathBuf> {
    let mut path = explicit.to_owned();
    if let (Ok(rest), Some(home)) = (explicit.strip_prefix("~"), &search.home) {
        path = home.join(rest);
    }
    if path.components().count() == 1 && !explicit.starts_with(".") {
        // A bare name: a command, unless there is such a file or folder right here.
        let here = search.cwd.join(&path);
        if !here.exists() {
            return on_path(&[&path.to_string_lossy()], search, rejected);
        }
    }
    let path = search.cwd.join(path);
    if path.is_dir() {
        return in_environment(&path, rejected);
    }
    usable(&path, rejected)
}

fn from_surroundings(search: &Search, rejected: &mut Vec<Rejected>) -> Option<(PathBuf, Origin)> {
    if let Some(folder) = &search.virtual_env
        && let Some(program) = in_environment(folder, rejected)
    {
        return Some((program, Origin::VirtualEnv));
    }
    if let Some(folder) = &search.conda_prefix
        && let Some(program) = in_environment(folder, rejected)
    {
        return Some((program, Origin::Conda));
    }
    for folder in up_to_the_repository(&search.cwd) {
        for name in [".venv", "venv"] {
            let environment = folder.join(name);
            if environment.is_dir()
                && let Some(program) = in_environment(&environment, rejected)
            {
                let folder = folder.to_owned();
                return Some((program, Origin::Beside { folder }));
            }
        }
    }
    if let Some(folder) = &search.managed
        && folder.is_dir()
        && let Some(program) = in_environment(folder, rejected)
    {
        return Some((program, Origin::Managed));
    }
    on_path(&["python3", "python"], search, rejected).map(|program| (program, Origin::Path))
}

/// The working directory and its parents up to the root of the repository; without a repository
/// only the directory itself, for what lies further up is not part of the work.
pub fn up_to_the_repository(cwd: &Path) -> Vec<&Path> {
    let depth = cwd
        .ancestors()
        .position(|folder| folder.join(".git").exists());
    cwd.ancestors().take(depth.unwrap_or(0) + 1).collect()
}

fn in_environment(folder: &Path, rejected: &mut Vec<Rejected>) -> Option<PathBuf> {
    if !folder.is_dir() {
        rejected.push(Rejected {
            place: folder.to_owned(),
            why: "there is no such folder",
        });
        return None;
    }
    let programs = ["bin/python3", "bin/python"].map(|name| folder.join(name));
    let there = programs
        .iter()
        .find(|program| program.symlink_metadata().is_ok());
    let Some(program) = there else {
        rejected.push(Rejected {
            place: folder.to_owned(),
            why: "it has no bin/python3",
        });
        return None;
    };
    usable(program, rejected)
}

fn on_path(names: &[&str], search: &Search, rejected: &mut Vec<Rejected>) -> Option<PathBuf> {
    for name in names {
        for folder in &search.path {
            let program = folder.join(name);
            if program.symlink_metadata().is_ok()
                && let Some(program) = usable(&program, rejected)
            {
                return Some(program);
            }
        }
        rejected.push(Rejected {
            place: PathBuf::from(name),
            why: "it is not on PATH",
        });
    }
    None
}

/// The path if it can be started as it looks.
fn usable(path: &Path, rejected: &mut Vec<Rejected>) -> Option<PathBuf> {
    use rustix::fs::{Access, access};

    let why = match path.metadata() {
        Err(_) if path.symlink_metadata().is_ok() => "the link leads nowhere",
        Err(_) => "there is no such file",
        Ok(found) if found.is_dir() => "it is a folder",
        Ok(_) if access(path, Access::EXEC_OK).is_err() => "it may not be executed",
        Ok(_) => return Some(path.to_owned()),
    };
    rejected.push(Rejected {
        place: path.to_owned(),
        why,
    });
    None
}

/// The virtual environment (or conda environment) that a program belongs to.
fn environment_of(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.parent()?;
    let marks = ["pyvenv.cfg", "conda-meta"];
    marks
        .iter()
        .any(|mark| folder.join(mark).exists())
        .then(|| folder.to_owned())
}

#[cfg(test)]
mod tests;
