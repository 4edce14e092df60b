//! [`DiffSide`]: one of the two notebooks to compare.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};
use cellwright_notebook::{Notebook, NotebookError, Notice, file, parse_any_format, strip_outputs};
use cellwright_stdext::Directory;

use crate::file_path::FilePath;
use crate::git::program::Git;

/// Filters that remove outputs from commits.
const CLEAN_FILTERS: [&str; 2] = ["cellwright", "nbstripout"];

/// One of the two notebooks.
#[derive(Clone, Debug)]
pub enum DiffSide {
    /// A path, or a file in git such as `HEAD:a.ipynb`.
    Name(OsString),
    /// A file with another path for messages, such as standard input.
    File(FilePath),
    /// A file as it is in a revision of git.
    Revision { revision: String, path: FilePath },
}

impl DiffSide {
    /// The two sides that the arguments of a command name: `PATH` (compared with `HEAD`), `REVISION PATH`,
    /// `REVISION REVISION PATH`, or two notebooks.
    pub fn from_arguments(arguments: &[OsString]) -> Result<[Self; 2], Failure> {
        // `-` is standard input.
        let is_file = |name: &OsString| name == "-" || Path::new(name).symlink_metadata().is_ok();
        // `HEAD~2` and the like; a name with a colon names a file in a revision.
        let revision = |name: &OsString| {
            let name = name.to_str().filter(|name| !name.contains(':'));
            name.map(str::to_owned)
        };
        let at = |revision: String, path: &OsString| Self::Revision {
            revision,
            path: PathBuf::from(path).into(),
        };
        Ok(match arguments {
            [name] if is_file(name) => [at("HEAD".to_owned(), name), Self::Name(name.clone())],
            [name] => match name.to_str().and_then(|name| name.split_once(':')) {
                Some((_, path)) => [Self::Name(name.clone()), Self::Name(path.into())],
                None => [at("HEAD".to_owned(), name), Self::Name(name.clone())],
            },
            [old, new] if is_file(old) || !is_file(new) => {
                [Self::Name(old.clone()), Self::Name(new.clone())]
            }
            [old, new] => match revision(old) {
                Some(revision) => [at(revision, new), Self::Name(new.clone())],
                None => [Self::Name(old.clone()), Self::Name(new.clone())],
            },
            [old, new, path] => match (revision(old), revision(new)) {
                (Some(old), Some(new)) => [at(old, path), at(new, path)],
                _ => return Err(too_many()),
            },
            _ => return Err(too_many()),
        })
    }

    /// Reads the notebook.
    pub(super) fn load(&self, git: &Git) -> Result<(Notebook, Vec<Notice>), Failure> {
        let (bytes, path) = match self {
            Self::File(path) => {
                let loaded = file::load_any_format(path.open_path(), None);
                return Ok(only_format_notices(
                    loaded.map_err(|error| path.failure(error))?,
                ));
            }
            Self::Name(name) => {
                let path = Path::new(name);
                let in_git = name.to_str().filter(|name| name.contains(':'));
                // A caller that confines git opens files itself.
                let is_blob = || git.is_confined() || path.symlink_metadata().is_err();
                let Some(name) = in_git.filter(|_| is_blob()) else {
                    return Ok(only_format_notices(file::load_any_format(path, None)?));
                };
                (git.read_blob(name)?, path.to_owned())
            }
            Self::Revision { revision, path } => {
                let bytes = read_revision(git, revision, path)?;
                (bytes, PathBuf::from(self.to_string()))
            }
        };
        let (notebook, notice) = parse_any_format(bytes)
            .map_err(|error| Failure::from(NotebookError::Format { path, error }))?;
        Ok((notebook, Vec::from_iter(notice)))
    }

