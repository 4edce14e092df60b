//! Kernels of Jupyter's: where they are installed, which one is meant, and what it gets.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cellwright_jupyter::connection::Connection;
use cellwright_jupyter::kernelspec::{self, Kernelspec};
use cellwright_jupyter::places::{Places, Search};
use cellwright_kernel::backend::jupyter::{JupyterSpec, Source};
use cellwright_kernel::python::{self, Interpreter};
use cellwright_kernel::{KernelError, environment};

use super::chosen::{Chosen, Spec, Within};
use super::ipykernel;
use crate::engine::Engine;
use crate::env;
use crate::failure::{Failure, Kind};
use crate::host::folder::{self, Folder};
use crate::settings::Settings;

/// What the name of a kernel begins with that runs already and is not ours.
pub(crate) const EXISTING: &str = "existing:";

/// How the labels of kernels begin that are started.
pub(super) const PREFIX: &str = "jupyter:";

/// Below a folder of ours: where the sockets of kernels are.
const SOCKETS: &str = "kernels";

/// How many bytes the name of a socket takes in there.
const SOCKET_NAME: usize = 40;

/// How many connection files are listed for somebody who named one that is not there.
const LISTED: usize = 5;

/// Whether a name is that of the Python kernel that every Jupyter has.
pub(super) fn is_python(name: &str) -> bool {
    ["python3", "python"].contains(&name.to_lowercase().as_str())
}

