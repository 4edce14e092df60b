//! `git setup`: writes what git needs to know, and takes it back.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use etcetera::BaseStrategy;
use serde::Serialize;

use super::attributes::Without;
use super::program::Git;
use super::settings::{self, Entry, KernelHost, WROTE_LINE};
use super::{attributes, check};
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice};

/// Arguments of `git setup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes entries into git's configuration and a line for *.ipynb into .gitattributes: `git diff`
shows notebooks as text, `git merge` puts them together by cell. With --clean, what is committed
has no outputs and no execution counts; files on disk keep theirs. It says what it wrote, does
nothing twice, and takes back with --undo exactly what it wrote.
Commit .gitattributes; whoever clones the repository runs `cellwright git setup` once.

Exit codes of --check: 0 all is set up; 1 something is missing.

Examples:
  cellwright git setup
  cellwright git setup --clean
  cellwright git setup --global
  cellwright git setup --check
  cellwright git setup --undo")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(super) struct SetupArgs {
    /// For all your repositories, instead of this one
    #[arg(long)]
    global: bool,
    /// Leave outputs and execution counts out of what is committed
    #[arg(long, conflicts_with_all = ["undo", "check"])]
    clean: bool,
    /// Take back what was written
    #[arg(long, conflicts_with = "check")]
    undo: bool,
    /// Write nothing; say what is set up and what is missing
    #[arg(long)]
    check: bool,
}

/// What `git setup` answers.
#[derive(Debug, Serialize)]
struct SetupAnswer {
    action: &'static str,
    /// The repository, unless it is about all of them.
    repository: Option<String>,
    steps: Vec<Step>,
    next: Vec<String>,
    notices: Vec<UserNotice>,
}

/// One entry or line.
#[derive(Debug, Serialize)]
struct Step {
    done: Done,
    file: String,
    entry: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Done {
    Wrote,
    Removed,
    /// As wanted before.
    Unchanged,
    /// Not ours, so not touched.
    Left,
}

impl SetupAnswer {
    fn show(&self, screen: &Console) -> Result<(), Failure> {
        if screen.json {
            return screen.print_json(self);
        }
        let mut text = String::new();
        for step in &self.steps {
            let word = match step.done {
                Done::Wrote => "wrote",
                Done::Removed => "removed",
                Done::Left => "left",
                Done::Unchanged => continue,
            };
            text.push_str(&format!("{word:<8} {}: {}\n", step.file, step.entry));
        }
        screen.print(&text)?;
        if text.is_empty() {
            screen.note(match self.action {
                "undo" => "nothing to take back",
                _ => "nothing to do: it is set up already",
            });
        }
        screen.print_notices(&self.notices);
        for next in &self.next {
            screen.note(&format!("next: {next}"));
        }
        Ok(())
    }
}

/// Where things are written.
pub(super) struct Place {
    pub(super) git: Git,
    pub(super) reach: KernelHost,
    pub(super) attributes: PathBuf,
    /// The same, as it is told.
    pub(super) attributes_name: String,
}

impl Place {
    fn of(args: &SetupArgs) -> Result<Self, Failure> {
        if args.global {
            let git = Git::here();
            let attributes = global_attributes(&git)?;
            return Ok(Self {
                attributes_name: attributes.display().to_string(),
                attributes,
                git,
                reach: KernelHost::Global,
            });
        }
        let git = Git::in_repository()?;
        Ok(Self {
            attributes: git.folder().join(".gitattributes"),
            attributes_name: ".gitattributes".to_owned(),
            git,
            reach: KernelHost::Repository,
        })
    }

    /// What the file of attributes holds, if there is one.
    pub(super) fn content(&self) -> Result<Option<Vec<u8>>, Failure> {
        match fs::read(&self.attributes) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unwritable("read", &error)),
        }
    }

    fn unwritable(&self, step: &str, error: &io::Error) -> Failure {
        let message = format!("Could not {step} {}", self.attributes.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    }

    fn write(&self, content: Option<&[u8]>) -> Result<(), Failure> {
        let written = match content {
            Some(content) => replace(&self.attributes, content),
            None => fs::remove_file(&self.attributes),
        };
        written.map_err(|error| self.unwritable("write", &error))
    }
}

/// Sets up, takes back or looks.
pub(super) fn setup(args: &SetupArgs, screen: &Console) -> Result<u8, Failure> {
    let place = Place::of(args)?;
    if args.check {
        return check::check(&place, screen);
    }
    let answer = if args.undo {
        undo(&place)?
    } else {
        write(&place, args.clean)?
    };
    answer.show(screen)?;
    Ok(0)
}

fn write(place: &Place, clean: bool) -> Result<SetupAnswer, Failure> {
    let content = place.content()?;
    // Where the repository says that outputs stay out, they do.
    let clean = clean || content.as_deref().and_then(attributes::found) == Some(true);
    let before = check::attributes_in_use(place)?;
    let mut steps = Vec::new();
    for entry in settings::entries(&settings::own_name()?, clean) {
        steps.push(write_entry(place, &entry)?);
    }
    let mut next = Vec::new();
    let line = attributes::with_line(content.as_deref(), clean);
    if let Some(new) = &line {
        place.write(Some(new))?;
        steps.push(note_line(place)?);
        if place.reach == KernelHost::Repository {
            next.push(
                "commit .gitattributes; whoever clones runs `cellwright git setup` once".to_owned(),
            );
        }
        if clean {
            next.push(
                "`git add --renormalize '*.ipynb'` takes outputs that are committed already out of \
                 the next commit"
                    .to_owned(),
            );
        }
    }
    steps.push(Step {
        done: if line.is_some() {
            Done::Wrote
        } else {
            Done::Unchanged
        },
        file: place.attributes_name.clone(),
        entry: attributes::line(clean).to_owned(),
    });
    Ok(SetupAnswer {
        action: "setup",
        repository: repository(place),
        steps,
        next,
        notices: displaced(&before, clean, &check::attributes_in_use(place)?),
    })
}

