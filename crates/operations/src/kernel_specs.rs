//! Lists the kernels that can be started.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::installed::{InstalledKernel, list_installed};
use cellwright_engine::kernels::{self, NamedInterpreter, jupyter};
use cellwright_engine::project_interpreter::ProjectInterpreter;
use cellwright_kernel::KernelError;
use cellwright_kernel::python::{self, Interpreter, Origin, RejectedInterpreter};
use schemars::JsonSchema;
use serde::Serialize;

/// A kernel that can be started, or the reason why not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelSpecEntry {
    /// Name for `--kernel`.
    pub name: String,
    /// Name of the backend.
    pub backend: &'static str,
    /// Programming language.
    pub language: Option<String>,
    /// Name for people.
    display_name: Option<String>,
    /// Whether it can be started.
    pub ok: bool,
    /// Why it cannot be started.
    pub reason: Option<String>,
    /// The command line that starts it.
    argv: Vec<String>,
    /// Path of the program, as it was found.
    interpreter: Option<String>,
    /// Why the interpreter was selected.
    pub origin: Option<String>,
    /// Directory of the kernelspec.
    pub directory: Option<String>,
    /// How it is interrupted.
    #[schemars(with = "Option<String>", extend("enum" = ["signal", "message", null]))]
    interrupt_mode: Option<cellwright_jupyter::kernelspec::InterruptMode>,
    #[serde(skip)]
    pub starts: String,
}

/// The kernels that can be started.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelSpecList {
    /// The kernels, the built-in runner first.
    pub specs: Vec<KernelSpecEntry>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// Lists all kernels, the built-in runner first.
pub fn list_kernel_specs(
    cwd: Option<&Path>,
    python: Option<&Path>,
    engine: &Engine,
) -> Result<KernelSpecList, Failure> {
    let cwd = kernels::working_directory(cwd)?;
    let settings = engine.settings(&cwd)?;
    let mut notices = settings.notices();
    let named = kernels::named_interpreter(python, &settings);
    let found = python::resolve(&kernels::interpreter_search(engine, named.python, &cwd));
    let interpreter = found.as_ref().ok();
    let env = kernels::kernel_env(engine, &settings, interpreter);
    let program = interpreter.map(|interpreter| interpreter.program.as_path());
    let places = jupyter::jupyter_paths(interpreter, &env);
    let unknown = ProjectInterpreter::unknown(engine, interpreter);
    let skip_check = settings.python.skip_check;
    let offers = list_installed(&places, &env, program, skip_check, unknown.as_ref())?;
    let mut specs = vec![runner(&found, &named)];
    specs.extend(offers.iter().map(row));
    notices.extend(unknown.map(|unknown| unknown.not_started_notice()));
    Ok(KernelSpecList { specs, notices })
}

/// The names and titles of the installed kernelspecs, without a check whether they can be started.
pub fn kernel_names(engine: &Engine) -> Result<Vec<(String, String)>, Failure> {
    let cwd = kernels::working_directory(None)?;
    let settings = engine.settings(&cwd)?;
    let named = kernels::named_interpreter(None, &settings);
    let found = python::resolve(&kernels::interpreter_search(engine, named.python, &cwd)).ok();
    let env = kernels::kernel_env(engine, &settings, found.as_ref());
    let places = jupyter::jupyter_paths(found.as_ref(), &env);
    let entries = cellwright_jupyter::kernelspec::list(&places).into_iter();
    Ok(entries
        .map(|entry| {
            let title = entry.spec.map(|spec| spec.display_name);
            (entry.name, title.unwrap_or_default())
        })
        .collect())
}

/// The built-in runner.
fn runner(
    found: &Result<Interpreter, Vec<RejectedInterpreter>>,
    named: &NamedInterpreter<'_>,
) -> KernelSpecEntry {
    let origin = |interpreter: &Interpreter| match &interpreter.origin {
        Origin::Explicit => match &named.origin {
            cellwright_engine::settings::Origin::Flag(flag) => (*flag).to_owned(),
            origin => format!("python.interpreter from {origin}"),
        },
        Origin::VirtualEnv => "VIRTUAL_ENV".to_owned(),
        Origin::Conda => "CONDA_PREFIX".to_owned(),
        Origin::Project { dir } => format!("environment in {}", dir.display()),
        Origin::Managed => "managed environment".to_owned(),
        Origin::Path => "PATH".to_owned(),
    };
    let program = found.as_ref().ok();
    let program = program.map(|interpreter| interpreter.program.display().to_string());
    let missing = KernelError::NoPython {
        rejected: Vec::new(),
    };
    KernelSpecEntry {
        name: "python3".to_owned(),
        backend: "runner",
        language: Some("python".to_owned()),
        display_name: Some("Python 3".to_owned()),
        ok: found.is_ok(),
        reason: found.is_err().then(|| missing.to_string()),
        argv: program.iter().cloned().collect(),
        starts: program.clone().unwrap_or_default(),
        interpreter: program,
        origin: found.as_ref().ok().map(origin),
        directory: None,
        interrupt_mode: None,
    }
}

/// A Jupyter kernel.
fn row(offer: &InstalledKernel) -> KernelSpecEntry {
    let kernelspec = offer.kernelspec.as_ref();
    let path = |path: &Path| path.display().to_string();
    KernelSpecEntry {
        name: offer.name.clone(),
        backend: "jupyter",
        language: kernelspec
            .map(|spec| spec.language.clone())
            .filter(|language| !language.is_empty()),
        display_name: kernelspec.map(|spec| spec.display_name.clone()),
        ok: offer.problem.is_none(),
        reason: offer.problem.as_ref().map(ToString::to_string),
        argv: kernelspec.map(|spec| spec.argv.clone()).unwrap_or_default(),
        interpreter: offer.program.as_deref().map(path),
        origin: None,
        directory: Some(path(&offer.dir)),
        interrupt_mode: kernelspec.map(|spec| spec.interrupt),
        starts: offer.command_summary(),
    }
}
