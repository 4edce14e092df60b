//! The `git` program, asked.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::failure::{Failure, Kind};

/// Runs git in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    folder: PathBuf,
}

impl Git {
    /// In the current directory.
    pub(crate) fn here() -> Self {
        Self {
            folder: PathBuf::from("."),
        }
    }

    /// In the root of the repository that the current directory is in.
    pub(crate) fn in_repository() -> Result<Self, Failure> {
        let root = Self::here().answer(["rev-parse", "--show-toplevel"])?;
        match root {
            Ok(root) => Ok(Self {
                folder: PathBuf::from(root),
            }),
            Err(words) => {
                let message = "There is no git repository with files here";
                let mut failure = Failure::new(Kind::BadArguments, message);
                failure.causes.push(words);
                Err(failure.hint(
                    "go to a repository, make one with `git init`, or use --global for all of yours",
                ))
            }
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What git prints, without the line end; or what it says is wrong.
    pub(crate) fn answer<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Result<String, String>, Failure> {
        let output = self.run(arguments)?;
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

    /// Something that must work.
    pub(crate) fn must<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<String, Failure> {
        self.answer(arguments)?.map_err(|words| {
            let mut failure = Failure::new(Kind::BadFile, "Git could not be set up");
            failure.causes.push(words);
            failure
        })
    }

    /// The content of a file in some revision: `HEAD:analysis.ipynb`.
    pub(crate) fn blob(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let failed = |words: &[u8]| {
            let message = format!("There is no file {name}, and git knows no such revision");
            let mut failure = Failure::new(Kind::BadFile, message);
            let words = String::from_utf8_lossy(words);
            failure
                .causes
                .extend(words.lines().next().map(str::to_owned));
            failure
        };
        if name.starts_with('-') {
            return Err(failed(b""));
        }
        let output = self.run(["cat-file", "blob", name])?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        // As it is named from here, not from the root of the repository.
        if let Some((revision, path)) = name.split_once(':') {
            let nearby = self.run(["cat-file", "blob", &format!("{revision}:./{path}")])?;
            if nearby.status.success() {
                return Ok(nearby.stdout);
            }
        }
        Err(failed(&output.stderr))
    }

    fn run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Output, Failure> {
        Command::new("git")
            .arg("-C")
            .arg(&self.folder)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                let missing = error.kind() == io::ErrorKind::NotFound;
                let mut failure = Failure::new(Kind::BadFile, "Could not run git");
                failure.causes.push(error.to_string());
                if missing {
                    failure = failure.hint("install git, or put the folder it is in on your PATH");
                }
                failure
            })
    }
}