/// Jupyter's folders, seen from an interpreter that has these variables.
pub(crate) fn places(interpreter: Option<&Interpreter>, env: &[(OsString, OsString)]) -> Places {
    let folder = |name| env::value(name).map(PathBuf::from);
    let mut prefixes: Vec<PathBuf> = Vec::new();
    let own = interpreter.and_then(|interpreter| prefix(interpreter, env));
    let around = [env::VIRTUAL_ENV, env::CONDA_PREFIX].map(folder);
    for prefix in std::iter::once(own).chain(around).flatten() {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    Places::new(&Search {
        jupyter_path: env::value(env::JUPYTER_PATH)
            .map(|path| folders(&path))
            .unwrap_or_default(),
        data_dir: folder(env::JUPYTER_DATA_DIR),
        runtime_dir: folder(env::JUPYTER_RUNTIME_DIR),
        xdg_data_home: folder(env::XDG_DATA_HOME),
        home: folder(env::HOME),
        user_base: folder(env::PYTHONUSERBASE),
        prefixes,
        prefer_env: env::value(env::JUPYTER_PREFER_ENV_PATH)
            .map(|value| Search::is_on(&value.to_string_lossy())),
    })
}

/// The folder that an interpreter is installed in: its `sys.prefix`.
fn prefix(interpreter: &Interpreter, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    if let Some(environment) = &interpreter.environment {
        return Some(environment.clone());
    }
    // Without an environment, what counts is where the link to it leads.
    let program = interpreter.program.canonicalize().ok()?;
    let folder = program.parent()?.parent()?;
    if ipykernel::libraries(folder).is_empty() {
        // A script that starts the real one, as version managers have them.
        return ipykernel::prefix(&interpreter.program, env);
    }
    Some(folder.to_owned())
}

fn folders(path: &OsStr) -> Vec<PathBuf> {
    let folders = std::env::split_paths(path);
    folders
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

/// The folder for the sockets of kernels, made if it is not there; ours alone. None: they must be reached
/// in another way.
pub(crate) fn sockets() -> Option<PathBuf> {
    let make = |path: PathBuf| {
        let parent = Folder::make(path.parent()?.to_owned()).ok()?;
        let folder = Folder::make(parent.file(SOCKETS)).ok()?;
        Some(folder.path().to_owned())
    };
    socket_folders().into_iter().find_map(make)
}

/// Where the sockets of kernels could be, in order of preference.
pub(crate) fn socket_folders() -> Vec<PathBuf> {
    let all = folder::candidates().into_iter();
    let mut all: Vec<PathBuf> = all.map(|folder| folder.join(SOCKETS)).collect();
    all.retain(|folder| folder.as_os_str().len() + SOCKET_NAME <= folder::LONGEST_SOCKET);
    all
}

/// Where running kernels are listed.
pub(crate) fn runtime(places: &Places) -> PathBuf {
    // Whoever has no home has no Jupyter that would look for them.
    let nobodys = || folder::choose().join("jupyter");
    places.runtime.clone().unwrap_or_else(nobodys)
}

/// Where programs are looked for, in the environment of a kernel.
pub(crate) fn search_path(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let path = env.iter().find(|(name, _)| name == env::PATH);
    path.map(|(_, value)| folders(value)).unwrap_or_default()
}

/// A kernel to start: the kernelspec of that name, or ipykernel; `python` is the flag.
pub(super) fn started(
    engine: &Engine,
    settings: &Settings,
    name: Option<&str>,
    python: Option<&Path>,
    cwd: &Path,
) -> Result<Chosen, Failure> {
    let named = super::named(python, settings).python.is_some();
    let interpreter = match super::interpreter(settings, python, cwd) {
        Ok(interpreter) => Some(interpreter),
        // Most kernels need no Python. Whoever names one wants that, or to be told.
        Err(failure) if named || name.is_none() => return Err(failure),
        Err(_) => None,
    };
    let mut env = super::variables(engine, settings, interpreter.as_ref());
    let places = places(interpreter.as_ref(), &env);
    let program = interpreter.map(|interpreter| interpreter.program);
    let kernelspec = find(&places, name, program.as_deref())?;
    let broken = |fault| KernelError::BrokenKernelspec {
        name: kernelspec.name.clone(),
        fault,
    };
    let started = kernelspec
        .check(&search_path(&env), program.as_deref())
        .map_err(broken)?;
    // A kernel that is installed in an environment of its own lives in that.
    if let Ok(own) = python::resolve(&super::search(Some(&started), cwd)) {
        environment::lead_with(&mut env, &own);
    }
    let label = match (name, &program) {
        (Some(_), Some(program)) if named => {
            format!("{PREFIX}{}:{}", kernelspec.name, program.display())
        }
        (None, Some(program)) => format!("{PREFIX}{}", program.display()),
        _ => format!("{PREFIX}{}", kernelspec.name),
    };
    let source = Source::Start {
        kernelspec: Box::new(kernelspec),
        python: program,
    };
    Ok(chosen(engine, settings, source, env, cwd, &places, label))
}

/// The kernelspec that is meant.
fn find(
    places: &Places,
    name: Option<&str>,
    python: Option<&Path>,
) -> Result<Kernelspec, KernelError> {
    let Some(name) = name else {
        return Ok(Kernelspec::ipykernel(
            python.unwrap_or(Path::new("python3")),
        ));
    };
    match (kernelspec::find(places, name), python) {
        (Ok(listed), _) => listed.spec.map_err(|fault| KernelError::BrokenKernelspec {
            name: listed.name,
            fault,
        }),
        // Every Jupyter has this one, installed or not.
        (Err(_), Some(python)) if is_python(name) => Ok(Kernelspec::ipykernel(python)),
        (Err(missing), _) => Err(KernelError::NoKernelspec {
            name: missing.name,
            available: missing.available,
            searched: missing.searched,
        }),
    }
}

/// A kernel that runs already, by its connection file.
pub(super) fn existing(
    engine: &Engine,
    settings: &Settings,
    given: &Path,
    cwd: &Path,
) -> Result<Chosen, Failure> {
    let places = places(None, &[]);
    let connection_file = connection_file(given, &runtime(&places))?;
    // Whoever names the wrong file should know before anything is started.
    Connection::read(&connection_file).map_err(|source| KernelError::Connection { source })?;
    let env = super::variables(engine, settings, None);
    let label = format!("{EXISTING}{}", connection_file.display());
    let source = Source::Existing { connection_file };
    Ok(chosen(engine, settings, source, env, cwd, &places, label))
}

fn chosen(
    engine: &Engine,
    settings: &Settings,
    source: Source,
    env: Vec<(OsString, OsString)>,
    cwd: &Path,
    places: &Places,
    label: String,
) -> Chosen {
    let spec = JupyterSpec {
        source,
        cwd: cwd.to_owned(),
        env,
        supervisor: super::supervisor_of_own(),
        runtime: runtime(places),
        // Made by whoever starts it.
        sockets: Vec::new(),
        staging: engine.staging.clone(),
        transport: settings.kernel.transport,
        start_timeout: super::start_timeout(settings),
        interrupt_grace: super::interrupt_grace(settings),
    };
    Chosen {
        spec: Spec::Jupyter(spec),
        label,
        within: Within::This,
    }
}

/// The file that is meant: a path, or a name in the folder where running kernels are listed.
fn connection_file(given: &Path, runtime: &Path) -> Result<PathBuf, Failure> {
    let here = std::path::absolute(given)?;
    if here.is_file() {
        // The same kernel by whatever way one came to it.
        return Ok(here.canonicalize().unwrap_or(here));
    }
    let mut failure = Failure::new(
        Kind::BadFile,
        format!("There is no connection file {}", given.display()),
    );
    if given.components().count() == 1 {
        let name = given.to_string_lossy();
        let names = [
            name.to_string(),
            format!("{name}.json"),
            format!("kernel-{name}.json"),
        ];
        let found = names.iter().map(|name| runtime.join(name));
        if let Some(found) = found.into_iter().find(|path| path.is_file()) {
            return Ok(found);
        }
        let cause = format!("neither here nor in {}", runtime.display());
        failure.causes.push(cause);
    }
    let listed = listed(runtime);
    if listed.is_empty() {
        return Err(failure.hint("`%connect_info` in a running kernel prints the name of its file"));
    }
    Err(failure.hint(format!(
        "in {}, the latest first: {}",
        runtime.display(),
        listed.join(", ")
    )))
}

/// The latest connection files.
fn listed(runtime: &Path) -> Vec<String> {
    let entries = fs::read_dir(runtime).into_iter().flatten().flatten();
    let mut files: Vec<(SystemTime, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_one = name.starts_with("kernel-")
                && Path::new(&name).extension() == Some(OsStr::new("json"));
            let time = entry.metadata().ok()?.modified().ok()?;
            is_one.then_some((time, name))
        })
        .collect();
    files.sort_by(|one, other| other.cmp(one));
    files.truncate(LISTED);
    files.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_file_is_a_path_or_a_name_that_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let runtime = folder.join("runtime");
        fs::create_dir(&runtime).unwrap();
        let file = runtime.join("kernel-12.json");
        fs::write(&file, "").unwrap();
        for given in [
            file.as_path(),
            Path::new("kernel-12.json"),
            Path::new("kernel-12"),
            Path::new("12"),
        ] {
            assert_eq!(connection_file(given, &runtime).unwrap(), file, "{given:?}");
        }
        let link = folder.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(connection_file(&link, &runtime).unwrap(), file);
        let failure = connection_file(Path::new("13"), &runtime).unwrap_err();
        assert!(
            failure.hints[0].ends_with("first: kernel-12.json"),
            "{failure:?}"
        );
        // A path is never looked for anywhere else.
        assert!(connection_file(Path::new("./12"), &runtime).is_err());
        assert!(connection_file(&folder.join("12"), &runtime).is_err());
    }
}
