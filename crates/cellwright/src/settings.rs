//! [`Settings`]: what is set, and by whom. Built-in defaults, the user's file, the project's file and
//! environment variables, later ones winning; flags are the verbs' own.

mod declared;
mod error;
mod file;
mod kind;
mod near;
mod origin;
pub(crate) mod place;
mod value;

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use cellwright_kernel::environment::Choices;
use cellwright_output::{Limits, Retention};

pub(crate) use declared::{DECLARED, Declared, Topics};
pub(crate) use error::SettingsError;
pub(crate) use near::nearest;
pub(crate) use origin::{Origin, Place};
pub(crate) use value::Value;

use declared::Guard;

/// Whether the project's file with this content may do everything.
pub(crate) type IsTrusted<'a> = &'a dyn Fn(&Path, &[u8]) -> bool;

/// Where settings come from.
pub(crate) struct Sources<'a> {
    /// The user's file, if there is a place for it.
    pub(crate) user: Option<PathBuf>,
    /// The project's file, if there is one.
    pub(crate) project: Option<PathBuf>,
    /// The value of a variable, if it is set.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub(crate) is_trusted: IsTrusted<'a>,
}

/// What is set. The topics are its fields: `settings.eval.timeout`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    topics: Topics,
    entries: Vec<Entry>,
}

/// One setting with where its value came from.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) declared: &'static Declared,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// Where a project that is not trusted wanted something else.
    pub(crate) ignored: Option<Place>,
}

impl Deref for Settings {
    type Target = Topics;

    fn deref(&self) -> &Topics {
        &self.topics
    }
}

impl Default for Settings {
    /// What is built in.
    fn default() -> Self {
        Self::of(defaults())
    }
}

impl Settings {
    /// Collects everything from where it may stand.
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, SettingsError> {
        let mut entries = defaults();
        if let Some(file) = &sources.user {
            take_user(file, &mut entries)?;
        }
        if let Some(file) = &sources.project {
            take_project(file, sources.is_trusted, &mut entries)?;
        }
        take_variables(sources.variable, &mut entries)?;
        Ok(Self::of(entries))
    }

    fn of(entries: Vec<Entry>) -> Self {
        let topics = Topics::from(|name| {
            let entry = entries.iter().find(|entry| entry.declared.name == name);
            entry.map(|entry| entry.value.clone()).unwrap_or_default()
        });
        Self { topics, entries }
    }

    /// All settings, in the order of their declaration.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where the value of a setting came from.
    pub(crate) fn origin(&self, name: &str) -> &Origin {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.declared.name == name);
        entry.map_or(&Origin::Default, |entry| &entry.origin)
    }

    /// Without the helpers that Jupyter does not have, unless somebody wants them: a notebook that uses one
    /// by mistake would run here and nowhere else.
    pub(crate) fn run_like_jupyter(&mut self) {
        if *self.origin("kernel.prelude") == Origin::Default {
            self.topics.kernel.prelude = false;
        }
    }

    /// Which variables a kernel gets.
    pub(crate) fn choices(&self) -> Choices {
        Choices {
            pass: self.env.pass.clone(),
            deny: self.env.deny.clone(),
            set: self.env.set.clone().into_iter().collect(),
        }
    }

    /// What the folder of full outputs may hold.
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            bytes: self.artifacts.max_bytes,
            age: self.artifacts.max_age,
        }
    }

    /// How much of an output is shown.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            inline_bytes: self.output.head.saturating_add(self.output.tail),
            head_bytes: self.output.head,
            column_bytes: self.output.line,
            ..Limits::default()
        }
    }
}

fn defaults() -> Vec<Entry> {
    DECLARED
        .iter()
        .map(|declared| Entry {
            declared,
            value: declared.default(),
            origin: Origin::Default,
            ignored: None,
        })
        .collect()
}

fn take_user(file: &Path, entries: &mut [Entry]) -> Result<(), SettingsError> {
    let Some(text) = file::read(file)? else {
        return Ok(());
    };
    for found in file::parse(file, &text)? {
        let place = Place {
            file: file.to_owned(),
            line: found.at.line,
        };
        set(entries, found.declared, found.value, Origin::User(place));
    }
    Ok(())
}

fn take_project(
    file: &Path,
    is_trusted: IsTrusted<'_>,
    entries: &mut [Entry],
) -> Result<(), SettingsError> {
    let Some(text) = file::read(file)? else {
        return Ok(());
    };
    let found = file::parse(file, &text)?;
    // Asked only if it matters: the answer lies in a file of its own.
    let guarded = |guard| matches!(guard, Guard::Trusted | Guard::TrustedSecret);
    let trusted = found.iter().any(|found| guarded(found.declared.guard))
        && is_trusted(file, text.as_bytes());
    for found in found {
        let declared = found.declared;
        let place = Place {
            file: file.to_owned(),
            line: found.at.line,
        };
        if declared.guard == Guard::Secret {
            return Err(SettingsError::NotForProjects {
                file: file.to_owned(),
                at: found.at,
                key: declared.name,
            });
        }
        if guarded(declared.guard) && !trusted {
            for entry in entries.iter_mut() {
                if entry.declared.name == declared.name {
                    entry.ignored = Some(place.clone());
                }
            }
            continue;
        }
        let value = match found.value {
            Value::Path(path) => Value::Path(in_project(file, path)),
            other => other,
        };
        set(entries, declared, value, Origin::Project(place));
    }
    Ok(())
}

