//! Notebooks in git repositories: setup, diff, merge and clean filter.

mod drivers;
mod hostile;
mod revisions;
mod setup;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::{CommandOutput, Context};

/// A git repository, with the binary on the path.
struct Repository {
    context: Context,
    /// The directory of the repository. Its name needs quotes in a shell.
    root: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let context = Context::new();
        let root = context.path("my 'own' repository");
        std::fs::create_dir(&root).unwrap();
        let repository = Self { context, root };
        repository.git(&["init", "-q", "-b", "main", "."]);
        repository
    }

    /// A repository with one commit that contains `a.ipynb`.
    fn with_notebook(content: &str) -> Self {
        let repository = Self::new();
        repository.write("a.ipynb", content);
        repository.commit("one");
        repository
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.root.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// A command that runs a program in the repository with a minimal environment.
    fn program(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        let binary = Path::new(env!("CARGO_BIN_EXE_cellwright"))
            .parent()
            .unwrap();
        let path = std::env::var("PATH").unwrap();
        command
            .args(arguments)
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", format!("{}:{path}", binary.display()))
            .env("HOME", self.context.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .stdin(std::process::Stdio::null());
        command
    }

    fn run(&self, command: &mut Command) -> CommandOutput {
        CommandOutput::new(&self.context, &command.output().unwrap())
    }

    /// Runs git. Returns its stdout; fails the test unless git succeeds.
    fn git(&self, arguments: &[&str]) -> String {
        self.try_git(arguments).exits(0).stdout
    }

    fn try_git(&self, arguments: &[&str]) -> CommandOutput {
        self.run(&mut self.program("git", arguments))
    }

    fn cellwright(&self, arguments: &[&str]) -> CommandOutput {
        self.run(&mut self.program(env!("CARGO_BIN_EXE_cellwright"), arguments))
    }
}
