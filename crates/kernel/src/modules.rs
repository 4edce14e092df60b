//! The user's own modules: `*.py` files that are run in a kernel's namespace before the first cell, from
//! a folder of the user's and from the project, as far as somebody trusts what is in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cellwright_output::{Capture, Event, Limits, Sink};

use crate::error::KernelError;
use crate::kernel::{Ending, History, Kernel, Request};
use crate::stop::Stop;

/// Larger files are no modules that somebody wrote.
pub const MAX_BYTES: u64 = 1 << 20;

/// A file to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub code: String,
}

/// What there is in the folders of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What to run, in order.
    pub modules: Vec<Module>,
    /// Files of the project that nobody has trusted as they are.
    pub untrusted: Vec<PathBuf>,
    /// Files that cannot be run.
    pub trouble: Vec<ModuleFailure>,
}

/// Why a module did not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFailure {
    /// The file.
    pub path: PathBuf,
    /// The line where it failed, if it ran.
    pub line: Option<u32>,
    /// What is wrong.
    pub what: String,
}

/// What came of running modules.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Those that failed.
    pub failures: Vec<ModuleFailure>,
    /// What they printed, which nobody would see otherwise.
    pub printed: Vec<(PathBuf, String)>,
    /// How many requests the kernel has answered for it.
    pub requests: u64,
}

/// Looks for modules: those of the user and those of the project, sorted by file name. A trusted file of
/// the project takes the place of the user's with the same name.
pub fn find(
    user: Option<&Path>,
    project: Option<&Path>,
    trusted: &dyn Fn(&Path, &[u8]) -> bool,
) -> Found {
    let mut found = Found::default();
    let mut chosen = BTreeMap::new();
    for (folder, needs_trust) in [(user, false), (project, true)] {
        let Some(folder) = folder else { continue };
        for path in listed(folder, &mut found.trouble) {
            let content = match content(&path) {
                Ok(content) => content,
                Err(what) => {
                    let line = None;
                    found.trouble.push(ModuleFailure { path, line, what });
                    continue;
                }
            };
            if needs_trust && !trusted(&path, content.as_bytes()) {
                found.untrusted.push(path);
                continue;
            }
            let name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
            let code = content;
            chosen.insert(name, Module { path, code });
        }
    }
    found.modules = chosen.into_values().collect();
    found
}

/// The `*.py` files of a folder, sorted by name; nothing if there is no such folder.
pub fn listed(folder: &Path, trouble: &mut Vec<ModuleFailure>) -> Vec<PathBuf> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                trouble.push(ModuleFailure {
                    path: folder.to_owned(),
                    line: None,
                    what: format!("the folder cannot be read: {error}"),
                });
            }
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        // What editors leave beside a file, and what is meant to be out of sight.
        .filter(|path| !path.file_name().is_some_and(is_hidden))
        .collect();
    paths.sort();
    paths
}

fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// The text of a module, or what is wrong with it. Links are followed: what counts is what is run.
pub fn content(path: &Path) -> Result<String, String> {
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if is_link && error.kind() == io::ErrorKind::NotFound => {
            return Err("it is a link that leads nowhere".to_owned());
        }
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 text (byte {at})")
    })
}

/// Runs modules, one after the other, with these variables. One that fails does not stop the others.
pub async fn load(
    kernel: &mut dyn Kernel,
    modules: &[Module],
    env: &[(String, Option<String>)],
    stop: &Stop,
) -> Result<Loaded, KernelError> {
    let mut loaded = Loaded::default();
    for module in modules {
        let request = Request {
            env: env.to_vec(),
            history: History::Silent,
            module: Some(module.path.clone()),
            ..Request::new(module.code.clone())
        };
        let mut printed = Printed(Capture::new(Limits::default(), None));
        let outcome = kernel.execute(&request, &mut printed, stop).await?;
        loaded.requests += 1;
        let failure = match outcome.ending {
            Ending::Completed | Ending::Exited { code: 0 } => None,
            Ending::Raised(traceback) => Some((
                line_of(&module.path, &traceback.lines),
                match traceback.value.as_str() {
                    "" => traceback.name,
                    value => format!("{}: {value}", traceback.name),
                },
            )),
            Ending::Exited { code } => Some((None, format!("it asked to exit with code {code}"))),
            Ending::Stopped { reason, .. } => return Err(KernelError::StoppedEarly { reason }),
        };
        if let Some((line, what)) = failure {
            let path = module.path.clone();
            loaded.failures.push(ModuleFailure { path, line, what });
        }
        let text = printed.0.finish().text;
        if !text.trim().is_empty() {
            let text = text.trim().to_owned();
            loaded.printed.push((module.path.clone(), text));
        }
    }
    Ok(loaded)
}

