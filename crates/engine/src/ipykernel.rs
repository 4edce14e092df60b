//! Checks whether an interpreter has ipykernel, and how to install it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cellwright_diagnostics::install;
use tokio::process::Command;
use tokio::task::JoinSet;

pub use cellwright_diagnostics::install::{library_dirs, shell_quoted};

use crate::env;

/// How long an interpreter may take to answer a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Prints the version of ipykernel, or nothing. It does not import ipykernel, which would take a second.
const VERSION_SCRIPT: &str = "\
import importlib.util
if importlib.util.find_spec('ipykernel_launcher'):
    try:
        from importlib.metadata import version
        print(version('ipykernel'))
    except Exception:
        print('of unknown version')
";

/// Whether an interpreter has ipykernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpykernelStatus {
    Installed {
        version: String,
    },
    Missing,
    /// The interpreter could not be run.
    Unknown {
        reason: String,
    },
}

/// Queries an interpreter for its `sys.prefix`.
pub fn query_sys_prefix(python: &Path, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let runtime = runtime().ok()?;
    let command = python_command(python, "import sys; print(sys.prefix)", env);
    let prefix = runtime.block_on(run_query(command)).ok()?;
    Some(PathBuf::from(prefix))
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Asks all interpreters at once, with the environment variables of a kernel. The results are in the order of
/// `pythons`.
pub fn query_status(
    pythons: &[PathBuf],
    env: &[(OsString, OsString)],
) -> io::Result<Vec<IpykernelStatus>> {
    runtime()?.block_on(async {
        let mut queries = JoinSet::new();
        for (index, python) in pythons.iter().enumerate() {
            let command = python_command(python, VERSION_SCRIPT, env);
            queries.spawn(async move { (index, run_query(command).await) });
        }
        let mut results = queries.join_all().await;
        results.sort_by_key(|(index, _)| *index);
        let statuses = results.into_iter().map(|(_, result)| match result {
            Ok(version) if version.is_empty() => IpykernelStatus::Missing,
            Ok(version) => IpykernelStatus::Installed { version },
            Err(reason) => IpykernelStatus::Unknown { reason },
        });
        Ok(statuses.collect())
    })
}

fn python_command(python: &Path, code: &str, env: &[(OsString, OsString)]) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-c", code])
        .env_clear()
        .envs(env.iter().cloned())
        // A file in the working directory could shadow a module.
        .current_dir("/")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs a command. Returns its output, or the reason for its failure.
async fn run_query(mut command: Command) -> Result<String, String> {
    let output = match tokio::time::timeout(QUERY_TIMEOUT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("it does not answer".to_owned()),
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rfind(|line| !line.trim().is_empty());
        return Err(last.map_or_else(|| output.status.to_string(), str::to_owned));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    Ok(stdout.trim().to_owned())
}

/// The shell command that installs ipykernel for an interpreter.
pub fn install_command(python: &Path) -> String {
    install::install_command(python, "ipykernel", has_uv())
}

/// Whether `uv` is on `PATH`.
pub fn has_uv() -> bool {
    env::value(env::PATH).is_some_and(|path| {
        let mut dirs = std::env::split_paths(&path);
        dirs.any(|dir| dir.join("uv").is_file())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates an installation with these files.
    fn installation(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let temp_dir = tempfile::tempdir().unwrap();
        for file in ["bin/python"].iter().chain(files) {
            let path = temp_dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let python = temp_dir.path().join("bin/python");
        (temp_dir, python)
    }

    #[test]
    fn install_command_fits_the_interpreter() {
        let pip = "lib/python3.12/site-packages/pip";
        let other = "lib/python3.12/site-packages/other";
        let managed = "lib/python3.12/EXTERNALLY-MANAGED";
        let command = |files: &[&str], uv: bool| {
            let (_folder, python) = installation(files);
            let command = install::install_command(&python, "ipykernel", uv);
            command.replace(&python.display().to_string(), "PYTHON")
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
    fn paths_are_quoted_only_if_necessary() {
        assert_eq!(
            shell_quoted(Path::new("/usr/bin/python3.12")),
            "/usr/bin/python3.12"
        );
        assert_eq!(
            shell_quoted(Path::new("/my env/it's")),
            r"'/my env/it'\''s'"
        );
    }
}
