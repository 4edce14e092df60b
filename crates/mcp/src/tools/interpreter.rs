//! The argument `python`: which interpreters a client may name.
//!
//! Code that a client sends has the permissions of the user, so this is no barrier against the code. It keeps the promise
//! that arguments lead into the roots: a call starts no other program than a Python interpreter that the user would get on
//! `PATH`, an environment in the roots, or one that the settings allow.

use std::path::{Component, Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::env;
use cellwright_engine::settings::Settings;

use super::super::roots::Roots;
use super::super::server::Server;

/// Returns the interpreter that a call names: an absolute path, or a command.
pub(super) fn interpreter(
    server: &Server,
    given: Option<&str>,
) -> Result<Option<PathBuf>, Failure> {
    let Some(given) = given else {
        return Ok(None);
    };
    let roots = server.roots();
    let base = roots.base()?;
    let settings = server.engine().settings(&base)?;
    let home = env::value(env::HOME).map(PathBuf::from);
    if is_allowed(given, &allowed_interpreters(&settings), home.as_deref()) {
        return Ok(Some(given.into()));
    }
    let is_name = Path::new(given).components().count() == 1 && !given.contains('/');
    if is_name && !base.join(given).exists() {
        return if is_python_name(given) {
            Ok(Some(given.into()))
        } else {
            Err(rejected(
                given,
                "it is not the name of a Python interpreter",
            ))
        };
    }
    resolve(roots, given).map(Some)
}

/// Resolves the path of an interpreter or an environment in the roots.
fn resolve(roots: &Roots, given: &str) -> Result<PathBuf, Failure> {
    let in_roots = |failure: Failure| {
        let cause = failure.causes.into_iter().next();
        rejected(given, &cause.unwrap_or(failure.message))
    };
    if let Ok(dir) = roots.resolve_dir(given) {
        let dir = dir.path();
        let program = ["bin/python3", "bin/python"]
            .map(|name| dir.join(name))
            .into_iter()
            .find(|program| program.symlink_metadata().is_ok());
        return check_program(roots, given, program.as_deref().unwrap_or(dir));
    }
    let path = Path::new(given);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(rejected(given, "it is not a file"));
    };
    let parent = match parent.to_str() {
        Some("") | None => ".",
        Some(parent) => parent,
    };
    let dir = roots.resolve_dir(parent).map_err(in_roots)?;
    check_program(roots, given, &dir.path().join(name))
}

/// Returns a program of a directory in the roots. The interpreter of an environment is usually a link to one elsewhere; any
/// other link must lead into the roots.
fn check_program(roots: &Roots, given: &str, program: &Path) -> Result<PathBuf, Failure> {
    let environment = program.parent().and_then(Path::parent);
    let is_environment = environment.is_some_and(|dir| {
        let markers = ["pyvenv.cfg", "conda-meta"];
        markers.iter().any(|marker| dir.join(marker).exists())
    });
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_inside = || {
        let real = program.canonicalize();
        real.is_ok_and(|real| roots.paths().iter().any(|root| real.starts_with(root)))
    };
    if is_environment && is_python_name(&name) || is_inside() {
        return Ok(program.to_owned());
    }
    if program.symlink_metadata().is_err() {
        return Err(rejected(given, "there is no such file"));
    }
    Err(rejected(given, "it is a link that leads out of the roots"))
}

/// The interpreters that the user allows: those of `mcp.allow_python`, and the one of `python.interpreter`.
fn allowed_interpreters(settings: &Settings) -> Vec<String> {
    let chosen = settings.python.interpreter.as_ref();
    let chosen = chosen.map(|chosen| chosen.to_string_lossy().into_owned());
    let mut allowed = settings.mcp.allow_python.clone();
    allowed.extend(chosen);
    allowed
}

