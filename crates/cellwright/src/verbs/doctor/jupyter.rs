//! Could kernels of Jupyter's be used? Nothing else needs them, so nothing here is an error.

use std::path::{Path, PathBuf};

use cellwright_jupyter::kernelspec::KernelspecError;
use cellwright_kernel::python::{self, Interpreter};

use super::{Finding, Level};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::ipykernel::{self, IpykernelStatus, install_command};
use crate::kernels::installed::{KernelProblem, list_installed};
use crate::kernels::{self, jupyter};
use crate::runtime_dir;
use crate::settings::Settings;

/// Looks at the kernels that are installed, and at what is needed to use them.
pub(super) fn check(
    named: Option<&Path>,
    cwd: &Path,
    engine: &Engine,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let explicit = kernels::named_interpreter(named, settings).python;
    let interpreter = python::resolve(&kernels::interpreter_search(explicit, cwd)).ok();
    let env = kernels::kernel_env(engine, settings, interpreter.as_ref());
    let places = jupyter::jupyter_paths(interpreter.as_ref(), &env);
    let program = interpreter.as_ref().map(|found| found.program.as_path());
    let offers = list_installed(&places, &env, program, settings.python.skip_check)?;
    let good: Vec<&str> = offers
        .iter()
        .filter(|offer| offer.problem.is_none())
        .map(|offer| offer.name.as_str())
        .collect();
    findings.push(count(&good));
    for offer in &offers {
        if let Some(trouble) = &offer.problem {
            findings.push(broken(&offer.name, &offer.folder, trouble));
        }
    }
    if let Some(interpreter) = interpreter.filter(|_| !settings.python.skip_check) {
        findings.extend(of_interpreter(&interpreter, &env)?);
    }
    findings.push(runtime(&jupyter::runtime_path(&places)));
    findings.push(sockets());
    Ok(())
}

fn count(good: &[&str]) -> Finding {
    let (level, text) = match good {
        [] => (
            Level::Note,
            "no kernels of Jupyter's can be used here".to_owned(),
        ),
        [one] => (Level::Ok, format!("1 kernel of Jupyter's: {one}")),
        several => (
            Level::Ok,
            format!(
                "{} kernels of Jupyter's: {}",
                several.len(),
                several.join(", ")
            ),
        ),
    };
    Finding {
        code: "jupyter",
        level,
        text,
        next: None,
    }
}

fn broken(name: &str, folder: &Path, trouble: &KernelProblem) -> Finding {
    let place = folder.display();
    let next = match trouble {
        KernelProblem::NoIpykernel { python } => install_command(python),
        KernelProblem::Kernelspec(KernelspecError::NoProgram { .. }) => {
            format!("install that program, or remove {place}")
        }
        KernelProblem::Kernelspec(_) => format!("mend {place}/kernel.json, or remove {place}"),
        KernelProblem::PythonFailed { .. } => format!("mend that Python, or remove {place}"),
    };
    Finding {
        code: "kernelspec-broken",
        level: Level::Warning,
        text: format!("the kernel `{name}` cannot be started: {trouble}"),
        next: Some(next),
    }
}

/// Whether the interpreter of choice could be a kernel of Jupyter's.
fn of_interpreter(
    interpreter: &Interpreter,
    env: &[(std::ffi::OsString, std::ffi::OsString)],
) -> Result<Option<Finding>, Failure> {
    let python = interpreter.program.clone();
    let answers = ipykernel::query_status(std::slice::from_ref(&python), env)?;
    let program = python.display();
    Ok(match answers.into_iter().next() {
        Some(IpykernelStatus::Installed { version }) => Some(Finding {
            code: "ipykernel",
            level: Level::Ok,
            text: format!("ipykernel {version} in {program}"),
            next: None,
        }),
        Some(IpykernelStatus::Missing) => Some(Finding {
            code: "no-ipykernel",
            level: Level::Note,
            text: format!("{program} has no ipykernel, which only `--backend jupyter` needs"),
            next: Some(install_command(&python)),
        }),
        // What is wrong with it is told already.
        _ => None,
    })
}

/// Whether a kernel can be listed for other programs.
fn runtime(folder: &Path) -> Finding {
    let shown = folder.display();
    // What is not there is made, so what counts is the folder above it.
    let there = folder.ancestors().find(|folder| folder.exists());
    let tried = there.map(tempfile::tempfile_in);
    match tried {
        Some(Err(error)) => Finding {
            code: "jupyter-runtime",
            level: Level::Warning,
            text: format!("running kernels cannot be listed in {shown}: {error}"),
            next: Some("mend the folder, or name another in JUPYTER_RUNTIME_DIR".to_owned()),
        },
        _ => Finding {
            code: "jupyter-runtime",
            level: Level::Ok,
            text: format!("running kernels are listed in {shown}"),
            next: None,
        },
    }
}

/// Whether sockets can be files.
fn sockets() -> Finding {
    let folders: Vec<PathBuf> = runtime_dir::kernel_socket_dir_candidates();
    match folders.first() {
        Some(folder) => Finding {
            code: "jupyter-sockets",
            level: Level::Ok,
            text: format!("sockets are in {}", folder.display()),
            next: None,
        },
        None => Finding {
            code: "jupyter-sockets",
            level: Level::Note,
            text: "every folder of ours has too long a path for sockets: kernels are reached over \
                   loopback ports"
                .to_owned(),
            next: Some("name a shorter one in CELLWRIGHT_HOST_DIR".to_owned()),
        },
    }
}
