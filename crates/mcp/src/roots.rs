//! [`Roots`]: confines a client's paths to its roots, or to the directory in which the server was started.
//!
//! Each root is held open. The system resolves a path from it in one step (`openat2`), which fails if a link or `..` leads out
//! of the root. The directory found is held, too, and everything is accessed through it: files, lists of directories, working
//! directories of kernels. So a rename or a new link between check and use has no effect.

mod beneath;

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_operations::file_path::FilePath;
use cellwright_stdext::{Directory, LockExt};
use rustix::fs::{AtFlags, Mode, OFlags};

use self::beneath::{OpenTarget, open_beneath, real_path};

/// How many links at the end of a path are followed.
const LINKS_MAX: usize = 20;

/// The directories that paths may lead into. Relative paths start at the first.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<Mutex<Vec<Root>>>);

#[derive(Clone, Debug)]
struct Root {
    /// The path as the client or the user gave it; it may contain links.
    given: PathBuf,
    /// The canonical path.
    real: PathBuf,
    descriptor: Arc<OwnedFd>,
}

/// The path of a file that leads into a root.
#[derive(Debug)]
pub struct ConfinedPath {
    /// The file in its directory, which is held.
    file: FilePath,
}

impl Roots {
    /// Creates roots from those of the directories that exist.
    pub fn new(dirs: &[PathBuf]) -> Self {
        let roots = Self::default();
        roots.set(dirs);
        roots
    }

    /// Replaces the directories.
    pub fn set(&self, dirs: &[PathBuf]) {
        let root = |dir: &PathBuf| {
            let real = dir.canonicalize().ok()?;
            // `/` confines nothing: a client that starts the server there has not chosen a directory.
            if real == Path::new("/") {
                return None;
            }
            Some(Root {
                given: dir.clone(),
                descriptor: Arc::new(open_root(&real)?),
                real,
            })
        };
        let found = dirs.iter().filter_map(root).collect();
        *self.0.lock_ignoring_poison() = found;
    }

    /// The canonical paths of the roots.
    pub fn paths(&self) -> Vec<PathBuf> {
        let roots = self.0.lock_ignoring_poison();
        roots.iter().map(|root| root.real.clone()).collect()
    }

    /// The roots. One that was deleted is opened again by its path.
    fn current(&self) -> Vec<Root> {
        let mut roots = self.0.lock_ignoring_poison();
        for root in roots.iter_mut().filter(|root| root.is_deleted()) {
            if let Some(descriptor) = open_root(&root.real) {
                root.descriptor = Arc::new(descriptor);
            }
        }
        roots.clone()
    }

    /// Splits an absolute path into its root and the rest. The path may use the given or the canonical path of the root.
    fn strip(&self, path: &Path) -> Option<(Root, PathBuf)> {
        self.current().into_iter().find_map(|root| {
            let rest = path.strip_prefix(&root.real);
            let rest = rest.or_else(|_| path.strip_prefix(&root.given)).ok()?;
            let rest = rest.to_owned();
            Some((root, rest))
        })
    }

    /// The root at which relative paths start.
    pub fn base(&self) -> Result<PathBuf, Failure> {
        self.paths().into_iter().next().ok_or_else(no_root)
    }

    /// The roots as directories.
    pub fn directories(&self) -> Vec<Directory> {
        let root = |root: Root| root.directory().ok();
        self.current().into_iter().filter_map(root).collect()
    }

    /// The directory of the root at which relative paths start.
    pub fn base_directory(&self) -> Result<Directory, Failure> {
        let first = self.current().into_iter().next().ok_or_else(no_root)?;
        Ok(first.directory()?)
    }

    /// The working directory of a session, which must be in a root and not lead out of it.
    pub fn session_directory(&self, path: &Path) -> Result<Directory, Failure> {
        self.resolve_dir(&path.to_string_lossy())
    }

