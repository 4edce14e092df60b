//! Kernels of Jupyter's: which there are, which one is meant, and what is said when none can be had.

mod choosing;
mod finding;
mod stories;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::context::{CommandOutput, Context};

/// A context with its own kernelspecs. Kernels of the machine are found after them.
struct KernelspecFixture {
    context: Context,
}

impl KernelspecFixture {
    fn new() -> Self {
        Self {
            context: Context::new(),
        }
    }

    /// Where its kernels are.
    fn folder(&self, name: &str) -> PathBuf {
        self.context.path("jupyter/kernels").join(name)
    }

    /// Installs a kernel with this `kernel.json`.
    fn install(&self, name: &str, content: &str) {
        fs::create_dir_all(self.folder(name)).unwrap();
        fs::write(self.folder(name).join("kernel.json"), content).unwrap();
    }

    /// Installs a kernel that is started like this.
    fn install_starting(&self, name: &str, language: &str, argv: &[&str]) {
        let spec = json!({"argv": argv, "display_name": name, "language": language});
        self.install(name, &spec.to_string());
    }

    /// A program that does this.
    fn program(&self, name: &str, script: &str) -> String {
        let path = self.context.file(name, script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.context.command(arguments);
        command.env("JUPYTER_PATH", self.context.path("jupyter"));
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments).output().unwrap();
        CommandOutput::new(&self.context, &output)
    }

    /// What `kernels specs` says of the kernels that were installed here, and of the runner.
    fn specs(&self) -> Vec<Value> {
        let specs = self.run(&["kernels", "specs", "--json"]).exits(0).json();
        let mut specs = specs.as_array().unwrap().clone();
        let here = self.context.path("jupyter").display().to_string();
        specs.retain(|spec| {
            let folder = spec["folder"].as_str();
            folder.is_none_or(|folder| folder.starts_with(&here))
        });
        specs
    }

    /// What it says of one kernel.
    fn spec(&self, name: &str) -> Value {
        let mut specs = self.specs();
        specs.retain(|spec| spec["name"] == name && spec["backend"] == "jupyter");
        assert_eq!(specs.len(), 1, "{specs:?}");
        specs.remove(0)
    }
}
