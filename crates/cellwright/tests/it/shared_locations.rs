//! Other users of a temporary directory can neither run code as this user, read its files, nor make a command wait.
//!
//! The tests use two more users, so only root can run them. Every user id belongs to one test: its directory in `/tmp` is removed
//! at the end.

mod foreign_projects;
mod mcp_server;
mod notebooks;
mod own_files;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::context::Context;

/// The directories for temporary files besides `TMPDIR`.
const SYSTEM_DIRS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Programs for other users: the interpreter of the tests may be in a directory that they cannot enter.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A directory for temporary files like `/tmp`, a user that works there, and another one that attacks.
pub(super) struct SharedDir {
    context: Context,
    user: u32,
    other: u32,
}

impl Drop for SharedDir {
    fn drop(&mut self) {
        for base in SYSTEM_DIRS {
            fs::remove_dir_all(Path::new(base).join(self.user_dir_name())).ok();
        }
    }
}

impl SharedDir {
    /// The users of the test `number`. `None` unless root runs the tests.
    fn new(number: u32) -> Option<Self> {
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            cellwright_test_support::skip("root", "only root can become another user");
            return None;
        }
        let context = Context::new();
        let user = 64_000 + 10 * number;
        let shared = Self {
            context,
            user,
            other: user + 1,
        };
        set_mode(shared.context.dir(), 0o755);
        fs::create_dir(shared.temporary()).unwrap();
        set_mode(&shared.temporary(), 0o1777);
        let program = shared.context.path("cellwright");
        fs::copy(env!("CARGO_BIN_EXE_cellwright"), program).unwrap();
        Some(shared)
    }

    /// The shared directory.
    fn temporary(&self) -> PathBuf {
        self.context.path("tmp")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary().join(name)
    }

    /// The name that Cellwright uses for this user.
    fn user_dir_name(&self) -> String {
        format!("cellwright-{}", self.user)
    }

    fn user_dir(&self) -> PathBuf {
        self.path(&self.user_dir_name())
    }

    /// The other user creates the directories of the user first, everywhere.
    fn take_user_dirs(&self) {
        let name = self.user_dir_name();
        let dirs = SYSTEM_DIRS.map(|base| format!("{base}/{name}"));
        succeeded(&self.attack(&format!("umask 0; mkdir {name} {}", dirs.join(" "))));
    }

    /// Whether a path is below a directory that the other user has created.
    fn is_taken(&self, path: &Path) -> bool {
        let name = self.user_dir_name();
        path.components()
            .any(|part| part.as_os_str() == name.as_str())
    }

    /// Cellwright as the user, who has no home directory.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let user = self.user;
        command
            .args([format!("--reuid={user}"), format!("--regid={user}")])
            .arg("--clear-groups")
            .arg(self.context.path("cellwright"))
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("PATH", SYSTEM_PATH)
            .env("HOME", "/nonexistent")
            .env("TMPDIR", self.temporary());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        succeeded(&self.command(arguments).output().unwrap())
    }

    /// A shell command of the other user.
    fn attack(&self, script: &str) -> Output {
        let other = self.other;
        Command::new("setpriv")
            .args([format!("--reuid={other}"), format!("--regid={other}")])
            .args(["--clear-groups", "sh", "-euc", script])
            .current_dir(self.temporary())
            .env_clear()
            .env("PATH", SYSTEM_PATH)
            .output()
            .unwrap()
    }

    /// Whether the user can run Python; reports a skip otherwise.
    fn has_python(&self) -> bool {
        let has = Command::new("setpriv")
            .args([format!("--reuid={}", self.user), "--clear-groups".into()])
            .args(["python3", "-c", "pass"])
            .current_dir("/")
            .env("PATH", SYSTEM_PATH)
            .output()
            .is_ok_and(|output| output.status.success());
        if !has {
            cellwright_test_support::skip("system-python", "other users cannot run python3");
        }
        has
    }

    /// The directory from which the runner of the user imports its files.
    fn runner_files(&self) -> PathBuf {
        let code = "import cellwright_runner; print(cellwright_runner.__file__)";
        let printed = self.run(&["eval", code]);
        let file = PathBuf::from(printed.trim());
        file.ancestors().nth(2).unwrap().to_owned()
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The output of a command, which must succeed.
fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[test]
fn no_code_comes_from_a_directory_of_another_user() {
    let Some(shared) = SharedDir::new(1) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    shared.take_user_dirs();
    let files = shared.runner_files();
    assert!(!shared.is_taken(&files), "{}", files.display());
    assert_eq!(fs::read_dir(shared.user_dir()).unwrap().count(), 0);
    // A temporary directory for these files ends with the command.
    assert!(!files.exists());
    assert_eq!(fs::read_dir(shared.temporary()).unwrap().count(), 1);
}

#[test]
fn the_own_directory_cannot_be_replaced() {
    let Some(shared) = SharedDir::new(2) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    let files = shared.runner_files();
    assert!(files.starts_with(shared.user_dir()), "{}", files.display());
    let meta = fs::metadata(shared.user_dir()).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o7777), (shared.user, 0o700));
    let name = shared.user_dir().display().to_string();
    for script in [
        format!("mv {name} {name}-old"),
        format!("rm -rf {name}"),
        format!("ls {name}"),
        format!("chmod 777 {name}"),
    ] {
        assert!(!shared.attack(&script).status.success(), "{script}");
    }
    // It is the same directory, with the same files.
    assert_eq!(shared.runner_files(), files);
}