/// Whether an interpreter is allowed by name, by path, or by a directory above it.
fn is_allowed(given: &str, allowed: &[String], home: Option<&Path>) -> bool {
    let expand = |text: &str| match (Path::new(text).strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    };
    let path = expand(given);
    let is_normal = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let is_plain = path.is_absolute() && path.components().all(is_normal);
    allowed.iter().any(|entry| {
        entry == given || is_plain && entry.contains('/') && path.starts_with(expand(entry))
    })
}

/// Whether a command is a Python interpreter by its name: `python3`, `python3.13t`, `pypy3.11`.
fn is_python_name(name: &str) -> bool {
    let version = ["python", "pypy"]
        .iter()
        .find_map(|program| name.strip_prefix(program));
    version.is_some_and(|version| {
        let version = version.strip_suffix('t').unwrap_or(version);
        let is_version = |c: char| c.is_ascii_digit() || c == '.';
        version.chars().all(is_version) && !version.starts_with('.')
    })
}

fn rejected(given: &str, why: &str) -> Failure {
    let message = format!("The interpreter `{given}` is not allowed");
    let mut failure = Failure::new(Kind::Refused, message);
    failure.causes.push(why.to_owned());
    failure
        .hint("use an environment in the roots, such as `.venv`, or a command such as `python3.12`")
        .hint("the user can allow others with the setting `mcp.allow_python`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_interpreters_are_commands() {
        for name in [
            "python",
            "python3",
            "python3.12",
            "python3.13t",
            "pypy",
            "pypy3.11",
        ] {
            assert!(is_python_name(name), "{name}");
        }
        for name in [
            "",
            "sh",
            "pythonw",
            "python3-config",
            "python.sh",
            "ipython",
            "python3.12.evil",
        ] {
            assert!(!is_python_name(name), "{name}");
        }
    }

    #[test]
    fn environments_resolve_in_the_roots_only() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("root");
        for environment in [root.join(".venv"), base.join("other")] {
            std::fs::create_dir_all(environment.join("bin")).unwrap();
            std::fs::write(environment.join("pyvenv.cfg"), "").unwrap();
            std::os::unix::fs::symlink("/usr/bin/env", environment.join("bin/python")).unwrap();
        }
        std::fs::write(root.join("tool"), "").unwrap();
        std::os::unix::fs::symlink("/usr/bin/env", root.join("link")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/env", root.join(".venv/bin/env")).unwrap();
        std::os::unix::fs::symlink(base.join("other"), root.join("led")).unwrap();
        let roots = Roots::new(std::slice::from_ref(&root));
        let python = root.join(".venv/bin/python");
        for given in [
            ".venv",
            ".venv/bin/python",
            "./.venv/bin/python",
            python.to_str().unwrap(),
        ] {
            assert_eq!(resolve(&roots, given).unwrap(), python, "{given}");
        }
        assert_eq!(resolve(&roots, "tool").unwrap(), root.join("tool"));
        let outside = base.join("other/bin/python");
        for given in [
            "../other/bin/python",
            "../other",
            "link",
            ".venv/bin/env",
            ".venv/bin/none",
            "led",
            "led/bin/python",
            "~/x/bin/python",
            outside.to_str().unwrap(),
            "/usr/bin/python3",
        ] {
            let failure = resolve(&roots, given).unwrap_err();
            assert_eq!(failure.kind, Kind::Refused, "{given}");
            assert!(failure.message.contains(given), "{}", failure.message);
        }
    }

    #[test]
    fn settings_allow_commands_paths_and_directories() {
        let allowed = ["~/envs", "/opt/py/bin/python3", "mypython"].map(str::to_owned);
        let home = Some(Path::new("/h/me"));
        for given in [
            "~/envs/a",
            "/h/me/envs/a/bin/python",
            "/opt/py/bin/python3",
            "mypython",
        ] {
            assert!(is_allowed(given, &allowed, home), "{given}");
        }
        for given in [
            "/opt/py/bin/python3.1",
            "/h/me/envs/../x",
            "/h/me/envsx/a",
            "../envs/a",
            "other",
        ] {
            assert!(!is_allowed(given, &allowed, home), "{given}");
        }
    }
}