    /// Resolves the path of a file. The file may be missing, its directory may not.
    pub fn resolve_file(&self, given: &str) -> Result<ConfinedPath, Failure> {
        let (root, inside) = self.split_root(given)?;
        let Some(name) = inside.file_name() else {
            return Err(rejected_path(given, "it names a directory, not a file"));
        };
        let parent = inside.parent().unwrap_or(Path::new(""));
        let found = open_parent(given, &root, parent, Path::new(name), LINKS_MAX);
        if found.is_ok() {
            return found;
        }
        // `openat2` rejects every absolute link, also one that leads into the root. Resolve its target instead.
        let real = root.real.join(&inside).canonicalize().ok();
        let inside = real
            .as_deref()
            .and_then(|real| real.strip_prefix(&root.real).ok());
        match inside.and_then(|inside| Some((inside.parent()?, inside.file_name()?))) {
            Some((parent, name)) => open_parent(given, &root, parent, Path::new(name), LINKS_MAX),
            None => found,
        }
    }

    /// Resolves the path of an existing directory.
    pub fn resolve_dir(&self, given: &str) -> Result<Directory, Failure> {
        let (root, inside) = self.split_root(given)?;
        let dir = open_beneath(&root.descriptor, &inside, OpenTarget::Directory);
        if let Some(dir) = dir.map_err(|error| lookup_failure(given, error))? {
            return hold(given, dir);
        }
        let path = root.real.join(&inside);
        Ok(canonicalize_inside(given, &root.real, &path)?.into())
    }

    /// Splits a path into the root that it leads into and the rest.
    fn split_root(&self, given: &str) -> Result<(Root, PathBuf), Failure> {
        if given.is_empty() {
            return Err(rejected_path(given, "it is empty"));
        }
        if given.contains('\0') {
            return Err(rejected_path(given, "it contains a NUL character"));
        }
        let Some(first) = self.current().into_iter().next() else {
            return Err(no_root());
        };
        let path = Path::new(given);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(rejected_path(given, "`..` is not allowed"));
        }
        if path.starts_with("~") {
            return Err(rejected_path(given, "`~` is not allowed"));
        }
        if path.is_relative() {
            return Ok((first, normal_components(path)));
        }
        let Some((root, rest)) = self.strip(path) else {
            let mut failure = rejected_path(given, "it leads out of the roots");
            failure.hints.push(roots_hint(&self.paths()).into());
            return Err(failure);
        };
        Ok((root, normal_components(&rest)))
    }
}

impl Root {
    fn directory(&self) -> std::io::Result<Directory> {
        if cfg!(target_os = "linux") {
            Directory::hold(self.descriptor.try_clone()?, &self.real)
        } else {
            Ok(self.real.as_path().into())
        }
    }

    fn is_deleted(&self) -> bool {
        rustix::fs::fstat(&self.descriptor).is_ok_and(|found| found.st_nlink == 0)
    }
}

impl ConfinedPath {
    /// The file.
    pub fn file(&self) -> &FilePath {
        &self.file
    }

    /// The path to open.
    pub fn path(&self) -> &Path {
        self.file.open_path()
    }

    /// The path to show and to record.
    pub fn display_path(&self) -> &Path {
        self.file.display_path()
    }

    /// Adds a hint to a failure if the path ends with a selector.
    pub fn with_selector_hint(&self, mut failure: Failure) -> Failure {
        let name = self.display_path().file_name().unwrap_or_default();
        let is_about_file = matches!(failure.kind, Kind::BadFile | Kind::BadNotebook);
        if is_about_file && name.to_string_lossy().contains(".ipynb:") {
            failure.hints.push(
                "only `read` takes a selector such as :cells=3, and the selector must be valid"
                    .into(),
            );
        }
        failure
    }
}

