//! [`Kernelspec`]: describes how to start an installed kernel.

mod program;
mod read;
mod template;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::paths::JupyterPaths;

/// Describes how to start an installed kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernelspec {
    /// The name that selects the kernel, in lower case.
    pub name: String,
    /// The directory of the kernelspec.
    pub dir: PathBuf,
    /// Program and arguments, with placeholders such as `{connection_file}`.
    pub argv: Vec<String>,
    /// The name to display.
    pub display_name: String,
    /// The programming language; empty if the kernelspec names none.
    pub language: String,
    /// How to interrupt the kernel.
    pub interrupt: InterruptMode,
    /// Environment variables to set, with `${NAME}` placeholders in their values.
    pub env: Vec<(String, String)>,
    /// Further metadata.
    pub metadata: Map<String, Value>,
}

/// How to interrupt a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptMode {
    /// With a signal.
    #[default]
    Signal,
    /// With an `interrupt_request` on the control channel.
    Message,
}

/// A kernelspec as it was found, valid or not.
#[derive(Debug)]
pub struct KernelspecEntry {
    /// The name, in lower case.
    pub name: String,
    /// The directory.
    pub dir: PathBuf,
    /// The kernelspec, or why it cannot be used.
    pub spec: Result<Kernelspec, KernelspecError>,
}

/// Why a kernelspec cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelspecError {
    /// `kernel.json` cannot be read.
    #[error("kernel.json cannot be read: {reason}")]
    Unreadable {
        /// The reason.
        reason: String,
    },
    /// `kernel.json` is malformed.
    #[error("kernel.json is not a kernelspec: {reason}")]
    Malformed {
        /// The reason.
        reason: String,
    },
    /// The program does not exist.
    #[error("its program {} was not found", program.display())]
    NoProgram {
        /// The program.
        program: PathBuf,
    },
    /// The program exists but cannot be executed.
    #[error("its program {} cannot be executed", program.display())]
    NotExecutable {
        /// The program.
        program: PathBuf,
    },
}

/// No kernel with the name is installed.
#[derive(Debug, thiserror::Error)]
#[error("there is no kernel named {name}")]
pub struct KernelspecNotFound {
    /// The requested name.
    pub name: String,
    /// The names of the installed kernels with a valid kernelspec.
    pub available: Vec<String>,
    /// The directories that were searched.
    pub searched: Vec<PathBuf>,
}

/// Returns all kernelspecs, sorted by name; of several with the same name the first in the search order.
///
/// As in Jupyter, the first directory of [`JupyterPaths`] that has the name counts, even if its kernelspec is broken. Names
/// with characters other than letters, digits, dots, dashes and underscores are accepted if they are UTF-8; Jupyter
/// accepts them with a warning.
pub fn list(paths: &JupyterPaths) -> Vec<KernelspecEntry> {
    find_dirs(paths)
        .into_iter()
        .map(|(name, dir)| read_entry(name, dir))
        .collect()
}

/// Returns the kernelspec with a name, ignoring case.
pub fn find(paths: &JupyterPaths, name: &str) -> Result<KernelspecEntry, KernelspecNotFound> {
    let mut dirs = find_dirs(paths);
    let key = name.to_lowercase();
    if let Some(dir) = dirs.remove(&key) {
        return Ok(read_entry(key, dir));
    }
    Err(KernelspecNotFound {
        name: name.to_owned(),
        available: dirs
            .into_iter()
            .map(|(name, dir)| read_entry(name, dir))
            .filter(|entry| entry.spec.is_ok())
            .map(|entry| entry.name)
            .collect(),
        searched: paths.kernel_dirs().collect(),
    })
}

fn read_entry(name: String, dir: PathBuf) -> KernelspecEntry {
    let spec = read::read(&name, &dir);
    KernelspecEntry { name, dir, spec }
}