    /// The filter that removes outputs when git stores the file `new`, if this side is a revision of it.
    pub(super) fn clean_filter(
        &self,
        new: &Self,
        git: &Git,
    ) -> Result<Option<&'static str>, Failure> {
        let new = match new {
            Self::Name(name) => Path::new(name),
            Self::File(file) => file.display_path(),
            Self::Revision { .. } => return Ok(None),
        };
        let old = match self {
            Self::Revision { path, .. } if path.display_path() == new => path,
            _ => return Ok(None),
        };
        let (dir, name) = split_path(old);
        let found = git.at(dir).check_attr(&["filter"], &name)?;
        let filter = found.unwrap_or_default();
        let filter = filter.rsplit_once(": ").map_or("", |(_, filter)| filter);
        Ok(CLEAN_FILTERS.into_iter().find(|name| *name == filter))
    }
}

impl fmt::Display for DiffSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&name.to_string_lossy()),
            Self::File(path) => write!(f, "{}", path.display_path().display()),
            Self::Revision { revision, path } => {
                write!(f, "{revision}:{}", path.display_path().display())
            }
        }
    }
}

/// A comparison reports only that the format is old, not what a validator would report.
fn only_format_notices(
    (notebook, mut notices): (Notebook, Vec<Notice>),
) -> (Notebook, Vec<Notice>) {
    notices.retain(|notice| matches!(notice, Notice::OldFormat { .. }));
    (notebook, notices)
}

/// The notebook as a filter of git stores it.
pub(super) fn without_outputs(notebook: &Notebook) -> Result<Notebook, Failure> {
    let bytes = match strip_outputs(notebook) {
        Cow::Owned(bytes) => bytes,
        Cow::Borrowed(bytes) => bytes.to_vec(),
    };
    Notebook::parse(bytes).map_err(|error| {
        let path = PathBuf::from("the notebook without outputs");
        NotebookError::Format { path, error }.into()
    })
}

/// The directory of a file, with links resolved, and its name.
fn split_path(file: &FilePath) -> (Directory, String) {
    let path = file.open_path();
    if file.is_held() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return (file.directory(), name.into_owned());
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    (dir.unwrap_or(Path::new(".")).into(), name.into_owned())
}

/// The content of a file in a revision.
fn read_revision(git: &Git, revision: &str, path: &FilePath) -> Result<Vec<u8>, Failure> {
    let (dir, name) = split_path(path);
    let git = git.at(dir);
    let shown = path.display_path().display();
    let failure = |message: String, cause: Option<&str>| {
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.extend(cause.map(str::to_owned));
        failure
    };
    let compare_files = || {
        hint![
            command(format!("diff OLD.ipynb {shown}")),
            " compares with another file",
        ]
    };
    if let Err(stderr) = git.try_run(["rev-parse", "--git-dir"])? {
        let message = format!("{shown} is not in a git repository");
        return Err(failure(message, stderr.lines().next()).hint(compare_files()));
    }
    let object = format!("{revision}^{{commit}}");
    if revision.starts_with('-')
        || git
            .try_run(["rev-parse", "--verify", "--quiet", &object])?
            .is_err()
    {
        let failure = if revision == "HEAD" {
            failure("The git repository has no commit yet".to_owned(), None)
        } else {
            let message = format!("There is no file and no git revision `{revision}`");
            failure(message, None)
        };
        return Err(failure.hint(compare_files()));
    }
    match git.try_read_blob(&format!("{revision}:./{name}"))? {
        Ok(bytes) => Ok(bytes),
        Err(stderr) => {
            let message = format!("{shown} is not in the git revision {revision}");
            let tracked = git.try_run(["ls-files", "--error-unmatch", "--", &name])?;
            let cause = match tracked {
                Ok(_) => stderr,
                Err(_) => "git does not track the file".to_owned(),
            };
            Err(failure(message, Some(&cause)).hint(compare_files()))
        }
    }
}

fn too_many() -> Failure {
    let message = "`diff` compares two notebooks, or revisions of one notebook";
    Failure::new(Kind::BadArguments, message).hint(hint![
        command("diff HEAD~1 HEAD a.ipynb"),
        " compares two revisions"
    ])
}
