//! [`Kernelspec`]: how an installed kernel is started.

mod program;
mod read;
mod template;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::places::Places;

/// How an installed kernel is started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernelspec {
    /// The name that people give.
    pub name: String,
    /// Where it is installed.
    pub folder: PathBuf,
    /// Program and arguments, with `{connection_file}` and the like in them.
    pub argv: Vec<String>,
    /// A name for people to read.
    pub display_name: String,
    /// The language that it runs; empty if it does not say.
    pub language: String,
    /// How it is interrupted.
    pub interrupt: Interrupt,
    /// Variables to set for it, with `${NAME}` in their values.
    pub env: Vec<(String, String)>,
    /// What else is said about it.
    pub metadata: Map<String, Value>,
}

/// How a kernel is interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// By a signal.
    #[default]
    Signal,
    /// By a message on the control channel.
    Message,
}

/// A kernelspec as it was found, good or not.
#[derive(Debug)]
pub struct Listed {
    /// Its name, in small letters.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// What it says, or what is wrong with it.
    pub spec: Result<Kernelspec, Fault>,
}

/// What is wrong with a kernelspec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its file cannot be read.
    #[error("kernel.json cannot be read: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// Its file makes no sense.
    #[error("kernel.json is not a kernelspec: {why}")]
    Malformed {
        /// Why.
        why: String,
    },
    /// Its program is not there.
    #[error("its program {} was not found", program.display())]
    NoProgram {
        /// The program.
        program: PathBuf,
    },
    /// Its program is there, but is none.
    #[error("its program {} cannot be executed", program.display())]
    NotExecutable {
        /// The program.
        program: PathBuf,
    },
}

/// A kernel that is not installed.
#[derive(Debug, thiserror::Error)]
#[error("there is no kernel named {name}")]
pub struct NotFound {
    /// The name that was asked for.
    pub name: String,
    /// The kernels that there are, without those that are broken.
    pub available: Vec<String>,
    /// The folders in which it was looked for.
    pub searched: Vec<PathBuf>,
}

/// Every kernelspec there is, sorted by name; of several with the same name the one that counts.
///
/// As in Jupyter the first folder of [`Places`] that has the name counts, even if what it has there is
/// broken. Jupyter grumbles about names with anything but letters, digits, dots, dashes and underscores
/// in them, but takes them; so do we, if they are UTF-8.
pub fn list(places: &Places) -> Vec<Listed> {
    folders(places)
        .into_iter()
        .map(|(name, folder)| listed(name, folder))
        .collect()
}

/// The kernelspec of that name, whatever case it is in.
pub fn find(places: &Places, name: &str) -> Result<Listed, NotFound> {
    let mut folders = folders(places);
    let key = name.to_lowercase();
    if let Some(folder) = folders.remove(&key) {
        return Ok(listed(key, folder));
    }
    Err(NotFound {
        name: name.to_owned(),
        available: folders
            .into_iter()
            .map(|(name, folder)| listed(name, folder))
            .filter(|listed| listed.spec.is_ok())
            .map(|listed| listed.name)
            .collect(),
        searched: places.kernels().collect(),
    })
}

fn listed(name: String, folder: PathBuf) -> Listed {
    let spec = read::read(&name, &folder);
    Listed { name, folder, spec }
}

/// Where each kernelspec is, by name.
fn folders(places: &Places) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for kernels in places.kernels() {
        let Ok(entries) = fs::read_dir(&kernels) else {
            continue;
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        // Where two names differ in case only, the one that is spelled as it is listed counts.
        names.sort_by_cached_key(|name| (*name != name.to_lowercase(), name.clone()));
        for name in names {
            let folder = kernels.join(&name);
            let key = name.to_lowercase();
            if !found.contains_key(&key) && folder.join(read::FILE).is_file() {
                found.insert(key, folder);
            }
        }
    }
    found
}

impl Kernelspec {
    /// The kernel that comes with `IPython`, in an interpreter that has it.
    pub fn ipykernel(python: &Path) -> Self {
        let python = python.display().to_string();
        let argv = ["-m", "ipykernel_launcher", "-f", "{connection_file}"].map(str::to_owned);
        Self {
            name: "python3".to_owned(),
            folder: PathBuf::new(),
            argv: std::iter::once(python).chain(argv).collect(),
            display_name: "Python 3 (ipykernel)".to_owned(),
            language: "python".to_owned(),
            interrupt: Interrupt::Signal,
            env: Vec::new(),
            metadata: Map::new(),
        }
    }

    /// The command that starts it. Where the program is just `python` or the like, `python` takes its
    /// place if given.
    ///
    /// `{connection_file}`, `{resource_dir}` (where the kernelspec is) and `{prefix}` (the environment
    /// of `python`) are replaced wherever they stand; anything else in braces stays.
    pub fn command(&self, connection_file: &Path, python: Option<&Path>) -> Vec<OsString> {
        // The kernel may start in another folder.
        let connection_file = fs::canonicalize(connection_file)
            .or_else(|_| std::path::absolute(connection_file))
            .unwrap_or_else(|_| connection_file.to_owned());
        let mut arguments = self.argv.iter();
        let program = arguments.next().map(|_| self.program(python));
        let arguments = arguments.map(|argument| self.fill(argument, &connection_file, python));
        program.into_iter().chain(arguments).collect()
    }

    /// Whether it is Python's own kernel, as `python -m ipykernel_launcher` starts it.
    pub fn is_ipykernel(&self) -> bool {
        let is_it = |pair: &[String]| {
            pair[0] == "-m" && ["ipykernel_launcher", "ipykernel"].contains(&pair[1].as_str())
        };
        self.argv.windows(2).any(is_it)
    }

    /// What it wants in its environment, `${NAME}` replaced by what is in `env`.
    pub fn environment(&self, env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        self.env
            .iter()
            .map(|(name, value)| (name.into(), template::variables(value, env)))
            .collect()
    }

    /// Looks for its program, along `path` if it is only a name; `python` as in [`Self::command`].
    ///
    /// What a relative path with a slash in it leads to depends on where the kernel starts, so that is
    /// not looked at.
    pub fn check(&self, path: &[PathBuf], python: Option<&Path>) -> Result<PathBuf, Fault> {
        program::look(Path::new(&self.program(python)), path)
    }

    fn program(&self, python: Option<&Path>) -> OsString {
        let program = self.argv.first().map(String::as_str).unwrap_or_default();
        match python.filter(|python| program::stands_for(program, python)) {
            Some(python) => python.into(),
            // No program is a connection file.
            None => self.fill(program, Path::new("{connection_file}"), python),
        }
    }

    fn fill(&self, argument: &str, connection_file: &Path, python: Option<&Path>) -> OsString {
        template::braces(argument, |name| match name {
            "connection_file" => Some(connection_file),
            "resource_dir" => Some(&self.folder),
            "prefix" => python?.parent()?.parent(),
            _ => None,
        })
    }
}
