//! Whether an interpreter can be a kernel of Jupyter's, and how to make it one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::task::JoinSet;

use crate::env;

/// How long an interpreter may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says which version there is, or nothing. Loads nothing of it: that would take a second.
const LOOK: &str = "\
import importlib.util
if importlib.util.find_spec('ipykernel_launcher'):
    try:
        from importlib.metadata import version
        print(version('ipykernel'))
    except Exception:
        print('of unknown version')
";

/// What an interpreter said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ipykernel {
    There {
        version: String,
    },
    Missing,
    /// It could not be asked.
    Unknown {
        why: String,
    },
}

/// The folder that an interpreter says it is installed in.
pub(super) fn prefix(python: &Path, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let runtime = runtime().ok()?;
    let command = command(python, "import sys; print(sys.prefix)", env);
    let answer = runtime.block_on(ask(command)).ok()?;
    Some(PathBuf::from(answer))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Asks interpreters, all at once, in the environment that a kernel would have. The answers come in the
/// order of the questions.
pub(crate) fn look(
    pythons: &[PathBuf],
    env: &[(OsString, OsString)],
) -> io::Result<Vec<Ipykernel>> {
    runtime()?.block_on(async {
        let mut asked = JoinSet::new();
        for (at, python) in pythons.iter().enumerate() {
            let command = command(python, LOOK, env);
            asked.spawn(async move { (at, ask(command).await) });
        }
        let mut answers = asked.join_all().await;
        answers.sort_by_key(|(at, _)| *at);
        let answers = answers.into_iter().map(|(_, answer)| match answer {
            Ok(version) if version.is_empty() => Ipykernel::Missing,
            Ok(version) => Ipykernel::There { version },
            Err(why) => Ipykernel::Unknown { why },
        });
        Ok(answers.collect())
    })
}

fn command(python: &Path, code: &str, env: &[(OsString, OsString)]) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-c", code])
        .env_clear()
        .envs(env.iter().cloned())
        // A file that happens to have the name of a module is not it.
        .current_dir("/")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// What it prints, or why there is nothing.
async fn ask(mut command: Command) -> Result<String, String> {
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("it does not answer".to_owned()),
    };
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().rfind(|line| !line.trim().is_empty());
        return Err(last.map_or_else(|| output.status.to_string(), str::to_owned));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.trim().to_owned())
}

/// The command that installs it for an interpreter, as it can be typed.
pub(crate) fn install_command(python: &Path) -> String {
    let uv = env::value(env::PATH).is_some_and(|path| {
        let mut folders = std::env::split_paths(&path);
        folders.any(|folder| folder.join("uv").is_file())
    });
    command_for(python, uv)
}

fn command_for(python: &Path, uv: bool) -> String {
    let typed = quoted(python);
    let pip = "-m pip install ipykernel";
    let place = Place::of(python);
    if place.managed {
        // Whoever installed it wants to be the only one who installs into it.
        return format!("{typed} -m venv .venv && .venv/bin/python {pip}");
    }
    if place.pip {
        return format!("{typed} {pip}");
    }
    if uv {
        return format!("uv pip install --python {typed} ipykernel");
    }
    format!("{typed} -m ensurepip && {typed} {pip}")
}

/// The folders of Python's own library below a prefix.
pub(super) fn libraries(prefix: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(prefix.join("lib")).into_iter().flatten();
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect()
}

/// What the files around an interpreter say.
struct Place {
    pip: bool,
    /// Whether its packages are those of the system.
    managed: bool,
}

impl Place {
    fn of(python: &Path) -> Self {
        let folder = |program: &Path| Some(program.parent()?.parent()?.to_owned());
        let mut prefix = folder(python).unwrap_or_default();
        let is_environment = prefix.join("pyvenv.cfg").is_file();
        if !is_environment && let Ok(real) = python.canonicalize() {
            prefix = folder(&real).unwrap_or_default();
        }
        let versions = libraries(&prefix);
        let has = |name: &str| versions.iter().any(|folder| folder.join(name).exists());
        Self {
            // Where nothing is as expected (a shim, say), the usual way is the best guess.
            pip: versions.is_empty() || has("site-packages/pip") || has("dist-packages/pip"),
            managed: !is_environment && has("EXTERNALLY-MANAGED"),
        }
    }
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    let text = path.to_string_lossy();
    if text.chars().all(plain) && path.as_os_str() != OsStr::new("") {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An installation with these files in it.
    fn installation(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for file in ["bin/python"].iter().chain(files) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let python = folder.path().join("bin/python");
        (folder, python)
    }

    #[test]
    fn the_command_fits_the_interpreter() {
        let pip = "lib/python3.12/site-packages/pip";
        let other = "lib/python3.12/site-packages/other";
        let managed = "lib/python3.12/EXTERNALLY-MANAGED";
        let command = |files: &[&str], uv: bool| {
            let (_folder, python) = installation(files);
            let typed = command_for(&python, uv);
            typed.replace(&python.display().to_string(), "PYTHON")
        };
        let with_pip = "PYTHON -m pip install ipykernel";
        assert_eq!(command(&[], true), with_pip);
        assert_eq!(command(&[pip], true), with_pip);
        assert_eq!(command(&["pyvenv.cfg", pip], false), with_pip);
        assert_eq!(command(&["pyvenv.cfg", managed, pip], false), with_pip);
        assert_eq!(command(&["lib/python3/dist-packages/pip"], false), with_pip);
        assert_eq!(
            command(&["pyvenv.cfg", other], true),
            "uv pip install --python PYTHON ipykernel"
        );
        assert_eq!(
            command(&["pyvenv.cfg", other], false),
            "PYTHON -m ensurepip && PYTHON -m pip install ipykernel"
        );
        assert_eq!(
            command(&[managed, pip], true),
            "PYTHON -m venv .venv && .venv/bin/python -m pip install ipykernel"
        );
    }

    #[test]
    fn a_path_is_quoted_only_if_it_must_be() {
        assert_eq!(
            quoted(Path::new("/usr/bin/python3.12")),
            "/usr/bin/python3.12"
        );
        assert_eq!(quoted(Path::new("/my env/it's")), r"'/my env/it'\''s'");
    }
}
