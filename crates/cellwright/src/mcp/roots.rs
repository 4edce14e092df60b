//! Where a client's paths may lead: into its roots, or the folder that the server was started in.
//!
//! A path is looked up by the system, folder by folder from the root, in one step that no link and no `..`
//! can lead out of; what is found is held open, and the file is reached through that. So it does not matter
//! what somebody does to the names in between.

mod beneath;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::AtFlags;
use serde_json::Value;

use self::beneath::{OpenTarget, open_beneath, real_path};
use crate::failure::{Failure, Kind};

/// How often a link at the end of a path is followed.
const LINKS_MAX: usize = 20;

/// The folders that paths may lead into. The first one is what relative paths are meant from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(Arc<Mutex<Vec<Root>>>);

#[derive(Clone, Debug)]
struct Root {
    /// As it was named: a link, perhaps.
    given: PathBuf,
    real: PathBuf,
}

/// A path that leads into a root.
#[derive(Debug)]
pub(crate) struct ConfinedPath {
    /// How it is opened.
    path: PathBuf,
    /// What it is called.
    pub(crate) display_path: PathBuf,
    /// The folder it is in, held open; none where the system has no such way.
    folder: Option<OwnedFd>,
}

impl Roots {
    /// These folders. What is not there is left out.
    pub(crate) fn new(folders: &[PathBuf]) -> Self {
        let roots = Self::default();
        roots.set(folders);
        roots
    }

    /// Other folders from now on.
    pub(crate) fn set(&self, folders: &[PathBuf]) {
        let root = |folder: &PathBuf| {
            let real = folder.canonicalize().ok().filter(|path| path.is_dir())?;
            // Everything is no confinement: whoever was started there was not told where to work.
            (real != Path::new("/")).then(|| Root {
                given: folder.clone(),
                real,
            })
        };
        let found = folders.iter().filter_map(root).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The folders.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let roots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        roots.iter().map(|root| root.real.clone()).collect()
    }

    /// A path from the root that it names, by any of the root's names.
    fn strip(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let roots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        roots.iter().find_map(|root| {
            let rest = path.strip_prefix(&root.real);
            let rest = rest.or_else(|_| path.strip_prefix(&root.given)).ok()?;
            Some((root.real.clone(), rest.to_owned()))
        })
    }

    /// Where relative paths are meant from.
    pub(crate) fn base(&self) -> Result<PathBuf, Failure> {
        self.paths().into_iter().next().ok_or_else(no_root)
    }

    /// A file, which may be missing, in a folder, which may not.
    pub(crate) fn resolve_file(&self, given: &str) -> Result<ConfinedPath, Failure> {
        let (root, inside) = self.split_root(given)?;
        let Some(name) = inside.file_name() else {
            return Err(rejected_path(given, "it names a folder, not a file"));
        };
        let parent = inside.parent().unwrap_or(Path::new(""));
        let found = open_parent(given, &root, parent, Path::new(name), LINKS_MAX);
        if found.is_ok() {
            return found;
        }
        // An absolute link is no way out if it leads back in; it is looked up anew from where it leads.
        let real = root.join(&inside).canonicalize().ok();
        let inside = real
            .as_deref()
            .and_then(|real| real.strip_prefix(&root).ok());
        match inside.and_then(|inside| Some((inside.parent()?, inside.file_name()?))) {
            Some((parent, name)) => open_parent(given, &root, parent, Path::new(name), LINKS_MAX),
            None => found,
        }
    }

    /// A folder that is there.
    pub(crate) fn resolve_dir(&self, given: &str) -> Result<PathBuf, Failure> {
        let (root, inside) = self.split_root(given)?;
        let folder = open_beneath(&root, &inside, OpenTarget::Directory);
        let folder = folder.map_err(|error| lookup_failure(given, error))?;
        match &folder {
            Some(fd) => real_path(fd).ok_or_else(|| rejected_path(given, "it cannot be looked up")),
            None => canonicalize_inside(given, &root, &root.join(&inside)),
        }
    }

    /// The root that a path leads into, and the rest of the path.
    fn split_root(&self, given: &str) -> Result<(PathBuf, PathBuf), Failure> {
        if given.is_empty() {
            return Err(rejected_path(given, "it is empty"));
        }
        if given.contains('\0') {
            return Err(rejected_path(given, "it has a NUL character in it"));
        }
        let roots = self.paths();
        let Some(first) = roots.first() else {
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
            return Ok((first.clone(), normal_components(path)));
        }
        let Some((root, rest)) = self.strip(path) else {
            let mut failure = rejected_path(given, "it leads out of the roots");
            failure.hints.push(roots_hint(&roots));
            return Err(failure);
        };
        Ok((root, normal_components(&rest)))
    }
}

impl ConfinedPath {
    /// How it is opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder it is in, as it is opened.
    fn open_dir_name(&self) -> Option<String> {
        self.folder.as_ref()?;
        Some(self.path.parent()?.display().to_string())
    }

