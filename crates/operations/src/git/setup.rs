//! `git setup`: adds entries to git's configuration and attributes, and removes them.

use std::path::PathBuf;
use std::{fs, io};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_stdext::regular_file::{self, Links};
use etcetera::BaseStrategy;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::attributes::{self, Removal};
use super::check::{self, SetupCheck};
use super::program::Git;
use super::replace_file::replace_file;
use super::settings::{self, ATTRIBUTES_ADDED, ConfigScope, Entry};
use crate::table::Table;

/// Largest file of attributes in bytes, which is also git's limit.
const ATTRIBUTES_SIZE_LIMIT: u64 = 100 << 20;

/// A request to change the setup.
#[derive(Debug)]
pub struct SetupRequest {
    /// Whether all repositories of the user are set up, instead of that of the current directory.
    pub global: bool,
    pub action: SetupAction,
}

/// The change to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupAction {
    /// Adds entries; with `clean`, also the filter that removes outputs from commits.
    Setup { clean: bool },
    /// Removes the entries that `git setup` added.
    Undo,
}

impl Serialize for SetupAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Setup { .. } => "setup",
            Self::Undo => "undo",
        })
    }
}

/// The changes that were made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupReport {
    /// What was done.
    #[schemars(with = "String", extend("enum" = ["setup", "undo"]))]
    pub action: SetupAction,
    /// Root of the repository; `null` if all repositories of the user were set up.
    repository: Option<String>,
    /// The entries and what happened to them.
    pub steps: Vec<SetupStep>,
    /// What to do next.
    pub next: Vec<String>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

impl SetupReport {
    /// Columns: change, file, name and value of the entry. Entries that stay as they were are left out.
    pub fn table(&self) -> Table {
        let mut table = Table::new(["CHANGE", "FILE", "ENTRY", "VALUE"])
            .without_head()
            .clip_path("FILE")
            .clip("VALUE")
            .hide_first(&["FILE", "VALUE"]);
        for step in &self.steps {
            let change = match step.change {
                EntryChange::Wrote => "wrote",
                EntryChange::Removed => "removed",
                EntryChange::Left => "left",
                EntryChange::Unchanged => continue,
            };
            // `diff.cellwright.textconv = …`, or `*.ipynb diff=…`.
            let (name, value) = step.entry.split_once(' ').unwrap_or((&step.entry, ""));
            table.push([change, &step.file, name, value].map(str::to_owned));
        }
        table
    }
}

/// What happened to an entry of the configuration or a line of attributes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupStep {
    /// What happened to the entry.
    pub change: EntryChange,
    /// The file.
    pub file: String,
    /// The entry.
    pub entry: String,
}

/// The change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryChange {
    /// It was written.
    Wrote,
    /// It was removed.
    Removed,
    /// It had the right value.
    Unchanged,
    /// `git setup` did not write it, so it stays.
    Left,
}

/// The configuration and the file of attributes that are changed.
pub(super) struct SetupTarget {
    pub(super) git: Git,
    scope: ConfigScope,
    attributes: PathBuf,
    /// The file of attributes in messages.
    attributes_name: String,
}

impl SetupTarget {
    fn new(global: bool) -> Result<Self, Failure> {
        if global {
            let git = Git::in_current_dir();
            let attributes = global_attributes(&git)?;
            return Ok(Self {
                attributes_name: attributes.display().to_string(),
                attributes,
                git,
                scope: ConfigScope::Global,
            });
        }
        let git = Git::in_repository()?;
        Ok(Self {
            attributes: git.dir().join(".gitattributes"),
            attributes_name: ".gitattributes".to_owned(),
            git,
            scope: ConfigScope::Repository,
        })
    }

    /// Whether the file of attributes may be a link. Other people write the file of a repository; a link there could lead to any
    /// file of the user, and git itself does not follow it.
    fn links(&self) -> Links {
        match self.scope {
            ConfigScope::Repository => Links::Refuse,
            ConfigScope::Global => Links::Follow,
        }
    }