/// The directory of each kernelspec, by name.
fn find_dirs(paths: &JupyterPaths) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for kernels in paths.kernel_dirs() {
        let Ok(entries) = fs::read_dir(&kernels) else {
            continue;
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        // Where two names differ in case only, the one in lower case counts.
        names.sort_by_cached_key(|name| (*name != name.to_lowercase(), name.clone()));
        for name in names {
            let dir = kernels.join(&name);
            let key = name.to_lowercase();
            if !found.contains_key(&key) && dir.join(read::FILE_NAME).is_file() {
                found.insert(key, dir);
            }
        }
    }
    found
}

impl Kernelspec {
    /// Parses the content of the `kernel.json` in a directory.
    pub fn parse(name: &str, dir: &Path, json: &[u8]) -> Result<Self, KernelspecError> {
        read::parse(name, dir, json)
    }

    /// The kernelspec of ipykernel in an interpreter that has it installed.
    pub fn ipykernel(python: &Path) -> Self {
        let python = python.display().to_string();
        let argv = ["-m", "ipykernel_launcher", "-f", "{connection_file}"].map(str::to_owned);
        Self {
            name: "python3".to_owned(),
            dir: PathBuf::new(),
            argv: std::iter::once(python).chain(argv).collect(),
            display_name: "Python 3 (ipykernel)".to_owned(),
            language: "python".to_owned(),
            interrupt: InterruptMode::Signal,
            env: Vec::new(),
            metadata: Map::new(),
        }
    }

    /// Returns the command that starts the kernel. A program that is just `python`, `python3` or the like is replaced by
    /// `python`, if that is given.
    ///
    /// `{connection_file}`, `{resource_dir}` (the directory of the kernelspec) and `{prefix}` (the environment of `python`)
    /// are replaced everywhere. Other text in braces stays.
    pub fn command(&self, connection_file: &Path, python: Option<&Path>) -> Vec<OsString> {
        // The kernel may start in another working directory.
        let connection_file = fs::canonicalize(connection_file)
            .or_else(|_| std::path::absolute(connection_file))
            .unwrap_or_else(|_| connection_file.to_owned());
        let mut arguments = self.argv.iter();
        let program = arguments.next().map(|_| self.program(python));
        let arguments =
            arguments.map(|argument| self.fill_placeholders(argument, &connection_file, python));
        program.into_iter().chain(arguments).collect()
    }

    /// Whether the kernelspec starts ipykernel with `python -m ipykernel_launcher`.
    pub fn is_ipykernel(&self) -> bool {
        let is_launcher = |pair: &[String]| {
            pair[0] == "-m" && ["ipykernel_launcher", "ipykernel"].contains(&pair[1].as_str())
        };
        self.argv.windows(2).any(is_launcher)
    }

    /// Returns the environment variables to set, with `${NAME}` replaced by the values in `env`.
    pub fn environment(&self, env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        self.env
            .iter()
            .map(|(name, value)| (name.into(), template::replace_variables(value, env)))
            .collect()
    }

    /// Returns the path of the program, which is searched in `path` if it is only a name. `python` is used as in
    /// [`Self::command`].
    ///
    /// A relative path with a slash is returned unchecked: it depends on the working directory of the kernel.
    pub fn find_program(
        &self,
        path: &[PathBuf],
        python: Option<&Path>,
    ) -> Result<PathBuf, KernelspecError> {
        program::find(Path::new(&self.program(python)), path)
    }

    fn program(&self, python: Option<&Path>) -> OsString {
        let program = self.argv.first().map(String::as_str).unwrap_or_default();
        match python.filter(|python| program::names_python(program, python)) {
            Some(python) => python.into(),
            // A connection file is never the program.
            None => self.fill_placeholders(program, Path::new("{connection_file}"), python),
        }
    }

    fn fill_placeholders(
        &self,
        argument: &str,
        connection_file: &Path,
        python: Option<&Path>,
    ) -> OsString {
        template::replace_braces(argument, |name| match name {
            "connection_file" => Some(connection_file),
            "resource_dir" => Some(&self.dir),
            "prefix" => python?.parent()?.parent(),
            _ => None,
        })
    }
}
