//! Tests with a fake pyenv: its shims count how often they run.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A fake pyenv in a temporary directory. Its versions are shell scripts that print what Python would print.
struct FakePyenv {
    dir: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
}

impl FakePyenv {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pyenv = Self {
            dir,
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let root = pyenv.root();
        // Selects like pyenv: a variable, a file in the working directory, the global file.
        pyenv.write_program(
            "pyenv/libexec/pyenv",
            r#"echo run >> "$PYENV_ROOT/runs"
if [ -z "$PYENV_VERSION" ]; then
  if [ -e .python-version ]; then PYENV_VERSION=$(cat .python-version); else PYENV_VERSION=$(cat "$PYENV_ROOT/version"); fi
fi
export PYENV_VERSION PYENV_DIR="$PWD"
bin="$PYENV_ROOT/versions/$PYENV_VERSION/bin"
export PATH="$bin:$PATH"
exec "$bin/$2" "$PYENV_DIR""#,
        );
        pyenv.write_shim("");
        for version in ["3.11.1", "3.12.1"] {
            pyenv.install(version, "");
        }
        fs::write(root.join("version"), "3.11.1\n").unwrap();
        fs::create_dir(pyenv.project()).unwrap();
        pyenv
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("pyenv")
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn write_program(&self, path: &str, script: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn write_shim(&self, comment: &str) {
        let root = self.root();
        let root = root.display();
        let script = format!(
            "{comment}\nprogram=\"${{0##*/}}\"\nexport PYENV_ROOT=\"{root}\"\n\
             exec \"{root}/libexec/pyenv\" exec \"$program\" \"$@\""
        );
        self.write_program("pyenv/shims/python3", &script);
    }

    fn install(&self, version: &str, comment: &str) {
        let script = format!("{comment}\nprintf '%s\\0' \"$0\"\nenv -0");
        self.write_program(&format!("pyenv/versions/{version}/bin/python3"), &script);
    }

    /// Resolves the shim in the project. Returns the version.
    fn resolve(&self) -> String {
        let resolved = self.try_resolve().unwrap();
        let variable = |name| variable(&resolved.variables, name).unwrap().to_owned();
        let bin = resolved.program.parent().unwrap();
        assert!(
            variable("PATH")
                .as_bytes()
                .starts_with(bin.as_os_str().as_bytes())
        );
        assert_eq!(super::variable(&resolved.variables, "PYENV_DIR"), None);
        let version = bin.parent().unwrap().file_name().unwrap();
        assert_eq!(variable("PYENV_VERSION"), version);
        version.to_str().unwrap().to_owned()
    }

    fn try_resolve(&self) -> Option<ResolvedShim> {
        let shim = Shim::read(&self.root().join("shims/python3")).unwrap();
        shim.resolve(&ShimContext {
            cwd: &self.project(),
            env: &self.env,
            cache: Some(&self.cache()),
        })
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache/interpreters.json")
    }

    /// How often shims ran so far.
    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.root().join("runs"));
        runs.unwrap_or_default().lines().count()
    }
}

#[test]
fn shim_runs_once_until_something_changes() {
    let mut pyenv = FakePyenv::new();
    for _ in 0..3 {
        assert_eq!(pyenv.resolve(), "3.11.1");
    }
    assert_eq!(pyenv.runs(), 1);

    // A version file in the project, and a change of it that keeps its size.
    fs::write(pyenv.project().join(".python-version"), "3.12.1\n").unwrap();
    assert_eq!(pyenv.resolve(), "3.12.1");
    fs::write(pyenv.project().join(".python-version"), "3.11.1\n").unwrap();
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 3);

    // The variable of the shell.
    pyenv.env.push(("PYENV_VERSION".into(), "3.12.1".into()));
    let resolved = pyenv.try_resolve().unwrap();
    assert!(
        resolved
            .program
            .starts_with(pyenv.root().join("versions/3.12.1"))
    );
    // It is in the environment already.
    assert_eq!(variable(&resolved.variables, "PYENV_VERSION"), None);
    pyenv.env.pop();
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 4);

    // The interpreter is installed again, the shim is written again, another version is installed.
    pyenv.install("3.11.1", "# another build");
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 5);
    pyenv.write_shim("# another shim");
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 6);
    pyenv.install("3.13.1", "");
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 7);
    assert_eq!(pyenv.resolve(), "3.11.1");
    assert_eq!(pyenv.runs(), 7);
}

#[test]
fn interpreter_that_disappears_is_not_used() {
    let pyenv = FakePyenv::new();
    assert_eq!(pyenv.resolve(), "3.11.1");
    fs::remove_dir_all(pyenv.root().join("versions/3.11.1")).unwrap();
    // The caller starts the shim, which reports the reason.
    assert_eq!(pyenv.try_resolve(), None);
}

#[test]
fn choice_of_an_unknown_hook_is_not_cached() {
    let pyenv = FakePyenv::new();
    pyenv.write_program("pyenv/pyenv.d/exec/pip-rehash.bash", "");
    assert_eq!(pyenv.resolve(), "3.11.1");
    pyenv.write_program("pyenv/plugins/x/etc/pyenv.d/version-name/x.bash", "");
    assert_eq!(pyenv.try_resolve(), None);
    assert_eq!(pyenv.runs(), 1);
}

#[test]
fn unreadable_cache_is_ignored_and_replaced() {
    let pyenv = FakePyenv::new();
    fs::create_dir(pyenv.cache().parent().unwrap()).unwrap();
    for content in ["", "{", "[{\"key\": 1}]"] {
        fs::write(pyenv.cache(), content).unwrap();
        let before = pyenv.runs();
        assert_eq!(pyenv.resolve(), "3.11.1");
        assert_eq!(pyenv.resolve(), "3.11.1");
        assert_eq!(pyenv.runs(), before + 1, "{content:?}");
    }
    // A cache that cannot be written makes nothing fail.
    fs::remove_file(pyenv.cache()).unwrap();
    fs::create_dir(pyenv.cache()).unwrap();
    assert_eq!(pyenv.resolve(), "3.11.1");
}

#[test]
fn cache_is_bounded() {
    let mut pyenv = FakePyenv::new();
    for number in 0..40 {
        pyenv.env.retain(|(name, _)| name != "HOME");
        pyenv
            .env
            .push(("HOME".into(), format!("/users/{number}").into()));
        pyenv.resolve();
    }
    let content = fs::read(pyenv.cache()).unwrap();
    let entries: Vec<CacheEntry> = serde_json::from_slice(&content).unwrap();
    assert_eq!(entries.len(), 32);
    let runs = pyenv.runs();
    pyenv.resolve();
    assert_eq!(pyenv.runs(), runs);
}

#[test]
fn other_programs_are_no_shims() {
    let pyenv = FakePyenv::new();
    let read = |script: &str| Shim::read(&pyenv.write_program("python3", script)).is_some();
    assert!(!read("exec /usr/bin/python3 \"$@\""));
    assert!(!read(
        "export PYENV_ROOT=\"/p\"\nexec /usr/bin/python3 \"$@\""
    ));
    assert!(!read(
        "export PYENV_ROOT=\"$HOME/p\"\nexec \"/p/pyenv\" exec \"$program\" \"$@\""
    ));
    assert!(read(
        "export PYENV_ROOT=\"/p\"\nexec \"/p/pyenv\" exec \"$program\" \"$@\""
    ));
    assert!(Shim::read(&pyenv.dir.path().join("missing")).is_none());
}
