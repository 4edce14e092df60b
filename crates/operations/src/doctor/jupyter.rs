//! Checks the Jupyter kernels. No finding is an error, because code runs without them.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::ipykernel::{self, IpykernelStatus, install_command};
use cellwright_engine::kernels::installed::{KernelProblem, list_installed};
use cellwright_engine::kernels::{self, jupyter};
use cellwright_engine::project_interpreter::ProjectInterpreter;
use cellwright_engine::runtime_dir;
use cellwright_engine::settings::Settings;
use cellwright_jupyter::connection::SocketDir;
use cellwright_jupyter::kernelspec::KernelspecError;
use cellwright_kernel::python::{self, Interpreter};
use cellwright_stdext::private::temporary;

use crate::finding::{Finding, Severity};

/// Checks the installed kernels, ipykernel and the directories that kernels use.
pub(super) fn check(
    named: Option<&Path>,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let explicit = kernels::named_interpreter(named, settings).python;
    let interpreter = python::resolve(&kernels::interpreter_search(engine, explicit, cwd)).ok();
    let env = kernels::kernel_env(engine, settings, interpreter.as_ref());
    let paths = jupyter::jupyter_paths(interpreter.as_ref(), &env);
    let program = interpreter.as_ref().map(|found| found.program.as_path());
    let unknown = ProjectInterpreter::unknown(engine, interpreter.as_ref());
    let skip_check = settings.python.skip_check;
    let installed = list_installed(&paths, &env, program, skip_check, unknown.as_ref())?;
    let usable: Vec<&str> = installed
        .iter()
        .filter(|kernel| kernel.problem.is_none())
        .map(|kernel| kernel.name.as_str())
        .collect();
    findings.push(count_usable(&usable));
    for kernel in &installed {
        if let Some(problem) = &kernel.problem {
            findings.push(broken(&kernel.name, &kernel.dir, problem));
        }
    }
    if let Some(interpreter) = interpreter.filter(|_| !skip_check && unknown.is_none()) {
        findings.extend(check_ipykernel(&interpreter, &env)?);
    }
    findings.push(runtime(&jupyter::runtime_path(&paths)));
    findings.push(sockets());
    Ok(())
}

fn count_usable(usable: &[&str]) -> Finding {
    let (severity, text) = match usable {
        [] => (
            Severity::Note,
            "no Jupyter kernels can be started here".to_owned(),
        ),
        [one] => (Severity::Ok, format!("1 Jupyter kernel: {one}")),
        several => (
            Severity::Ok,
            format!("{} Jupyter kernels: {}", several.len(), several.join(", ")),
        ),
    };
    Finding::new(severity, "jupyter", text)
}

fn broken(name: &str, kernel_dir: &Path, problem: &KernelProblem) -> Finding {
    let dir = kernel_dir.display();
    let next = match problem {
        KernelProblem::NoIpykernel { python } => install_command(python),
        KernelProblem::Kernelspec(KernelspecError::NoProgram { .. }) => {
            format!("install the program, or remove {dir}")
        }
        KernelProblem::Kernelspec(_) => format!("fix {dir}/kernel.json, or remove {dir}"),
        KernelProblem::PythonFailed { .. } => format!("repair this Python, or remove {dir}"),
    };
    Finding::new(
        Severity::Warning,
        "kernelspec-broken",
        format!("the kernel `{name}` cannot be started: {problem}"),
    )
    .next(next)
}

/// Checks whether the selected interpreter has ipykernel.
fn check_ipykernel(
    interpreter: &Interpreter,
    env: &[(std::ffi::OsString, std::ffi::OsString)],
) -> Result<Option<Finding>, Failure> {
    let python = interpreter.program.clone();
    let statuses = ipykernel::query_status(std::slice::from_ref(&python), env)?;
    let program = python.display();
    Ok(match statuses.into_iter().next() {
        Some(IpykernelStatus::Installed { version }) => Some(Finding::new(
            Severity::Ok,
            "ipykernel",
            format!("ipykernel {version} in {program}"),
        )),
        Some(IpykernelStatus::Missing) => Some(
            Finding::new(
                Severity::Note,
                "no-ipykernel",
                format!("{program} has no ipykernel, which only `--backend jupyter` needs"),
            )
            .next(install_command(&python)),
        ),
        // Another finding reports the problem.
        _ => None,
    })
}

/// Checks the directory in which kernels are listed for other programs.
fn runtime(runtime_dir: &Path) -> Finding {
    let shown = runtime_dir.display();
    // A missing directory is created: its closest existing parent must be writable.
    let existing = runtime_dir.ancestors().find(|dir| dir.exists());
    let result = existing.map(temporary::create_file_in);
    match result {
        Some(Err(error)) => Finding::new(
            Severity::Warning,
            "jupyter-runtime",
            format!("running kernels cannot be listed in {shown}: {error}"),
        )
        .next("repair the directory, or name another one in JUPYTER_RUNTIME_DIR"),
        _ => Finding::new(
            Severity::Ok,
            "jupyter-runtime",
            format!("running kernels are listed in {shown}"),
        ),
    }
}

/// Checks whether a private directory for sockets has a short enough path.
fn sockets() -> Finding {
    match SocketDir::find(&runtime_dir::kernel_socket_dirs()) {
        Ok(dir) => Finding::new(
            Severity::Ok,
            "jupyter-sockets",
            format!("sockets are in {}", dir.display()),
        ),
        Err(error) => Finding::new(Severity::Warning, "jupyter-sockets", error.to_string())
            .next("name a directory of yours with a short path in CELLWRIGHT_HOST_DIR"),
    }
}
