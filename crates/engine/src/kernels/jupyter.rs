//! Jupyter kernels: where they are installed, which one a command selects, and how it is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_jupyter::connection::Connection;
use cellwright_jupyter::kernelspec::{self, Kernelspec};
use cellwright_jupyter::paths::{JupyterPaths, PathInputs};
use cellwright_kernel::backend::jupyter::{AttachedSpec, IdentifiedBy, JupyterSpec};
use cellwright_kernel::python::{self, Interpreter, Origin};
use cellwright_kernel::{KernelError, KernelSpec};

use super::selection::{KernelMatch, KernelSelection};
use crate::engine::Engine;
use crate::env;
use crate::environment;
use crate::ipykernel;
use crate::project_interpreter::{ProjectInterpreter, environment_dir};
use crate::runtime_dir;
use crate::settings::Settings;

/// How many connection files an error lists if the named one does not exist.
const LISTED_FILES_MAX: usize = 5;

/// Whether a kernelspec name is that of the Python kernel of every Jupyter installation.
pub(super) fn is_default_python_name(name: &str) -> bool {
    ["python3", "python"].contains(&name.to_lowercase().as_str())
}

/// Jupyter's directories, for an interpreter that runs with these environment variables.
pub fn jupyter_paths(
    interpreter: Option<&Interpreter>,
    env: &[(OsString, OsString)],
) -> JupyterPaths {
    let path = |name| env::value(name).map(PathBuf::from);
    let mut prefixes: Vec<PathBuf> = Vec::new();
    let own = interpreter.and_then(|interpreter| sys_prefix(interpreter, env));
    let active = [env::VIRTUAL_ENV, env::CONDA_PREFIX].map(path);
    for prefix in std::iter::once(own).chain(active).flatten() {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    JupyterPaths::new(&PathInputs {
        jupyter_path: env::value(env::JUPYTER_PATH)
            .map(|path| split_path_list(&path))
            .unwrap_or_default(),
        data_dir: path(env::JUPYTER_DATA_DIR),
        runtime_dir: path(env::JUPYTER_RUNTIME_DIR),
        xdg_data_home: path(env::XDG_DATA_HOME),
        home: path(env::HOME),
        user_base: path(env::PYTHONUSERBASE),
        prefixes,
        prefer_env: env::value(env::JUPYTER_PREFER_ENV_PATH)
            .map(|value| PathInputs::parse_flag(&value.to_string_lossy())),
    })
}

/// The `sys.prefix` of an interpreter.
fn sys_prefix(interpreter: &Interpreter, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    if let Some(environment) = &interpreter.environment {
        return Some(environment.clone());
    }
    if let Origin::Project { .. } = interpreter.origin {
        // Commands that only inspect kernels must not start it.
        return environment_dir(&interpreter.program);
    }
    // Without an environment, the prefix follows from the target of the symbolic link.
    let program = interpreter.program.canonicalize().ok()?;
    let prefix = program.parent()?.parent()?;
    if ipykernel::library_dirs(prefix).is_empty() {
        // A shim of a version manager: a script that starts the interpreter.
        return ipykernel::query_sys_prefix(&interpreter.program, env);
    }
    Some(prefix.to_owned())
}

fn split_path_list(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| !dir.as_os_str().is_empty())
        .collect()
}

/// The directory with the connection files of running kernels.
pub fn runtime_path(paths: &JupyterPaths) -> PathBuf {
    // Without a home directory, no Jupyter server looks for connection files.
    let runtime = paths.runtime_dir.clone();
    runtime.unwrap_or_else(runtime_dir::connection_file_dir)
}

/// The directories in `PATH`, in the environment of a kernel.
pub fn search_path(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let path = env.iter().find(|(name, _)| name == env::PATH);
    path.map(|(_, value)| split_path_list(value))
        .unwrap_or_default()
}

/// Selects a kernel to start: the kernelspec of that name, or ipykernel; `python` is the flag.
pub(super) fn select_kernelspec(
    engine: &Engine,
    settings: &Settings,
    name: Option<&str>,
    python: Option<&Path>,
    cwd: &Path,
) -> Result<KernelSelection, Failure> {
    let named = super::named_interpreter(python, settings).python.is_some();
    let interpreter = match super::resolve_interpreter(engine, settings, python, cwd) {
        Ok(interpreter) => Some(interpreter),
        // Most kernels need no Python. An interpreter that the caller names must exist.
        Err(failure) if named || name.is_none() => return Err(failure),
        Err(_) => None,
    };
    let mut env = super::kernel_env(engine, settings, interpreter.as_ref());
    let paths = jupyter_paths(interpreter.as_ref(), &env);
    let project_interpreter = interpreter.as_ref().and_then(ProjectInterpreter::new);
    let program = interpreter.map(|interpreter| interpreter.program);
    let kernelspec = find_kernelspec(&paths, name, program.as_deref())?;
    let broken = |source| KernelError::BrokenKernelspec {
        name: kernelspec.name.clone(),
        source,
    };
    let kernel_program = kernelspec
        .find_program(&search_path(&env), program.as_deref())
        .map_err(broken)?;
    // The environment that the kernel's program is installed in comes first in `PATH`.
    if let Ok(kernel_python) = python::resolve(&super::interpreter_search(
        engine,
        Some(&kernel_program),
        cwd,
    )) {
        environment::activate(&mut env, &kernel_python);
    }
    let identified_by = match (name, &program) {
        (Some(_), Some(_)) if named => IdentifiedBy::KernelspecAndPython,
        (None, Some(_)) => IdentifiedBy::Python,
        _ => IdentifiedBy::Kernelspec,
    };
    Ok(KernelSelection {
        spec: KernelSpec::Jupyter(JupyterSpec {
            kernelspec: Box::new(kernelspec),
            python: program,
            identified_by,
            env,
            runtime: runtime_path(&paths),
            transport: settings.kernel.transport,
            start_timeout: super::start_timeout(settings),
            interrupt_grace: super::interrupt_grace(settings),
        }),
        accepts: KernelMatch::Exact,
        cwd: cwd.into(),
        project_interpreter,
        notices: Vec::new(),
    })
}

