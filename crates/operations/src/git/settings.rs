//! The entries in git's configuration that run this program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::env;
use cellwright_engine::ipykernel::shell_quoted;

use super::program::Git;

/// The configuration that `git setup` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigScope {
    /// That of the repository.
    Repository,
    /// That of the user, for all repositories.
    Global,
}

/// The git command that uses an entry.
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
    /// Part of every value that `git setup` writes, under any name of the program.
    mark: &'static str,
}

/// Entry that records that `git setup` added the line of attributes, so that `--undo` removes no other line.
pub(super) const ATTRIBUTES_ADDED: &str = "cellwright.attributes";

impl ConfigScope {
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Repository => "--local",
            Self::Global => "--global",
        }
    }
}

impl Entry {
    /// Whether `git setup` wrote the value.
    pub(super) fn is_ours(&self, value: &str) -> bool {
        value.contains(self.mark)
    }
}

/// The entries for a program with this name in a shell; with `clean`, also those of the filter.
pub(super) fn entries(program: &str, clean: bool) -> Vec<Entry> {
    let mut entries = all(program, clean);
    entries.retain(|entry| clean || entry.purpose != Purpose::Clean);
    entries
}

fn all(program: &str, clean: bool) -> Vec<Entry> {
    // Git also runs textconv on files on disk, which have outputs that commits do not have.
    let sources = if clean { " --sources" } else { "" };
    // Git expands `%A` and others in these values: `%` itself is doubled.
    let escaped = program.replace('%', "%%");
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
                "{escaped} git merge --marker-size=%L --path=%P --ours=%X --theirs=%Y -- %O %A %B"
            ),
            Purpose::Merge,
            " git merge ",
        ),
        entry(
            "filter.cellwright.clean",
            format!("{escaped} git clean --path=%f"),
            Purpose::Clean,
            " git clean",
        ),
        entry(
            "filter.cellwright.smudge",
            "cat".to_owned(),
            Purpose::Clean,
            "cat",
        ),
        // A failed filter stops the commit, so that no outputs are committed.
        entry(
            "filter.cellwright.required",
            "true".to_owned(),
            Purpose::Clean,
            "true",
        ),
    ]
}

/// Returns the value of an entry.
pub(super) fn get(git: &Git, scope: ConfigScope, key: &str) -> Result<Option<String>, Failure> {
    Ok(git.try_run(["config", scope.flag(), "--get", key])?.ok())
}

/// Returns the file that contains an entry, as git names it.
pub(super) fn origin_file(git: &Git, scope: ConfigScope, key: &str) -> Result<String, Failure> {
    let output = git.try_run(["config", scope.flag(), "--show-origin", "--get", key])?;
    let file = output.ok().and_then(|output| {
        let (file, _) = output.split_once('\t')?;
        Some(
            file.trim_start_matches("file:")
                .trim_matches('"')
                .to_owned(),
        )
    });
    Ok(file.unwrap_or_else(|| "the configuration of git".to_owned()))
}

/// Returns this program as a word of a shell command: its name, if PATH leads to it.
pub(super) fn program_name() -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "Could not find the path of this program");
        failure.causes.push(error.to_string());
        failure
    })?;
    let path = env::value(env::PATH).unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|dir| dir.join("cellwright"));
    if let Some(first) = candidates.find(|path| is_executable(path))
        && is_same_file(&first, &own)
    {
        return Ok("cellwright".to_owned());
    }
    Ok(shell_quoted(&own))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    real(one).is_some() && real(one) == real(other)
}
