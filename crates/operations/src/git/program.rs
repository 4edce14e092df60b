//! Runs the `git` program. Every call is built here, so that none of them runs a program that a repository names.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_engine::env;
use cellwright_stdext::Directory;

use super::confinement::Confinement;

/// Runs git in a directory.
#[derive(Clone, Debug)]
pub struct Git {
    dir: Directory,
    /// The directories that it may read; `None`: all.
    confinement: Option<Confinement>,
}

/// Settings of every call. A repository may come from other people, and its configuration names programs: those that git starts to
/// find changed files or to fetch missing objects, hooks, pagers and helpers. Reading a notebook needs none of them.
const SETTINGS: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
];

/// Settings of a confined call: git takes no directory for a repository just because it looks like one.
const CONFINED_SETTINGS: [&str; 1] = ["safe.bareRepository=explicit"];

/// Environment of every call. No object is fetched, by any protocol, and nothing is asked.
const VARIABLES: [(&str, &str); 4] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

impl Git {
    /// Git in the current directory.
    pub fn in_current_dir() -> Self {
        Self::in_dir(".")
    }

    /// Git in a directory.
    pub fn in_dir(dir: impl Into<Directory>) -> Self {
        Self {
            dir: dir.into(),
            confinement: None,
        }
    }

    /// The same, in these directories only. Variables that name another repository do not apply.
    #[must_use]
    pub fn confined(self, confinement: Confinement) -> Self {
        let confinement = Some(confinement);
        Self {
            confinement,
            ..self
        }
    }

    /// The same in another directory.
    pub(crate) fn at(&self, dir: Directory) -> Self {
        let confinement = self.confinement.clone();
        Self { dir, confinement }
    }

    /// Whether it may only read some directories.
    pub(crate) fn is_confined(&self) -> bool {
        self.confinement.is_some()
    }

    /// Git in the root of the repository of the current directory.
    pub fn in_repository() -> Result<Self, Failure> {
        let root = Self::in_current_dir().try_run(["rev-parse", "--show-toplevel"])?;
        match root {
            Ok(root) => Ok(Self::in_dir(root.as_str())),
            Err(stderr) => {
                let message =
                    "The current directory is not in a git repository with a working tree";
                let mut failure = Failure::new(Kind::BadArguments, message);
                failure.causes.push(stderr);
                Err(failure.hint(hint![
                    "go to a repository, create one with `git init`, or use ",
                    flag("global"),
                    " for all repositories",
                ]))
            }
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a command. Returns stdout without the line end, or stderr if git fails.
    pub fn try_run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Result<String, String>, Failure> {
        let output = self.output(arguments)?;
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .trim_end_matches(['\n', '\r'])
                .to_owned()
        };
        Ok(if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        })
    }

    /// Runs a command that must succeed.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, Failure> {
        self.try_run(arguments)?.map_err(|stderr| {
            let mut failure = Failure::new(Kind::BadFile, "Git could not be set up");
            failure.causes.push(stderr);
            failure
        })
    }

    /// Returns the lines of `git check-attr` for a file in the directory, or stderr if git fails.
    pub fn check_attr(
        &self,
        names: &[&str],
        file: &str,
    ) -> Result<Result<String, String>, Failure> {
        self.refuse_pipes()?;
        let arguments = std::iter::once("check-attr")
            .chain(names.iter().copied())
            .chain(["--", file]);
        self.try_run(arguments)
    }

    /// Returns an error if git would wait for a pipe: a repository of another person can have one in the place of
    /// `.gitattributes`.
    fn refuse_pipes(&self) -> Result<(), Failure> {
        let dir = self.dir.path();
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        for dir in dir.ancestors() {
            let path = dir.join(".gitattributes");
            let kind = path.symlink_metadata().map(|metadata| metadata.file_type());
            if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device()) {
                let message = format!("Could not read {}", path.display());
                let mut failure = Failure::new(Kind::BadFile, message);
                failure.causes.push("it is not a regular file".to_owned());
                return Err(failure.hint("remove it: git waits for it, too"));
            }
            if dir.join(".git").exists() {
                break;
            }
        }
        Ok(())
    }

    /// Reads a file of a revision, such as `HEAD:analysis.ipynb`.
    pub fn read_blob(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let not_found = |stderr: &[u8]| {
            let message = format!("There is no file {name} and no such revision in git");
            let mut failure = Failure::new(Kind::BadFile, message);
            let stderr = String::from_utf8_lossy(stderr);
            failure
                .causes
                .extend(stderr.lines().next().map(str::to_owned));
            failure
        };
        if name.starts_with('-') {
            return Err(not_found(b""));
        }
        let output = self.output(["cat-file", "blob", name])?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        // The path can be relative to the current directory instead of the root of the repository.
        if let Some((revision, path)) = name.split_once(':') {
            let nearby = self.output(["cat-file", "blob", &format!("{revision}:./{path}")])?;
            if nearby.status.success() {
                return Ok(nearby.stdout);
            }
        }
        Err(not_found(&output.stderr))
    }

    /// Reads a file of a revision. Returns the first line of stderr if git fails.
    pub fn try_read_blob(&self, name: &str) -> Result<Result<Vec<u8>, String>, Failure> {
        let output = self.output(["cat-file", "blob", name])?;
        Ok(if output.status.success() {
            Ok(output.stdout)
        } else {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(stderr.lines().next().unwrap_or_default().to_owned())
        })
    }

    fn output<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Output, Failure> {
        let mut command = Command::new("git");
        // The environment block of a server has lost most values.
        let variables = env::all();
        let is_own = |name: &OsStr| name.as_encoded_bytes().starts_with(b"GIT_");
        command.env_clear();
        command.envs(variables.into_iter().filter(|(name, _)| {
            // They can name another repository, its objects and programs.
            self.confinement.is_none() || !is_own(name)
        }));
        command.envs(VARIABLES);
        let mut settings = SETTINGS.to_vec();
        if let Some(confinement) = &self.confinement {
            let dir = self.dir.current_path();
            confinement.check(dir.as_deref().unwrap_or(self.dir.path()))?;
            settings.extend(CONFINED_SETTINGS);
        }
        for setting in settings {
            command.args(["-c", setting]);
        }
        if self.dir.is_held() {
            // The descriptor is closed when git starts.
            command.current_dir(self.dir.open_path());
        } else {
            command.arg("-C").arg(self.dir.path());
        }
        command
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                let missing = error.kind() == io::ErrorKind::NotFound;
                let mut failure = Failure::new(Kind::BadFile, "Could not run git");
                failure.causes.push(error.to_string());
                if missing {
                    failure = failure.hint("install git, or add its directory to PATH");
                }
                failure
            })
    }
}