/// Keeps what a module shows, without the error, which is told as its failure.
struct Printed(Capture);

impl Sink for Printed {
    fn push(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Raised(_)) {
            self.0.push(event);
        }
    }
}

/// The line of the file in which it failed: the last one that a traceback names.
fn line_of(path: &Path, traceback: &[String]) -> Option<u32> {
    let mark = format!("\"{}\", line ", path.display());
    traceback.iter().rev().find_map(|line| {
        let (_, rest) = line.split_once(&mark)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(found: &Found) -> Vec<String> {
        let name = |module: &Module| module.code.trim().to_owned();
        found.modules.iter().map(name).collect()
    }

    #[test]
    fn files_come_in_order_and_a_trusted_one_of_the_project_wins() {
        let folder = tempfile::tempdir().unwrap();
        let (user, project) = (folder.path().join("user"), folder.path().join("project"));
        for (folder, files) in [
            (&user, ["b.py", "a.py", "c.py"]),
            (&project, ["c.py", "a.py", "d.py"]),
        ] {
            fs::create_dir(folder).unwrap();
            for file in files {
                let whose = folder.file_name().unwrap().to_string_lossy();
                fs::write(folder.join(file), format!("{whose} {file}\n")).unwrap();
            }
            fs::write(folder.join("notes.txt"), "no module").unwrap();
            fs::write(folder.join(".#a.py"), "a lock of an editor").unwrap();
        }
        let all = find(Some(&user), Some(&project), &|_, _| true);
        assert_eq!(
            names(&all),
            ["project a.py", "user b.py", "project c.py", "project d.py"]
        );
        let only_c =
            |path: &Path, content: &[u8]| path.ends_with("c.py") && content == b"project c.py\n";
        let some = find(Some(&user), Some(&project), &only_c);
        assert_eq!(names(&some), ["user a.py", "user b.py", "project c.py"]);
        assert_eq!(some.untrusted, [project.join("a.py"), project.join("d.py")]);
        assert_eq!(
            find(None, Some(&folder.path().join("none")), &|_, _| true),
            Found::default()
        );
    }

    #[test]
    fn what_cannot_be_a_module_is_told_and_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good.py"), "good").unwrap();
        symlink(path("good.py"), path("linked.py")).unwrap();
        symlink(path("nowhere"), path("dangling.py")).unwrap();
        fs::create_dir(path("folder.py")).unwrap();
        fs::write(path("latin.py"), b"x = '\xe4'").unwrap();
        fs::write(path("large.py"), vec![b'#'; (1 << 20) + 1]).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe.py"))
            .status();
        assert!(made.unwrap().success());
        let found = find(Some(folder.path()), None, &|_, _| false);
        assert_eq!(names(&found), ["good", "good"]);
        let told: Vec<(String, &str)> = found
            .trouble
            .iter()
            .map(|one| {
                (
                    one.path.file_name().unwrap().to_string_lossy().into_owned(),
                    one.what.as_str(),
                )
            })
            .collect();
        let expected = [
            ("dangling.py", "it is a link that leads nowhere"),
            ("folder.py", "it is not a file"),
            ("large.py", "it is larger than 1 MiB"),
            ("latin.py", "it is not UTF-8 text (byte 5)"),
            ("pipe.py", "it is not a file"),
        ];
        let expected = expected.map(|(name, what)| (name.to_owned(), what));
        assert_eq!(told, expected);
    }

    #[test]
    fn the_line_is_the_last_one_in_the_file() {
        let lines: Vec<String> = [
            "Traceback (most recent call last):",
            "  File \"/m/a.py\", line 7, in <module>",
            "    f()",
            "  File \"/m/a.py\", line 12, in f",
            "  File \"/lib/json.py\", line 99, in loads",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(line_of(Path::new("/m/a.py"), &lines), Some(12));
        assert_eq!(line_of(Path::new("/m/b.py"), &lines), None);
    }
}