/// A path in a project's file is meant from the project's root; a bare name may be a command.
fn in_project(file: &Path, path: PathBuf) -> PathBuf {
    let joined = place::root_of(file).join(&path);
    let bare = path.components().count() == 1;
    if path.starts_with("~") || (bare && !joined.exists()) {
        return path;
    }
    joined
}

fn take_variables(
    variable: &dyn Fn(&str) -> Option<OsString>,
    entries: &mut [Entry],
) -> Result<(), SettingsError> {
    for entry in entries {
        let declared = entry.declared;
        let own = declared.own_variable();
        let first = std::iter::once(own.as_str())
            .chain(declared.variables.iter().copied())
            .find_map(|name| Some((name.to_owned(), variable(name)?)));
        let Some((name, text)) = first else {
            continue;
        };
        let value = declared.kind.read_text(&text);
        entry.value = value.ok_or_else(|| SettingsError::BadVariable {
            variable: name.clone(),
            key: declared.name,
            expected: declared.kind.expected(),
        })?;
        entry.origin = Origin::Variable(name);
    }
    Ok(())
}

fn set(entries: &mut [Entry], declared: &Declared, value: Value, origin: Origin) {
    for entry in entries {
        if entry.declared.name == declared.name {
            entry.value = value;
            entry.origin = origin;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(user: &str, project: &str, trusted: bool) -> Result<Settings, SettingsError> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("p/.cellwright")).unwrap();
        std::fs::create_dir_all(root.join("p/tools")).unwrap();
        let (user_file, project_file) = (
            root.join("config.toml"),
            root.join("p/.cellwright/config.toml"),
        );
        std::fs::write(&user_file, user).unwrap();
        std::fs::write(&project_file, project).unwrap();
        let settings = Settings::load(&Sources {
            user: Some(user_file),
            project: Some(project_file.clone()),
            variable: &|_| None,
            is_trusted: &|file, content| {
                assert_eq!(
                    (file, content),
                    (project_file.as_path(), project.as_bytes())
                );
                trusted
            },
        });
        // Seen from the project, wherever that is.
        settings.map(|mut settings| {
            let seen = settings.topics.python.interpreter.as_ref();
            let seen =
                seen.map(|path| path.strip_prefix(root.join("p")).unwrap_or(path).to_owned());
            settings.topics.python.interpreter = seen;
            settings
        })
    }

    #[test]
    fn a_project_names_programs_only_once_it_is_trusted() {
        let project = "[python]\ninterpreter = \"tools/python\"\n[eval]\ntimeout = 5";
        let wary = load("", project, false).unwrap();
        assert_eq!(wary.python.interpreter, None);
        assert_eq!(wary.eval.timeout.as_secs(), 5);
        let ignored: Vec<_> = wary
            .entries()
            .iter()
            .filter(|e| e.ignored.is_some())
            .collect();
        assert_eq!(ignored.len(), 1);
        assert_eq!(ignored[0].ignored.as_ref().unwrap().line, 2);
        let trusting = load("", project, true).unwrap();
        assert_eq!(trusting.python.interpreter, Some("tools/python".into()));
        assert!(matches!(
            trusting.origin("python.interpreter"),
            Origin::Project(_)
        ));
    }

    #[test]
    fn a_bare_name_in_a_project_is_a_command_unless_it_is_there() {
        let of = |name: &str| {
            let project = format!("python.interpreter = {name:?}");
            load("", &project, true).unwrap().python.interpreter.clone()
        };
        assert_eq!(of("python3"), Some("python3".into()));
        assert_eq!(of("tools"), Some("tools".into()));
        assert_eq!(of("/usr/bin/python3"), Some("/usr/bin/python3".into()));
        assert_eq!(of("~/python"), Some("~/python".into()));
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_protection_of_the_user_outlasts_a_project() {
        let user = "[eval]\nenabled = false\nmax_timeout = 10\n[kernel]\nmemory_limit = \"1 GB\"";
        let project = "[eval]\nenabled = true\nmax_timeout = 0\n[kernel]\nmemory_limit = 0";
        let settings = load(user, project, false).unwrap();
        assert!(!settings.eval.enabled);
        assert_eq!(settings.eval.max_timeout.as_secs(), 10);
        assert_eq!(settings.kernel.memory_limit, 1_000_000_000);
    }

    #[test]
    fn a_secret_in_a_project_is_refused_even_when_trusted() {
        let found = load("", "[gateway]\ntoken = \"x\"", true);
        assert!(matches!(
            found,
            Err(SettingsError::NotForProjects {
                key: "gateway.token",
                ..
            })
        ));
    }

    #[test]
    fn hostile_files_are_errors_and_no_panics() {
        let deep = format!("a = {}", "[".repeat(10_000));
        let texts = [
            "= 1",
            "[eval",
            "eval = 1",
            "\u{feff}x=1",
            "eval.timeout = nan",
            &deep,
        ];
        for text in texts {
            assert!(load(text, "", false).is_err(), "{text:.20}");
        }
    }
}
