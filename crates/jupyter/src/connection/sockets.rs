//! [`SocketFolder`]: where the sockets of a kernel are.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::owner::Owner;
use super::{folder, random};
use crate::small;

/// What the names of our folders begin with; ten hexadecimal digits follow.
const PREFIX: &str = "cellwright-";

/// The file in a folder that says whose it is.
const OWNER: &str = "owner.json";

/// What the names of the sockets begin with; a dash and a number from 1 to 5 follow.
const STEM: &str = "k";

/// The path of a socket must be shorter than this. It is what macOS can take; Linux takes four more.
const LONGEST: usize = 104;

/// A folder without an owner was given up this long after it was made.
const ABANDONED: Duration = Duration::from_hours(1);

/// A folder for the sockets of a kernel, ours alone, there as long as this is.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
}

/// No folder will do for sockets.
#[derive(Debug, thiserror::Error)]
pub struct NoSocketFolder {
    /// What was tried, and why it would not do.
    pub tried: Vec<(PathBuf, Unfit)>,
}

/// Why a folder will not do for sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The paths of sockets in it are longer than systems can take.
    #[error("the path of a socket would have {length} bytes, more than {}", LONGEST - 1)]
    TooLong {
        /// How long they are.
        length: usize,
    },
    /// Its path cannot be told to the kernel.
    #[error("its path is not UTF-8")]
    NotText,
    /// It cannot be used.
    #[error("it cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

impl fmt::Display for NoSocketFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no folder for the kernel's sockets")?;
        for (folder, why) in &self.tried {
            write!(f, "; {}: {why}", folder.display())?;
        }
        Ok(())
    }
}

impl SocketFolder {
    /// A new folder in the first of some folders that will do. Those are made if they are not there.
    pub fn new(candidates: &[PathBuf]) -> Result<Self, NoSocketFolder> {
        let mut tried = Vec::new();
        for candidate in candidates {
            match Self::below(candidate) {
                Ok(folder) => return Ok(folder),
                Err(why) => tried.push((candidate.clone(), why)),
            }
        }
        Err(NoSocketFolder { tried })
    }

    fn below(candidate: &Path) -> Result<Self, Unfit> {
        // Before anything is made; it may get longer without links.
        fits(candidate)?;
        let candidate = folder::make(candidate)?;
        fits(&candidate)?;
        folder::check(&fs::metadata(&candidate)?)?;
        let path = loop {
            let path = candidate.join(name()?);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        };
        // From here on it is taken away if something goes wrong.
        let folder = Self { path };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.path.join(OWNER))?;
        let owner = serde_json::to_string(&Owner::me()).map_err(io::Error::from)?;
        file.write_all(owner.as_bytes())?;
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the paths of the sockets begin with (see [`Transport::Ipc`](super::Transport::Ipc)).
    pub fn stem(&self) -> PathBuf {
        self.path.join(STEM)
    }

    /// Takes away what processes like ours left behind in some folders, and says how many there were.
    /// What is not known to be such a folder, and its process to be gone, stays.
    pub fn sweep(candidates: &[PathBuf]) -> usize {
        candidates
            .iter()
            .filter_map(|candidate| fs::read_dir(candidate).ok())
            .flat_map(Iterator::flatten)
            .filter(|entry| entry.file_name().to_str().is_some_and(is_name))
            .filter(|entry| take_away(&entry.path()).unwrap_or(false))
            .count()
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Whether the path of a socket in a folder of ours would be short enough.
fn fits(candidate: &Path) -> Result<(), Unfit> {
    if candidate.to_str().is_none() {
        return Err(Unfit::NotText);
    }
    let socket = format!("{PREFIX}0123456789/{STEM}-5");
    let length = candidate.join(socket).as_os_str().as_bytes().len();
    if length >= LONGEST {
        return Err(Unfit::TooLong { length });
    }
    Ok(())
}

fn name() -> io::Result<String> {
    Ok(format!("{PREFIX}{}", random(5)?))
}

fn is_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == 10 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Takes a folder away if it is one of ours whose process is gone.
fn take_away(path: &Path) -> io::Result<bool> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() || !folder::is_ours(&meta) {
        return Ok(false);
    }
    match small::open(&path.join(OWNER), OFlags::NOFOLLOW) {
        Ok(file) => {
            let gone = is_gone(&file)?;
            if gone {
                fs::remove_dir_all(path)?;
            }
            Ok(gone)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Its process ended before it could say that it was its own. Only an empty folder goes.
            let age = SystemTime::now().duration_since(meta.modified()?);
            let abandoned = age.is_ok_and(|age| age > ABANDONED);
            if abandoned {
                fs::remove_dir(path)?;
            }
            Ok(abandoned)
        }
        Err(error) => Err(error),
    }
}

fn is_gone(file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    if !folder::is_ours(&meta) {
        return Ok(false);
    }
    let owner: Owner = serde_json::from_slice(&small::contents(file)?)?;
    Ok(owner.is_gone(meta.modified()?))
}
