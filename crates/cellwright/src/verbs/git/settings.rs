//! The entries of git's configuration that call this program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::program::Git;
use crate::env;
use crate::failure::{Failure, Kind};
use crate::ipykernel::shell_quoted;

/// Whose configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelHost {
    Repository,
    Global,
}

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Diff,
    Merge,
    Clean,
}

/// An entry of the configuration.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) purpose: Purpose,
    /// What of the value makes it ours, whatever the program is called.
    mark: &'static str,
}

/// Says that the line of attributes was put in by this setup, so that taking it back takes only that.
pub(super) const WROTE_LINE: &str = "cellwright.attributes";

impl KernelHost {
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Repository => "--local",
            Self::Global => "--global",
        }
    }
}

impl Entry {
    /// Whether a value was written by some setup.
    pub(super) fn is_ours(&self, value: &str) -> bool {
        value.contains(self.mark)
    }
}

/// The entries for the program that is called so in a shell: all, or all but those for the filter.
pub(super) fn entries(program: &str, clean: bool) -> Vec<Entry> {
    let mut entries = all(program, clean);
    entries.retain(|entry| clean || entry.purpose != Purpose::Clean);
    entries
}

fn all(program: &str, clean: bool) -> Vec<Entry> {
    // Git shows files on disk as they are; where outputs are not stored, they are no change.
    let sources = if clean { " --sources" } else { "" };
    // Where git puts names in for `%A` and the like, the sign itself is written twice.
    let doubled = program.replace('%', "%%");
    let entry = |key, value: String, purpose, mark| Entry {
        key,
        value,
        purpose,
        mark,
    };
    vec![
        entry(
            "diff.cellwright.textconv",
            format!("{program} git textconv{sources}"),
            Purpose::Diff,
            " git textconv",
        ),
        entry(
            "diff.cellwright.xfuncname",
            r"^# %% \[.*$".to_owned(),
            Purpose::Diff,
            r"^# %% \[",
        ),
        entry(
            "merge.cellwright.name",
            "notebooks, cell by cell".to_owned(),
            Purpose::Merge,
            "notebooks, cell by cell",
        ),
        entry(
            "merge.cellwright.driver",
            format!(
                "{doubled} git merge --marker-size=%L --path=%P --ours=%X --theirs=%Y -- %O %A %B"
            ),
            Purpose::Merge,
            " git merge ",
        ),
        entry(
            "filter.cellwright.clean",
            format!("{doubled} git clean --path=%f"),
            Purpose::Clean,
            " git clean",
        ),
        entry(
            "filter.cellwright.smudge",
            "cat".to_owned(),
            Purpose::Clean,
            "cat",
        ),
        // Rather no commit than one with outputs that were to be left out.
        entry(
            "filter.cellwright.required",
            "true".to_owned(),
            Purpose::Clean,
            "true",
        ),
    ]
}

/// What an entry is set to.
pub(super) fn get(git: &Git, reach: KernelHost, key: &str) -> Result<Option<String>, Failure> {
    Ok(git.answer(["config", reach.flag(), "--get", key])?.ok())
}

/// The file that an entry stands in, as git names it.
pub(super) fn file_of(git: &Git, reach: KernelHost, key: &str) -> Result<String, Failure> {
    let answer = git.answer(["config", reach.flag(), "--show-origin", "--get", key])?;
    let file = answer.ok().and_then(|answer| {
        let (file, _) = answer.split_once('\t')?;
        Some(
            file.trim_start_matches("file:")
                .trim_matches('"')
                .to_owned(),
        )
    });
    Ok(file.unwrap_or_else(|| "the configuration of git".to_owned()))
}

/// How a shell calls this program: by its name, if that leads here.
pub(super) fn own_name() -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "Could not find out where this program is");
        failure.causes.push(error.to_string());
        failure
    })?;
    let path = env::value(env::PATH).unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join("cellwright"));
    if let Some(first) = places.find(|place| is_program(place))
        && is_same(&first, &own)
    {
        return Ok("cellwright".to_owned());
    }
    Ok(shell_quoted(&own))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    real(one).is_some() && real(one) == real(other)
}
