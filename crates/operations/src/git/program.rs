//! Runs the `git` program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use cellwright_diagnostics::failure::{Failure, Kind, flag, hint};
use cellwright_engine::env;
use cellwright_stdext::Directory;

/// Runs git in a directory.
#[derive(Clone, Debug)]
pub struct Git {
    dir: Directory,
}

impl Git {
    /// Git in the current directory.
    pub fn in_current_dir() -> Self {
        Self { dir: ".".into() }
    }

    /// Git in a directory.
    pub fn in_dir(dir: impl Into<Directory>) -> Self {
        Self { dir: dir.into() }
    }

    /// Git in the root of the repository of the current directory.
    pub fn in_repository() -> Result<Self, Failure> {
        let root = Self::in_current_dir().try_run(["rev-parse", "--show-toplevel"])?;
        match root {
            Ok(root) => Ok(Self {
                dir: root.as_str().into(),
            }),
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
        command.env_clear().envs(env::all());
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