    /// Reads the file of attributes; `None` if it does not exist.
    pub(super) fn read_attributes(&self) -> Result<Option<Vec<u8>>, Failure> {
        match regular_file::read(&self.attributes, self.links(), ATTRIBUTES_SIZE_LIMIT) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let failure = self.attributes_failure("read", &error);
                Err(failure.hint("nothing was set up; replace it by a file, or remove it"))
            }
        }
    }

    fn attributes_failure(&self, step: &str, error: &io::Error) -> Failure {
        let message = format!("Could not {step} {}", self.attributes.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    }

    /// Writes the file of attributes; `None` removes it.
    fn write_attributes(&self, content: Option<&[u8]>) -> Result<(), Failure> {
        let written = match content {
            Some(content) => replace_file(&self.attributes, content, self.links()),
            None => fs::remove_file(&self.attributes),
        };
        written.map_err(|error| self.attributes_failure("write", &error))
    }
}

/// Carries out a request that changes the setup.
pub fn set_up(request: &SetupRequest) -> Result<SetupReport, Failure> {
    let target = SetupTarget::new(request.global)?;
    match request.action {
        SetupAction::Setup { clean } => add(&target, clean),
        SetupAction::Undo => undo(&target),
    }
}

/// Checks the setup of the repository, or with `global` that of the user.
pub fn check_setup(global: bool) -> Result<SetupCheck, Failure> {
    check::check(&SetupTarget::new(global)?)
}

fn add(target: &SetupTarget, clean: bool) -> Result<SetupReport, Failure> {
    let content = target.read_attributes()?;
    // A line with the filter stays.
    let clean = clean || content.as_deref().and_then(attributes::find_line) == Some(true);
    let before = check::attributes_in_use(target)?;
    let mut steps = Vec::new();
    for entry in settings::entries(&settings::program_name()?, clean) {
        steps.push(write_entry(target, &entry)?);
    }
    let mut next = Vec::new();
    let line = attributes::add_line(content.as_deref(), clean);
    if let Some(new) = &line {
        target.write_attributes(Some(new))?;
        steps.push(record_line(target)?);
        if target.scope == ConfigScope::Repository {
            next.push(
                "commit .gitattributes; run `cellwright git setup` once in each clone".to_owned(),
            );
        }
        if clean {
            next.push(
                "`git add --renormalize '*.ipynb'` removes outputs that are already committed from the next \
                 commit; do this on each branch, or leave a branch with outputs by \
                 `git -c filter.cellwright.clean=cat switch BRANCH`"
                    .to_owned(),
            );
        }
    }
    steps.push(SetupStep {
        change: if line.is_some() {
            EntryChange::Wrote
        } else {
            EntryChange::Unchanged
        },
        file: target.attributes_name.clone(),
        entry: attributes::line(clean).to_owned(),
    });
    Ok(SetupReport {
        action: SetupAction::Setup { clean },
        repository: repository(target),
        steps,
        next,
        notices: describe_conflicts(&before, clean, &check::attributes_in_use(target)?),
    })
}

fn repository(target: &SetupTarget) -> Option<String> {
    let is_one = target.scope == ConfigScope::Repository;
    is_one.then(|| target.git.dir().display().to_string())
}

fn write_entry(target: &SetupTarget, entry: &Entry) -> Result<SetupStep, Failure> {
    let old = settings::get(&target.git, target.scope, entry.key)?;
    let change = if old.as_ref() == Some(&entry.value) {
        EntryChange::Unchanged
    } else {
        set(target, entry.key, &entry.value)?;
        EntryChange::Wrote
    };
    Ok(SetupStep {
        change,
        file: settings::origin_file(&target.git, target.scope, entry.key)?,
        entry: format!("{} = {}", entry.key, entry.value),
    })
}

/// Records that the line was added.
fn record_line(target: &SetupTarget) -> Result<SetupStep, Failure> {
    let is_recorded = settings::get(&target.git, target.scope, ATTRIBUTES_ADDED)?.is_some();
    if !is_recorded {
        set(target, ATTRIBUTES_ADDED, "true")?;
    }
    Ok(SetupStep {
        change: if is_recorded {
            EntryChange::Unchanged
        } else {
            EntryChange::Wrote
        },
        file: settings::origin_file(&target.git, target.scope, ATTRIBUTES_ADDED)?,
        entry: format!("{ATTRIBUTES_ADDED} = true"),
    })
}

