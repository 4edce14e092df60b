//! [`Context`]: a directory, a cache and the binary, for one test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The directories of one test.
pub(crate) struct Context {
    dir: TempDir,
    cache: TempDir,
}

/// A mounted file system, unmounted when dropped, also while processes use it.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// Three cells in the layout that Jupyter writes.
pub(crate) const THREE_CELLS: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "title",
   "metadata": {},
   "source": [
    "# A tour\n",
    "\n",
    "of three cells"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "first-code",
   "metadata": {
    "tags": []
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "42\n"
     ]
    }
   ],
   "source": [
    "answer = 42\n",
    "print(answer)"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "last",
   "metadata": {},
   "outputs": [],
   "source": [
    "answer + 1.0"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "language": "python",
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

impl Context {
    pub(crate) fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            cache: TempDir::new().unwrap(),
        }
    }

    /// A context with `a.ipynb` in it.
    pub(crate) fn with_notebook() -> Self {
        let context = Self::new();
        context.file("a.ipynb", THREE_CELLS);
        context
    }

    /// Creates a file that was modified an hour ago, so that commands do not wait for a writer of the file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(long_ago).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The home directory of the binary.
    pub(crate) fn home(&self) -> &Path {
        self.cache.path()
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The binary with these arguments, in the context's directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cellwright"));
        command
            .args(arguments)
            .current_dir(self.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.cache.path())
            // Never the host of the user who runs the tests.
            .env("CELLWRIGHT_HOST_DIR", self.cache.path().join("host"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::new(self, &self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input(
        &self,
        arguments: &[&str],
        input: impl AsRef<[u8]>,
    ) -> CommandOutput {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that rejects its arguments does not read stdin.
        stdin.write_all(input.as_ref()).ok();
        drop(stdin);
        CommandOutput::new(self, &child.wait_with_output().unwrap())
    }

    /// Mounts a file system of this size at `disk`. Reports a skip if this user may not mount: the tests of the
    /// crates make every single step fail instead.
    pub(crate) fn small_disk(&self, size: &str) -> Option<SmallDisk> {
        let disk = self.path("disk");
        fs::create_dir(&disk).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&disk)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            cellwright_test_support::skip("mount", "a tmpfs cannot be mounted");
            return None;
        }
        Some(SmallDisk(disk))
    }

    /// Runs code on the interpreter of the tests.
    pub(crate) fn eval(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::new(self, &self.eval_command(arguments).output().unwrap())
    }

    pub(crate) fn eval_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&["eval"]);
        if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
            command.arg("--python").arg(python);
        }
        command.args(arguments);
        command
    }

    /// The revision of a notebook, as `read --json` reports it.
    pub(crate) fn revision(&self, name: &str) -> String {
        let result = self.run(&["read", name, "--json"]);
        result.json()["revision"].as_str().unwrap().to_owned()
    }
}

/// Exit code and output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    dir: PathBuf,
}

impl CommandOutput {
    pub(crate) fn new(context: &Context, output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            dir: context.dir().canonicalize().unwrap(),
        }
    }

    /// Fails the test unless the exit code is `code`.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Exit code and output, with revisions and the directory masked.
    pub(crate) fn output_masked(&self) -> String {
        let text = format!(
            "exit code: {}\n--- stdout\n{}--- stderr\n{}",
            self.code
                .map_or_else(|| "none".to_owned(), |code| code.to_string()),
            self.stdout,
            self.stderr
        );
        let dir = self.dir.display().to_string();
        mask_revisions(
            &text
                .replace(&format!("{dir}/"), "")
                .replace(&dir, "[FOLDER]"),
        )
    }
}

/// Replaces runs of exactly 32 hexadecimal digits.
fn mask_revisions(text: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    for character in text.chars().chain(['\0']) {
        if character.is_ascii_hexdigit() {
            run.push(character);
            continue;
        }
        out.push_str(if run.len() == 32 { "[REVISION]" } else { &run });
        run.clear();
        if character != '\0' {
            out.push(character);
        }
    }
    out
}
