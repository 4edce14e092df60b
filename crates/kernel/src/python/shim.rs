//! [`Shim`]: a pyenv shim, and the interpreter that it starts.
//!
//! A shim is a shell script that selects a version of Python, sets variables and starts the interpreter. That takes
//! about 30 ms at every start. So a shim runs once, to print the interpreter and its variables, and a cache file keeps
//! the answer. An entry is used only if nothing has changed on which pyenv's choice depends: the shim, pyenv, the
//! variables that it reads, the version files, the installed versions, the programs on `PATH`, and the interpreter itself.

mod cache;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use twox_hash::XxHash3_128;

use cache::CacheEntry;

/// Size of the largest file that can be a shim, in bytes.
const SHIM_SIZE_MAX: u64 = 4096;

/// How many bytes of a version file count. Real ones have a line or two.
const VERSION_FILE_LIMIT: u64 = 4096;

/// How long a shim may take to answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many bytes a shim may answer with.
const ANSWER_LIMIT: usize = 1 << 20;

/// Prints the path of the interpreter and its variables, each with a NUL after it.
const QUERY_SCRIPT: &str = "\
import os, sys
parts = [os.fsencode(sys.executable)] + [k + b'=' + v for k, v in os.environb.items()]
sys.stdout.buffer.write(b''.join(part + b'\\0' for part in parts))
";

/// Variables that every shell sets, or that Python sets again. pyenv ignores `PYENV_DIR` once `PYENV_VERSION` is set.
const UNRELATED_VARIABLES: &[&str] = &["_", "SHLVL", "PWD", "OLDPWD", "LC_CTYPE", "PYENV_DIR"];

/// Hooks of pyenv and pyenv-virtualenv. Their result depends only on the selected version.
const KNOWN_HOOKS: &[&str] = &[
    "exec/pip-rehash.bash",
    "which/anaconda.bash",
    "which/conda.bash",
    "which/python-config.bash",
    "which/system-site-packages.bash",
];

/// The kinds of hooks that can change which interpreter starts.
const HOOK_KINDS: &[&str] = &["exec", "which", "version-name", "version-origin"];

/// The directories of hooks that every pyenv reads.
const SYSTEM_HOOK_DIRS: &[&str] = &[
    "/usr/local/etc/pyenv.d",
    "/etc/pyenv.d",
    "/usr/lib/pyenv/hooks",
];

/// A pyenv shim.
#[derive(Clone, Debug)]
pub struct Shim {
    path: PathBuf,
    content: Vec<u8>,
    /// `PYENV_ROOT`, as the shim sets it.
    root: PathBuf,
    /// The `pyenv` program that the shim runs.
    pyenv: PathBuf,
}

/// The inputs of the resolution. The caller reads the environment variables; this module does not.
#[derive(Clone, Copy, Debug)]
pub struct ShimContext<'a> {
    /// The working directory of the kernel, absolute.
    pub cwd: &'a Path,
    /// The environment variables of the kernel.
    pub env: &'a [(OsString, OsString)],
    /// The file that keeps resolved shims. `None`: the shim runs at every call.
    pub cache: Option<&'a Path>,
}

/// The interpreter that a shim starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedShim {
    /// The interpreter.
    pub program: PathBuf,
    /// The environment variables that the shim adds or changes.
    pub variables: Vec<(OsString, OsString)>,
}