/// Finds a kernelspec by name; without a name it is ipykernel.
fn find_kernelspec(
    paths: &JupyterPaths,
    name: Option<&str>,
    python: Option<&Path>,
) -> Result<Kernelspec, KernelError> {
    let Some(name) = name else {
        return Ok(Kernelspec::ipykernel(
            python.unwrap_or(Path::new("python3")),
        ));
    };
    match (kernelspec::find(paths, name), python) {
        (Ok(entry), _) => entry.spec.map_err(|source| KernelError::BrokenKernelspec {
            name: entry.name,
            source,
        }),
        // Every Jupyter installation has this one, even without a kernelspec file.
        (Err(_), Some(python)) if is_default_python_name(name) => Ok(Kernelspec::ipykernel(python)),
        (Err(missing), _) => Err(KernelError::NoKernelspec {
            name: missing.name,
            available: missing.available,
            searched: missing.searched,
        }),
    }
}

/// Selects a running kernel by its connection file.
pub(super) fn select_existing(
    settings: &Settings,
    path: &Path,
    cwd: &Path,
) -> Result<KernelSelection, Failure> {
    let paths = jupyter_paths(None, &[]);
    let connection_file = find_connection_file(path, &runtime_path(&paths))?;
    // A wrong file is an error before anything starts.
    Connection::read(&connection_file).map_err(|source| KernelError::Connection { source })?;
    Ok(KernelSelection {
        spec: KernelSpec::Attached(AttachedSpec {
            connection_file,
            start_timeout: super::start_timeout(settings),
            interrupt_grace: super::interrupt_grace(settings),
        }),
        accepts: KernelMatch::Exact,
        cwd: cwd.into(),
        project_interpreter: None,
        notices: Vec::new(),
    })
}

/// Finds a connection file by its path, or by its name in the directory of running kernels.
fn find_connection_file(path: &Path, runtime: &Path) -> Result<PathBuf, Failure> {
    let absolute = super::absolute_path(path)?;
    if absolute.is_file() {
        // Every path to one file must give the same id.
        return Ok(absolute.canonicalize().unwrap_or(absolute));
    }
    let mut failure = Failure::new(
        Kind::BadFile,
        format!("Connection file not found: {}", path.display()),
    );
    if path.components().count() == 1 {
        let name = path.to_string_lossy();
        let names = [
            name.to_string(),
            format!("{name}.json"),
            format!("kernel-{name}.json"),
        ];
        let found = names.iter().map(|name| runtime.join(name));
        if let Some(found) = found.into_iter().find(|path| path.is_file()) {
            return Ok(found);
        }
        let cause = format!(
            "it is neither in the working directory nor in {}",
            runtime.display()
        );
        failure.causes.push(cause);
    }
    let recent = recent_connection_files(runtime);
    if recent.is_empty() {
        return Err(failure
            .hint("`%connect_info` in a running kernel prints the name of its connection file"));
    }
    Err(failure.hint(format!(
        "connection files in {}, latest first: {}",
        runtime.display(),
        recent.join(", ")
    )))
}

/// The names of the latest connection files.
fn recent_connection_files(runtime: &Path) -> Vec<String> {
    let entries = fs::read_dir(runtime).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_connection_file = name.starts_with("kernel-")
                && Path::new(&name).extension() == Some(OsStr::new("json"));
            let time = entry.metadata().ok()?.modified().ok()?;
            is_connection_file.then_some((time, name))
        })
        .collect();
    files.sort_by(|one, other| other.cmp(one));
    files.truncate(LISTED_FILES_MAX);
    files.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_file_is_found_by_path_or_by_listed_name() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        let runtime = dir.join("runtime");
        fs::create_dir(&runtime).unwrap();
        let file = runtime.join("kernel-12.json");
        fs::write(&file, "").unwrap();
        for path in [
            file.as_path(),
            Path::new("kernel-12.json"),
            Path::new("kernel-12"),
            Path::new("12"),
        ] {
            assert_eq!(
                find_connection_file(path, &runtime).unwrap(),
                file,
                "{path:?}"
            );
        }
        let link = dir.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(find_connection_file(&link, &runtime).unwrap(), file);
        let failure = find_connection_file(Path::new("13"), &runtime).unwrap_err();
        assert!(
            failure.hints[0]
                .for_command_line()
                .ends_with("first: kernel-12.json"),
            "{failure:?}"
        );
        // A path with a directory is not searched for in the runtime directory.
        assert!(find_connection_file(Path::new("./12"), &runtime).is_err());
        assert!(find_connection_file(&dir.join("12"), &runtime).is_err());
    }
}
