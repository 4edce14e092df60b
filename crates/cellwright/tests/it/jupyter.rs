//! Jupyter kernels: kernelspecs, selection of a kernel, and code on ipykernel.

mod ipykernel;
mod kernel_selection;
mod kernelspecs;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::context::{CommandOutput, Context};

/// A context with its own kernelspecs. They have precedence over kernelspecs of the machine.
struct KernelspecFixture {
    context: Context,
}

impl KernelspecFixture {
    fn new() -> Self {
        Self {
            context: Context::new(),
        }
    }

    /// The directory of a kernelspec.
    fn dir(&self, name: &str) -> PathBuf {
        self.context.path("jupyter/kernels").join(name)
    }

    /// Installs a kernelspec with this `kernel.json`.
    fn install(&self, name: &str, content: &str) {
        fs::create_dir_all(self.dir(name)).unwrap();
        fs::write(self.dir(name).join("kernel.json"), content).unwrap();
    }

    /// Installs a kernelspec with this command line.
    fn install_with_argv(&self, name: &str, language: &str, argv: &[&str]) {
        let spec = json!({"argv": argv, "display_name": name, "language": language});
        self.install(name, &spec.to_string());
    }

    /// Creates a script. Returns its path.
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

    /// The entries of `kernels specs` for the kernelspecs of the fixture and for the runner.
    fn specs(&self) -> Vec<Value> {
        let specs = self.run(&["kernels", "specs", "--json"]).exits(0).json();
        let mut specs = specs["specs"].as_array().unwrap().clone();
        let here = self.context.path("jupyter").display().to_string();
        specs.retain(|spec| {
            let dir = spec["directory"].as_str();
            dir.is_none_or(|dir| dir.starts_with(&here))
        });
        specs
    }

    /// The entry of `kernels specs` for one kernelspec.
    fn spec(&self, name: &str) -> Value {
        let mut specs = self.specs();
        specs.retain(|spec| spec["name"] == name && spec["backend"] == "jupyter");
        assert_eq!(specs.len(), 1, "{specs:?}");
        specs.remove(0)
    }
}