impl Shim {
    /// Reads a program that may be a shim. Returns `None` if it is none. Cheap for interpreters: they are larger than
    /// shims.
    pub fn read(program: &Path) -> Option<Self> {
        if program.metadata().ok()?.len() > SHIM_SIZE_MAX {
            return None;
        }
        let content = read_start(program, SHIM_SIZE_MAX)?;
        let text = std::str::from_utf8(&content).ok()?;
        if !text.starts_with("#!") {
            return None;
        }
        // Both lines as pyenv writes them into every shim.
        let root = text
            .lines()
            .find_map(|line| quoted(line.strip_prefix("export PYENV_ROOT=")?))?;
        let command = text.lines().find_map(|line| {
            line.strip_prefix("exec ")?
                .strip_suffix(r#" exec "$program" "$@""#)
        })?;
        let (root, pyenv) = (PathBuf::from(root), PathBuf::from(quoted(command)?));
        Some(Self {
            path: program.to_owned(),
            root,
            pyenv,
            content,
        })
    }

    /// Returns the interpreter that the shim starts, from the cache if nothing has changed. Returns `None` if the shim
    /// must be started itself: it fails, or the choice depends on something that cannot be checked.
    pub fn resolve(&self, context: &ShimContext<'_>) -> Option<ResolvedShim> {
        let key = self.key(context)?;
        if let Some(cache) = context.cache
            && let Some(entry) = cache::find(cache, &key)
            && identity(&entry.program).is_some_and(|identity| identity == entry.identity)
        {
            return Some(ResolvedShim {
                program: entry.program,
                variables: entry.variables,
            });
        }
        let resolved = self.query(context)?;
        let program_identity = identity(&resolved.program)?;
        // A change while the shim ran leaves open which state its answer belongs to.
        if let Some(cache) = context.cache
            && self.key(context).as_ref() == Some(&key)
        {
            let entry = CacheEntry {
                key,
                program: resolved.program.clone(),
                identity: program_identity,
                variables: resolved.variables.clone(),
            };
            // Without a cache the shim runs again next time.
            cache::insert(cache, entry).ok();
        }
        Some(resolved)
    }

    /// A hash of everything on which the choice of the interpreter depends. `None` if it depends on a hook.
    fn key(&self, context: &ShimContext<'_>) -> Option<String> {
        let pyenv = self.pyenv.canonicalize().ok()?;
        if self.has_unknown_hooks(context, &pyenv) {
            return None;
        }
        let mut key = KeyHasher(XxHash3_128::new());
        key.add(self.path.as_os_str().as_bytes());
        key.add(&self.content);
        key.add_file(&self.path);
        key.add_file(&pyenv);
        key.add(context.cwd.as_os_str().as_bytes());
        let mut variables: Vec<_> = context.env.iter().collect();
        variables.sort();
        for (name, value) in variables {
            let name = name.as_bytes();
            if name.starts_with(b"PYENV_") || [&b"PATH"[..], b"HOME", b"BASH_ENV"].contains(&name) {
                key.add(name);
                key.add(value.as_bytes());
            }
        }
        let start = variable(context.env, "PYENV_DIR").map(|dir| context.cwd.join(dir));
        for dir in [start.as_deref(), Some(context.cwd)].into_iter().flatten() {
            for dir in dir.ancestors() {
                key.add_version_file(&dir.join(".python-version"));
            }
        }
        key.add_version_file(&self.root.join("version"));
        let name = self.path.file_name()?;
        for version in entries(&self.root.join("versions")) {
            key.add(version.as_os_str().as_bytes());
            key.add_file(&version.join("bin").join(name));
        }
        // The version `system` is a program on `PATH`.
        let path = variable(context.env, "PATH").unwrap_or_default();
        for dir in split_paths(path) {
            key.add_file(&dir.join(name));
        }
        Some(format!("{:032x}", key.0.finish_128()))
    }

    /// Whether a hook can change the choice in an unknown way.
    fn has_unknown_hooks(&self, context: &ShimContext<'_>, pyenv: &Path) -> bool {
        let mut dirs: Vec<PathBuf> = SYSTEM_HOOK_DIRS.iter().map(PathBuf::from).collect();
        dirs.push(self.root.join("pyenv.d"));
        let installed = pyenv.parent().and_then(Path::parent);
        dirs.extend(installed.map(|dir| dir.join("pyenv.d")));
        for plugin in entries(&self.root.join("plugins")) {
            dirs.push(plugin.join("etc/pyenv.d"));
        }
        if let Some(path) = variable(context.env, "PYENV_HOOK_PATH") {
            dirs.extend(split_paths(path));
        }
        dirs.iter().any(|dir| {
            HOOK_KINDS.iter().any(|kind| {
                entries(&dir.join(kind)).iter().any(|hook| {
                    let name = hook.strip_prefix(dir).unwrap_or(hook);
                    hook.extension() == Some(OsStr::new("bash"))
                        && !KNOWN_HOOKS.iter().any(|known| name == Path::new(known))
                })
            })
        })
    }

    /// Runs the shim.
    fn query(&self, context: &ShimContext<'_>) -> Option<ResolvedShim> {
        let mut child = Command::new(&self.path)
            .args(["-I", "-S", "-c", QUERY_SCRIPT])
            .env_clear()
            .envs(context.env.iter().cloned())
            .current_dir(context.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let deadline = Instant::now() + QUERY_TIMEOUT;
        let answer = read_answer(&mut child, deadline);
        if answer.is_none() {
            child.kill().ok();
        }
        let succeeded = wait(&mut child, deadline);
        let answer = answer.filter(|_| succeeded)?;
        let mut parts = answer.split(|&byte| byte == 0);
        let program = PathBuf::from(OsString::from_vec(parts.next()?.to_owned()));
        if !program.is_absolute() {
            return None;
        }
        let mut variables = Vec::new();
        for part in parts {
            // The name of a variable has at least one character.
            let Some(at) = part.iter().skip(1).position(|&byte| byte == b'=') else {
                continue;
            };
            let (name, value) = (&part[..=at], &part[at + 2..]);
            let name = OsStr::from_bytes(name);
            let (unrelated, value) = (UNRELATED_VARIABLES.iter(), OsStr::from_bytes(value));
            if unrelated.into_iter().all(|other| name != OsStr::new(other))
                && context
                    .env
                    .iter()
                    .all(|(other, old)| other != name || old != value)
            {
                variables.push((name.to_owned(), value.to_owned()));
            }
        }
        variables.sort();
        Some(ResolvedShim { program, variables })
    }
}

/// Hashes the inputs of a choice.
struct KeyHasher(XxHash3_128);

impl KeyHasher {
    fn add(&mut self, bytes: &[u8]) {
        self.0.write(&bytes.len().to_le_bytes());
        self.0.write(bytes);
    }

    /// Adds which file a path leads to, or that there is none.
    fn add_file(&mut self, path: &Path) {
        self.add(identity(path).unwrap_or_default().as_bytes());
    }

    /// Adds a version file with its content: a second change within the resolution of the file system's clock must not
    /// go unnoticed.
    fn add_version_file(&mut self, path: &Path) {
        let Some(content) = read_start(path, VERSION_FILE_LIMIT) else {
            return;
        };
        self.add(path.as_os_str().as_bytes());
        self.add(&content);
        self.add_file(path);
    }
}

/// Identifies a file and its state: device, inode, size, times of the last changes.
fn identity(path: &Path) -> Option<String> {
    let file = path.metadata().ok()?;
    Some(format!(
        "{}:{}:{}:{}.{}:{}.{}",
        file.dev(),
        file.ino(),
        file.size(),
        file.mtime(),
        file.mtime_nsec(),
        file.ctime(),
        file.ctime_nsec(),
    ))
}

/// The entries of a directory, sorted; none if it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let variable = env.iter().find(|(other, _)| other == name);
    variable.map(|(_, value)| value.as_os_str())
}

/// The directories of a list such as `PATH`.
fn split_paths(list: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    let dirs = list.as_bytes().split(|&byte| byte == b':');
    dirs.map(|dir| PathBuf::from(OsStr::from_bytes(dir)))
}

/// The first `limit` bytes of a file.
fn read_start(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(limit).read_to_end(&mut content).ok()?;
    Some(content)
}

/// The text between double quotes, if the shell would not change it.
fn quoted(text: &str) -> Option<&str> {
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['"', '$', '`', '\\'])).then_some(text)
}

/// Reads all output of a process. Returns `None` at the deadline, and if there is too much.
fn read_answer(child: &mut Child, deadline: Instant) -> Option<Vec<u8>> {
    let mut stdout = child.stdout.take()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 8192];
    while answer.len() <= ANSWER_LIMIT {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(remaining).ok()?;
        let mut files = [PollFd::new(&stdout, PollFlags::IN)];
        match poll(&mut files, Some(&timeout)) {
            Ok(0) => return None,
            Err(error) if error != rustix::io::Errno::INTR => return None,
            Err(_) => continue,
            Ok(_) => {}
        }
        match stdout.read(&mut buffer).ok()? {
            0 => return Some(answer),
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    None
}

/// Waits for a process until the deadline, then kills it. Returns whether it succeeded.
fn wait(child: &mut Child, deadline: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                child.kill().ok();
                child.wait().ok();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests;