fn repository(place: &Place) -> Option<String> {
    let is_one = place.reach == KernelHost::Repository;
    is_one.then(|| place.git.folder().display().to_string())
}

fn write_entry(place: &Place, entry: &Entry) -> Result<Step, Failure> {
    let old = settings::get(&place.git, place.reach, entry.key)?;
    let done = if old.as_ref() == Some(&entry.value) {
        Done::Unchanged
    } else {
        set(place, entry.key, &entry.value)?;
        Done::Wrote
    };
    Ok(Step {
        done,
        file: settings::file_of(&place.git, place.reach, entry.key)?,
        entry: format!("{} = {}", entry.key, entry.value),
    })
}

/// Remembers that the line is ours.
fn note_line(place: &Place) -> Result<Step, Failure> {
    let is_noted = settings::get(&place.git, place.reach, WROTE_LINE)?.is_some();
    if !is_noted {
        set(place, WROTE_LINE, "true")?;
    }
    Ok(Step {
        done: if is_noted {
            Done::Unchanged
        } else {
            Done::Wrote
        },
        file: settings::file_of(&place.git, place.reach, WROTE_LINE)?,
        entry: format!("{WROTE_LINE} = true"),
    })
}

fn set(place: &Place, key: &str, value: &str) -> Result<(), Failure> {
    let arguments = ["config", place.reach.flag(), "--replace-all", key, value];
    place.git.must(arguments).map(|_| ())
}

fn undo(place: &Place) -> Result<SetupAnswer, Failure> {
    let mut steps = Vec::new();
    let wrote_line = settings::get(&place.git, place.reach, WROTE_LINE)?.is_some();
    for entry in settings::entries(&settings::own_name()?, true) {
        let Some(value) = settings::get(&place.git, place.reach, entry.key)? else {
            continue;
        };
        let file = settings::file_of(&place.git, place.reach, entry.key)?;
        let is_ours = entry.is_ours(&value);
        if is_ours {
            unset(place, entry.key)?;
        }
        steps.push(Step {
            done: if is_ours { Done::Removed } else { Done::Left },
            file,
            entry: format!("{} = {value}", entry.key),
        });
    }
    let content = place.content()?.unwrap_or_default();
    let without = attributes::without_line(&content);
    if without != Without::Same {
        match without {
            Without::Rest(rest) if wrote_line => place.write(Some(&rest))?,
            Without::Gone if wrote_line => place.write(None)?,
            _ => {}
        }
        steps.push(Step {
            done: if wrote_line {
                Done::Removed
            } else {
                Done::Left
            },
            file: place.attributes_name.clone(),
            entry: attributes::line(attributes::found(&content) == Some(true)).to_owned(),
        });
    }
    if wrote_line {
        let file = settings::file_of(&place.git, place.reach, WROTE_LINE)?;
        unset(place, WROTE_LINE)?;
        steps.push(Step {
            done: Done::Removed,
            file,
            entry: format!("{WROTE_LINE} = true"),
        });
    }
    Ok(SetupAnswer {
        action: "undo",
        repository: repository(place),
        steps,
        next: Vec::new(),
        notices: Vec::new(),
    })
}

fn unset(place: &Place, key: &str) -> Result<(), Failure> {
    let arguments = ["config", place.reach.flag(), "--unset-all", key];
    place.git.must(arguments).map(|_| ())
}

/// Tells what our line took the place of, and what takes the place of ours.
fn displaced(
    before: &[(String, String)],
    clean: bool,
    after: &[(String, String)],
) -> Vec<UserNotice> {
    let mut told = Vec::new();
    let is_wanted = |name: &str| clean || name != "filter";
    for ((name, old), (_, new)) in before.iter().zip(after) {
        if !is_wanted(name) {
            continue;
        }
        if new != "cellwright" {
            told.push(UserNotice::new(
                NoticeKind::AttributesOverridden,
                format!(
                    "other attributes set `{name}={new}` for *.ipynb and win; `git check-attr -a \
                     x.ipynb` shows them"
                ),
            ));
        } else if old != "cellwright" && old != "unspecified" {
            told.push(UserNotice::new(
                NoticeKind::AttributesReplaced,
                format!("`{name}={old}` was used for *.ipynb before; ours takes its place"),
            ));
        }
    }
    told
}

/// The file of attributes that counts for all repositories of this user.
fn global_attributes(git: &Git) -> Result<PathBuf, Failure> {
    let known = git.answer(["var", "GIT_ATTR_GLOBAL"])?.ok();
    // Older ones do not know that word.
    let known = match known {
        Some(path) => Some(path),
        None => git
            .answer([
                "config",
                "--global",
                "--type=path",
                "--get",
                "core.attributesFile",
            ])?
            .ok(),
    };
    if let Some(path) = known.filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let base = etcetera::choose_base_strategy().map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "There is no home folder");
        failure.causes.push(error.to_string());
        failure.hint("set HOME")
    })?;
    Ok(base.config_dir().join("git/attributes"))
}

/// Replaces a file in one step; links lead to what is replaced.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let Ok(path) = path.canonicalize() else {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        return fs::write(path, content);
    };
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    let permissions = fs::metadata(&path)?.permissions();
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