    /// Names it in an error as its reader knows it.
    pub(crate) fn with_display_path(&self, mut failure: Failure) -> Failure {
        let name = self
            .display_path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        if failure.kind == Kind::BadFile && name.contains(".ipynb:") {
            let hint = "a selector such as :cells=3 is for `read`, and must be one that there is";
            failure.hints.push(hint.to_owned());
        }
        let (Some(open_dir), Some(folder)) = (self.open_dir_name(), self.display_path.parent())
        else {
            return failure;
        };
        let folder = folder.display().to_string();
        failure.message = failure.message.replace(&open_dir, &folder);
        for text in failure.causes.iter_mut().chain(&mut failure.hints) {
            *text = text.replace(&open_dir, &folder);
        }
        failure
    }

    /// Names it in an answer as its reader knows it.
    pub(crate) fn set_display_path(&self, document: &mut Value) {
        if let Some(path) = document.get_mut("path") {
            *path = Value::String(self.display_path.display().to_string());
        }
    }
}

/// Finds a file in a folder, and holds that open.
fn open_parent(
    given: &str,
    root: &Path,
    parent: &Path,
    name: &Path,
    links: usize,
) -> Result<ConfinedPath, Failure> {
    let opened = open_beneath(root, parent, OpenTarget::Directory);
    let Some(folder) = opened.map_err(|error| lookup_failure(given, error))? else {
        let whole = root.join(parent).join(name);
        let display_path = match canonicalize_inside(given, root, &whole) {
            Err(failure) if whole.symlink_metadata().is_ok() => return Err(failure),
            Ok(real) => real,
            // What is not there yet is where its folder is.
            Err(_) => canonicalize_inside(given, root, &root.join(parent))?.join(name),
        };
        return Ok(ConfinedPath {
            path: display_path.clone(),
            display_path,
            folder: None,
        });
    };
    let Some(real) = real_path(&folder) else {
        return Err(rejected_path(given, "it cannot be looked up"));
    };
    let found = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_link = found.is_ok_and(|found| {
        rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Symlink
    });
    if is_link {
        // Where it leads is looked up like any other path.
        let led = open_beneath(root, &parent.join(name), OpenTarget::Any);
        let led = led.map_err(|error| lookup_failure(given, error))?;
        let target = led.as_ref().and_then(real_path);
        let target = target.filter(|_| links > 0);
        let inside = target
            .as_deref()
            .and_then(|target| target.strip_prefix(root).ok())
            .ok_or_else(|| rejected_path(given, "it is a link that leads out of the roots"))?;
        let (Some(parent), Some(name)) = (inside.parent(), inside.file_name()) else {
            return Err(rejected_path(given, "it names a folder, not a file"));
        };
        return open_parent(given, root, parent, Path::new(name), links - 1);
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    Ok(ConfinedPath {
        path: path.join(name),
        display_path: real.join(name),
        folder: Some(folder),
    })
}

/// The same by name, where the system cannot do it in one step.
fn canonicalize_inside(given: &str, root: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let real = path.canonicalize().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("There is no `{given}`"));
        failure.causes.push(error.to_string());
        failure
    })?;
    if real.starts_with(root) {
        return Ok(real);
    }
    Err(rejected_path(given, "it leads out of the roots"))
}

/// A path without what means nothing.
fn normal_components(path: &Path) -> PathBuf {
    let normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    path.components().filter(normal).collect()
}

fn lookup_failure(given: &str, error: rustix::io::Errno) -> Failure {
    match error {
        rustix::io::Errno::XDEV | rustix::io::Errno::LOOP => {
            rejected_path(given, "it leads out of the roots")
        }
        rustix::io::Errno::NOENT => {
            let failure = Failure::new(Kind::BadFile, format!("There is no `{given}`"));
            failure.hint("`read` of a folder, such as `.`, lists what is in it")
        }
        error => {
            let mut failure = Failure::new(Kind::BadFile, format!("Could not look up `{given}`"));
            failure.causes.push(error.to_string());
            failure
        }
    }
}

fn rejected_path(given: &str, why: &str) -> Failure {
    let mut failure = Failure::new(Kind::Refused, format!("The path `{given}` is refused"));
    failure.causes.push(why.to_owned());
    failure.hint("give a path inside the roots, best a relative one")
}

fn roots_hint(roots: &[PathBuf]) -> String {
    let names: Vec<String> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    format!("the roots are: {}", names.join(", "))
}

fn no_root() -> Failure {
    let failure = Failure::new(Kind::Refused, "There is no folder to work in");
    failure.hint(
        "start the server in a project's folder, or with `cellwright mcp --root FOLDER`; `/` is not taken",
    )
}

/// The folder that a root's address names.
pub(crate) fn path_from_file_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    Some(PathBuf::from(percent_decode(path)?))
}

/// Text of an address without its escapes.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
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

/// A path as an address.
pub(crate) fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let mut address = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}

#[cfg(test)]
mod tests;