fn set(target: &SetupTarget, key: &str, value: &str) -> Result<(), Failure> {
    let arguments = ["config", target.scope.flag(), "--replace-all", key, value];
    target.git.run(arguments).map(|_| ())
}

fn undo(target: &SetupTarget) -> Result<SetupReport, Failure> {
    let mut steps = Vec::new();
    let added_line = settings::get(&target.git, target.scope, ATTRIBUTES_ADDED)?.is_some();
    for entry in settings::entries(&settings::program_name()?, true) {
        let Some(value) = settings::get(&target.git, target.scope, entry.key)? else {
            continue;
        };
        let file = settings::origin_file(&target.git, target.scope, entry.key)?;
        let is_own = entry.is_ours(&value);
        if is_own {
            unset(target, entry.key)?;
        }
        steps.push(SetupStep {
            change: if is_own {
                EntryChange::Removed
            } else {
                EntryChange::Left
            },
            file,
            entry: format!("{} = {value}", entry.key),
        });
    }
    let content = target.read_attributes()?.unwrap_or_default();
    let removal = attributes::remove_line(&content);
    if removal != Removal::Unchanged {
        match removal {
            Removal::Rest(rest) if added_line => target.write_attributes(Some(&rest))?,
            Removal::Empty if added_line => target.write_attributes(None)?,
            _ => {}
        }
        steps.push(SetupStep {
            change: if added_line {
                EntryChange::Removed
            } else {
                EntryChange::Left
            },
            file: target.attributes_name.clone(),
            entry: attributes::line(attributes::find_line(&content) == Some(true)).to_owned(),
        });
    }
    if added_line {
        let file = settings::origin_file(&target.git, target.scope, ATTRIBUTES_ADDED)?;
        unset(target, ATTRIBUTES_ADDED)?;
        steps.push(SetupStep {
            change: EntryChange::Removed,
            file,
            entry: format!("{ATTRIBUTES_ADDED} = true"),
        });
    }
    Ok(SetupReport {
        action: SetupAction::Undo,
        repository: repository(target),
        steps,
        next: Vec::new(),
        notices: Vec::new(),
    })
}

fn unset(target: &SetupTarget, key: &str) -> Result<(), Failure> {
    let arguments = ["config", target.scope.flag(), "--unset-all", key];
    target.git.run(arguments).map(|_| ())
}

/// Describes attributes that override the added line, and attributes that it overrides.
fn describe_conflicts(
    before: &[(String, String)],
    clean: bool,
    after: &[(String, String)],
) -> Vec<UserNotice> {
    let mut notices = Vec::new();
    let is_used = |name: &str| clean || name != "filter";
    for ((name, old), (_, new)) in before.iter().zip(after) {
        if !is_used(name) {
            continue;
        }
        if new != "cellwright" {
            notices.push(UserNotice::new(
                NoticeKind::AttributesOverridden,
                format!(
                    "other attributes override this with `{name}={new}` for *.ipynb; `git check-attr -a x.ipynb` \
                     shows them"
                ),
            ));
        } else if old != "cellwright" && old != "unspecified" {
            notices.push(UserNotice::new(
                NoticeKind::AttributesReplaced,
                format!("`{name}={old}` for *.ipynb is overridden by the new line"),
            ));
        }
    }
    notices
}

/// Returns the file of attributes for all repositories of the user.
fn global_attributes(git: &Git) -> Result<PathBuf, Failure> {
    let path = git.try_run(["var", "GIT_ATTR_GLOBAL"])?.ok();
    // Older versions of git do not have this variable.
    let path = match path {
        Some(path) => Some(path),
        None => git
            .try_run([
                "config",
                "--global",
                "--type=path",
                "--get",
                "core.attributesFile",
            ])?
            .ok(),
    };
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let base = etcetera::choose_base_strategy().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "There is no home directory");
        failure.causes.push(error.to_string());
        failure.hint("set HOME")
    })?;
    Ok(base.config_dir().join("git/attributes"))
}