/// Opens the directory of a file and returns the path of the file in it.
fn open_parent(
    given: &str,
    root: &Root,
    parent: &Path,
    name: &Path,
    links: usize,
) -> Result<ConfinedPath, Failure> {
    let opened = open_beneath(&root.descriptor, parent, OpenTarget::Directory);
    let opened = opened.map_err(|error| match error {
        rustix::io::Errno::NOENT => missing_directory(given, parent),
        error => lookup_failure(given, error),
    });
    let Some(dir) = opened? else {
        let whole = root.real.join(parent).join(name);
        let display_path = match canonicalize_inside(given, &root.real, &whole) {
            Err(failure) if whole.symlink_metadata().is_ok() => return Err(failure),
            Ok(real) => real,
            // A file that does not exist yet: check its directory.
            Err(_) => canonicalize_inside(given, &root.real, &root.real.join(parent))?.join(name),
        };
        return Ok(ConfinedPath {
            file: display_path.into(),
        });
    };
    let found = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_link = found.is_ok_and(|found| {
        rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Symlink
    });
    if is_link {
        // Resolve the target like any other path.
        let opened = open_beneath(&root.descriptor, &parent.join(name), OpenTarget::Any);
        let opened = opened.map_err(|error| lookup_failure(given, error))?;
        let target = opened.as_ref().and_then(real_path);
        let target = target.filter(|_| links > 0);
        let inside = target
            .as_deref()
            .and_then(|target| target.strip_prefix(&root.real).ok())
            .ok_or_else(|| rejected_path(given, "it is a link that leads out of the roots"))?;
        let (Some(parent), Some(name)) = (inside.parent(), inside.file_name()) else {
            return Err(rejected_path(given, "it names a directory, not a file"));
        };
        return open_parent(given, root, parent, Path::new(name), links - 1);
    }
    let file = FilePath::in_directory(hold(given, dir)?, name.as_os_str());
    Ok(ConfinedPath { file })
}

/// Holds a directory that was opened beneath a root.
fn hold(given: &str, dir: OwnedFd) -> Result<Directory, Failure> {
    let Some(real) = real_path(&dir) else {
        return Err(rejected_path(given, "its real path is unknown"));
    };
    let held = Directory::hold(dir, real)?;
    if held.current_path().is_none() {
        return Err(lookup_failure(given, rustix::io::Errno::NOENT));
    }
    Ok(held)
}

/// Opens the directory of a root.
fn open_root(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | OFlags::PATH;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// Checks a path by name, for systems without `openat2`.
fn canonicalize_inside(given: &str, root: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let real = path.canonicalize().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("`{given}` does not exist"));
        failure.causes.push(error.to_string());
        failure
    })?;
    if real.starts_with(root) {
        return Ok(real);
    }
    Err(rejected_path(given, "it leads out of the roots"))
}

/// Removes `.` and repeated slashes from a path.
fn normal_components(path: &Path) -> PathBuf {
    let normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    path.components().filter(normal).collect()
}

/// The failure of a file whose directory is missing.
fn missing_directory(given: &str, parent: &Path) -> Failure {
    let parent = parent.display();
    let message = format!("The directory `{parent}` of `{given}` does not exist");
    let failure = Failure::new(Kind::BadFile, message).hint("nothing was done; create it first");
    failure.hint("`read` of a directory such as `.` lists its notebooks")
}

fn lookup_failure(given: &str, error: rustix::io::Errno) -> Failure {
    match error {
        rustix::io::Errno::XDEV | rustix::io::Errno::LOOP => {
            rejected_path(given, "it leads out of the roots")
        }
        rustix::io::Errno::NOENT => {
            let failure = Failure::new(Kind::BadFile, format!("`{given}` does not exist"));
            failure.hint("`read` of a directory such as `.` lists its notebooks")
        }
        error => {
            let mut failure = Failure::new(Kind::BadFile, format!("Could not resolve `{given}`"));
            failure.causes.push(error.to_string());
            failure
        }
    }
}

fn rejected_path(given: &str, why: &str) -> Failure {
    let mut failure = Failure::new(Kind::Refused, format!("The path `{given}` is not allowed"));
    failure.causes.push(why.to_owned());
    failure.hint("use a path inside the roots, preferably a relative one")
}

fn roots_hint(roots: &[PathBuf]) -> String {
    let names: Vec<String> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    format!("the roots are: {}", names.join(", "))
}

fn no_root() -> Failure {
    let failure = Failure::new(Kind::Refused, "The server has no root directory");
    failure.hint(hint![
        "start the server in a project's directory, or with ",
        command("mcp --root DIRECTORY"),
        "; `/` cannot be a root",
    ])
}

/// Returns the path that a `file://` URI names.
pub fn path_from_file_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    Some(PathBuf::from(percent_decode(path)?))
}

/// Decodes the percent escapes of a URI.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Returns the `file://` URI of a path.
pub fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests;