#[test]
fn a_temporary_directory_that_another_user_can_change_is_not_used() {
    let Some(shared) = SharedDir::new(3) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    let temporary = shared.temporary();
    // Writable by all and not sticky; owned by the other user; below a directory of the other user.
    set_mode(&temporary, 0o777);
    assert!(!shared.runner_files().starts_with(&temporary));
    set_mode(&temporary, 0o1777);
    chown(&temporary, Some(shared.other), None).unwrap();
    assert!(!shared.runner_files().starts_with(&temporary));
    chown(&temporary, Some(0), None).unwrap();
    succeeded(&shared.attack("umask 0; mkdir -p theirs/inner; chmod 1777 theirs/inner"));
    let inner = shared.path("theirs/inner");
    chown(&inner, Some(shared.user), None).unwrap();
    let output = shared
        .command(&["eval", "import cellwright_runner as r; print(r.__file__)"])
        .env("TMPDIR", &inner)
        .output()
        .unwrap();
    let printed = succeeded(&output);
    assert!(!Path::new(&printed).starts_with(&temporary), "{printed}");
}

#[test]
fn without_a_private_directory_the_error_names_the_variable() {
    let Some(shared) = SharedDir::new(4) else {
        return;
    };
    // The host needs a fixed name, so that all commands find it.
    succeeded(&shared.attack(&format!("mkdir {}", shared.user_dir().display())));
    let output = shared.command(&["host", "start"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    let owner = format!("belongs to user {}", shared.other);
    assert!(error.contains(&owner), "{error}");
    assert!(error.contains("CELLWRIGHT_HOST_DIR"), "{error}");
}

/// Creates a kernel that copies its connection file into a directory and exits.
fn copying_kernel(shared: &SharedDir) -> PathBuf {
    let seen = shared.context.path("seen");
    let kernels = shared.context.path("jupyter/kernels/copying");
    fs::create_dir_all(&kernels).unwrap();
    fs::create_dir(&seen).unwrap();
    set_mode(&seen, 0o777);
    let script = format!("cat \"$1\" > {}/$$.json; exit 1", seen.display());
    let spec = serde_json::json!({
        "argv": ["sh", "-c", script, "sh", "{connection_file}"],
        "display_name": "copying", "language": "sh",
    });
    fs::write(kernels.join("kernel.json"), spec.to_string()).unwrap();
    seen
}

#[test]
fn jupyter_kernels_use_no_ports_unless_the_user_chooses_them() {
    let Some(shared) = SharedDir::new(5) else {
        return;
    };
    let seen = copying_kernel(&shared);
    let connections = || {
        let files = fs::read_dir(&seen).unwrap();
        let read = |file: std::io::Result<fs::DirEntry>| {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            fs::remove_file(path).unwrap();
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        files.map(read).collect::<Vec<_>>()
    };
    let start = |transport: Option<&str>| {
        let mut command = shared.command(&["eval", "--kernel", "copying", "1"]);
        command
            .env("JUPYTER_PATH", shared.context.path("jupyter"))
            .env_remove("HOME");
        if let Some(transport) = transport {
            command.env("CELLWRIGHT_KERNEL_TRANSPORT", transport);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    shared.take_user_dirs();
    let error = start(None);
    let found = connections();
    assert_eq!(found.len(), 1, "{found:?} {error}");
    assert_eq!(found[0]["transport"], "ipc", "{}", found[0]);
    let stem = Path::new(found[0]["ip"].as_str().unwrap());
    assert!(stem.starts_with(shared.temporary()), "{}", stem.display());
    assert!(!shared.is_taken(stem), "{}", stem.display());
    assert!(error.contains("`kernel.transport = \"tcp\"`"), "{error}");
    start(Some("tcp"));
    let found = connections();
    assert_eq!((found.len(), &found[0]["transport"]), (1, &"tcp".into()));
    // No directory has a path that is short enough: an error, not a port.
    let long = shared.path(&"x".repeat(100));
    fs::create_dir(&long).unwrap();
    chown(&long, Some(shared.user), Some(shared.user)).unwrap();
    let mut command = shared.command(&["eval", "--kernel", "copying", "1"]);
    command
        .env("JUPYTER_PATH", shared.context.path("jupyter"))
        .env("TMPDIR", &long)
        .env_remove("HOME");
    command.output().unwrap();
    let found = connections();
    assert!(
        found.iter().all(|found| found["transport"] == "ipc"),
        "{found:?}"
    );
}

#[test]
fn other_users_cannot_read_what_a_command_copies() {
    let Some(shared) = SharedDir::new(6) else {
        return;
    };
    let mut child = shared
        .command(&["read", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The copy of stdin exists as long as stdin is open.
    let copy = loop {
        let entries = fs::read_dir(shared.temporary()).unwrap().flatten();
        let mut copies = entries.filter(|entry| {
            entry.path() != shared.user_dir() && entry.path().join("standard input").exists()
        });
        if let Some(copy) = copies.next() {
            break copy.path();
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    };
    let meta = fs::metadata(&copy).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (shared.user, 0o700));
    let read = format!("cat '{}/standard input'", copy.display());
    assert!(!shared.attack(&read).status.success());
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!copy.exists());
}
