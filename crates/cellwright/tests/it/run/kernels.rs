//! Which kernel and which interpreter `run` and `check` use, and that they say so.

use std::process::Command;

use super::{RunFixture, code, python_with_nbformat};
use crate::context::CommandOutput;

/// Prints whether ipykernel runs the code.
const IS_IPYKERNEL: &str = "import sys\nprint('ipykernel' in sys.modules)";

fn output(fixture: &RunFixture, mut command: Command) -> CommandOutput {
    CommandOutput::new(&fixture.host.context, &command.output().unwrap())
}

/// A command in the environment of the tests, which has ipykernel.
fn in_environment(fixture: &RunFixture, arguments: &[&str]) -> Command {
    let mut command = fixture.host.context.command(arguments);
    let python = python_with_nbformat();
    command.env("VIRTUAL_ENV", python.parent().unwrap().parent().unwrap());
    command
}

#[test]
fn a_notebook_without_a_kernel_runs_on_the_same_kernel_every_time() {
    let fixture = RunFixture::with(&[code(IS_IPYKERNEL)]);
    fixture.rewrite(|notebook| {
        notebook["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("kernelspec");
    });
    for _ in 0..2 {
        let ran = output(&fixture, in_environment(&fixture, &["run", "a.ipynb"])).exits(0);
        assert_eq!(fixture.outputs(), ["True"]);
        let interpreter = python_with_nbformat();
        let bin = interpreter.parent().unwrap().display();
        let place = format!(" s on python3 (jupyter), {bin}/python");
        assert!(ran.stderr.contains(&place), "{}", ran.stderr);
    }
    let checked = output(&fixture, in_environment(&fixture, &["check", "a.ipynb"])).exits(0);
    assert!(
        checked.stderr.contains("ran on python3 (jupyter), /"),
        "{}",
        checked.stderr
    );
    // `eval` without a notebook stays on the runner, and uses the kernel of a session.
    let eval = in_environment(&fixture, &["eval", IS_IPYKERNEL]);
    assert_eq!(output(&fixture, eval).exits(0).stdout, "False\n");
    for python in [None, Some(python_with_nbformat())] {
        let session = if python.is_some() { "named" } else { "found" };
        let run = |arguments: &[&str]| {
            let mut command = in_environment(&fixture, arguments);
            command.args(["--session", session]);
            if let Some(python) = &python {
                command.env("CELLWRIGHT_PYTHON", python);
            }
            output(&fixture, command).exits(0)
        };
        run(&["run", "a.ipynb"]);
        assert_eq!(run(&["eval", IS_IPYKERNEL]).stdout, "True\n", "{session}");
    }
}

#[test]
fn a_python_notebook_runs_on_the_runner_if_there_is_no_ipykernel() {
    let fixture = RunFixture::with(&[code(IS_IPYKERNEL)]);
    let venv = fixture.path("venv");
    let created = Command::new(python_with_nbformat())
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status()
        .unwrap();
    assert!(created.success());
    for keep_kernel in [true, false] {
        if !keep_kernel {
            fixture.rewrite(|notebook| {
                notebook["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove("kernelspec");
            });
        }
        let ran = fixture.run_command(&["run", "a.ipynb"]).exits(0);
        assert_eq!(fixture.outputs(), ["False"]);
        let place = format!(" s on python3 (runner), {}/bin/python3\n", venv.display());
        assert!(ran.stderr.contains(&place), "{}", ran.stderr);
    }
    // In a directory below it, and outside of a repository.
    std::fs::create_dir(fixture.path("deep")).unwrap();
    fixture.notebook("deep/b.ipynb", &[code("import no_such_module")]);
    let failed = fixture.run_command(&["run", "deep/b.ipynb"]).exits(1);
    let hint = format!(
        "hint: `no_such_module` is not installed for {}/bin/python3: `",
        venv.display()
    );
    assert!(failed.stderr.contains(&hint), "{}", failed.stderr);
    assert!(
        failed
            .stderr
            .contains("`--python` selects another interpreter"),
        "{}",
        failed.stderr
    );
}
