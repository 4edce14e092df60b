//! User modules: `*.py` files that run in a kernel's namespace before the first cell. They come from the
//! user's directory and, if trusted, from the project.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_output::{Capture, Event, Limits, Sink};
use cellwright_stdext::regular_file::{self, Links};

use crate::error::KernelError;
use crate::kernel::{Ending, HistoryMode, Kernel, Request};
use crate::stop::StopSignal;

/// The maximum size of a module in bytes. A larger file is not a handwritten module.
pub const MODULE_SIZE_LIMIT: u64 = 1 << 20;

/// A module to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path.
    pub path: PathBuf,
    /// Its source.
    pub code: String,
}

/// The content of the module directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredModules {
    /// The modules to run, in order.
    pub modules: Vec<Module>,
    /// Project files whose current content is not trusted.
    pub untrusted: Vec<PathBuf>,
    /// Files that cannot be modules.
    pub failures: Vec<ModuleFailure>,
}

/// Why a module did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFailure {
    /// The file.
    pub path: PathBuf,
    /// The line where it failed, if it ran.
    pub line: Option<u32>,
    /// The error message.
    pub message: String,
}

/// The result of running modules.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// The modules that failed.
    pub failures: Vec<ModuleFailure>,
    /// The text that modules printed, by path.
    pub printed: Vec<(PathBuf, String)>,
    /// The number of requests that the kernel answered.
    pub requests: u64,
}

/// Finds the modules of the user and of the project, sorted by file name. A trusted project file replaces
/// the user's file with the same name.
pub fn discover(
    user: Option<&Path>,
    project: Option<&Path>,
    trusted: &dyn Fn(&Path, &[u8]) -> bool,
) -> DiscoveredModules {
    let mut discovered = DiscoveredModules::default();
    let mut chosen = BTreeMap::new();
    for (dir, needs_trust) in [(user, false), (project, true)] {
        let Some(dir) = dir else { continue };
        for path in list_files(dir, &mut discovered.failures) {
            let code = match read_source(&path) {
                Ok(code) => code,
                Err(message) => {
                    discovered.failures.push(ModuleFailure {
                        path,
                        line: None,
                        message,
                    });
                    continue;
                }
            };
            if needs_trust && !trusted(&path, code.as_bytes()) {
                discovered.untrusted.push(path);
                continue;
            }
            let name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
            chosen.insert(name, Module { path, code });
        }
    }
    discovered.modules = chosen.into_values().collect();
    discovered
}

/// The `*.py` files of a directory, sorted by name; empty if there is no such directory.
pub fn list_files(dir: &Path, failures: &mut Vec<ModuleFailure>) -> Vec<PathBuf> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                failures.push(ModuleFailure {
                    path: dir.to_owned(),
                    line: None,
                    message: format!("the directory cannot be read: {error}"),
                });
            }
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        // Lock and backup files of editors, and hidden files.
        .filter(|path| !path.file_name().is_some_and(is_hidden))
        .collect();
    paths.sort();
    paths
}

fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Reads the source of a module. Follows links: the target is what runs.
pub fn read_source(path: &Path) -> Result<String, String> {
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_symlink());
    let bytes = match regular_file::read(path, Links::Follow, MODULE_SIZE_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if is_link && error.kind() == io::ErrorKind::NotFound => {
            return Err("it is a broken link".to_owned());
        }
        // An error of the system.
        Err(error) if error.raw_os_error().is_some() => {
            return Err(format!("it cannot be read: {error}"));
        }
        Err(error) => return Err(error.to_string()),
    };
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 text (byte {at})")
    })
}

/// Runs modules one after the other with these environment variables. A module that fails does not stop
/// the others.
pub async fn load(
    kernel: &mut dyn Kernel,
    modules: &[Module],
    env: &[(String, Option<String>)],
    stop: &StopSignal,
) -> Result<LoadReport, KernelError> {
    let mut report = LoadReport::default();
    for module in modules {
        let request = Request {
            env: env.to_vec(),
            history: HistoryMode::Silent,
            module: Some(module.path.clone()),
            ..Request::new(module.code.clone())
        };
        let mut output = ModuleOutput(Capture::new(Limits::default(), None));
        let outcome = kernel.execute(&request, &mut output, stop).await?;
        report.requests += 1;
        let failure = match outcome.ending {
            Ending::Completed => None,
            Ending::Raised(traceback) => Some((
                failing_line(&module.path, &traceback.lines),
                match traceback.value.as_str() {
                    "" => traceback.name,
                    value => format!("{}: {value}", traceback.name),
                },
            )),
            Ending::Stopped { reason, .. } => return Err(KernelError::StoppedEarly { reason }),
        };
        if let Some((line, message)) = failure {
            let path = module.path.clone();
            report.failures.push(ModuleFailure {
                path,
                line,
                message,
            });
        }
        let text = output.0.finish().text;
        if !text.trim().is_empty() {
            let text = text.trim().to_owned();
            report.printed.push((module.path.clone(), text));
        }
    }
    Ok(report)
}

/// Captures the output of a module without the error, which is reported as its failure.
struct ModuleOutput(Capture);

impl Sink for ModuleOutput {
    fn push(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Raised(_)) {
            self.0.push(event);
        }
    }
}

/// The line at which the module failed: the last one that the traceback names for this file.
fn failing_line(path: &Path, traceback: &[String]) -> Option<u32> {
    let marker = format!("\"{}\", line ", path.display());
    traceback.iter().rev().find_map(|line| {
        let (_, rest) = line.split_once(&marker)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn sources(found: &DiscoveredModules) -> Vec<String> {
        let source = |module: &Module| module.code.trim().to_owned();
        found.modules.iter().map(source).collect()
    }

    #[test]
    fn modules_are_sorted_and_a_trusted_project_file_wins() {
        let dir = tempfile::tempdir().unwrap();
        let (user, project) = (dir.path().join("user"), dir.path().join("project"));
        for (dir, files) in [
            (&user, ["b.py", "a.py", "c.py"]),
            (&project, ["c.py", "a.py", "d.py"]),
        ] {
            fs::create_dir(dir).unwrap();
            for file in files {
                let origin = dir.file_name().unwrap().to_string_lossy();
                fs::write(dir.join(file), format!("{origin} {file}\n")).unwrap();
            }
            fs::write(dir.join("notes.txt"), "not a module").unwrap();
            fs::write(dir.join(".#a.py"), "an editor lock file").unwrap();
        }
        let all = discover(Some(&user), Some(&project), &|_, _| true);
        assert_eq!(
            sources(&all),
            ["project a.py", "user b.py", "project c.py", "project d.py"]
        );
        let only_c =
            |path: &Path, content: &[u8]| path.ends_with("c.py") && content == b"project c.py\n";
        let some = discover(Some(&user), Some(&project), &only_c);
        assert_eq!(sources(&some), ["user a.py", "user b.py", "project c.py"]);
        assert_eq!(some.untrusted, [project.join("a.py"), project.join("d.py")]);
        assert_eq!(
            discover(None, Some(&dir.path().join("none")), &|_, _| true),
            DiscoveredModules::default()
        );
    }

    #[test]
    fn files_that_cannot_be_modules_are_reported_and_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("good.py"), "good").unwrap();
        symlink(path("good.py"), path("linked.py")).unwrap();
        symlink(path("nowhere"), path("dangling.py")).unwrap();
        fs::create_dir(path("directory.py")).unwrap();
        fs::write(path("latin.py"), b"x = '\xe4'").unwrap();
        fs::write(path("large.py"), vec![b'#'; (1 << 20) + 1]).unwrap();
        let created = std::process::Command::new("mkfifo")
            .arg(path("pipe.py"))
            .status();
        assert!(created.unwrap().success());
        let found = discover(Some(dir.path()), None, &|_, _| false);
        assert_eq!(sources(&found), ["good", "good"]);
        let reported: Vec<(String, &str)> = found
            .failures
            .iter()
            .map(|failure| {
                (
                    failure
                        .path
                        .file_name()
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                    failure.message.as_str(),
                )
            })
            .collect();
        let expected = [
            ("dangling.py", "it is a broken link"),
            ("directory.py", "it is a directory"),
            ("large.py", "it is larger than 1 MiB"),
            ("latin.py", "it is not UTF-8 text (byte 5)"),
            ("pipe.py", "it is not a regular file"),
        ];
        let expected = expected.map(|(name, message)| (name.to_owned(), message));
        assert_eq!(reported, expected);
    }

    #[test]
    fn failing_line_is_the_last_one_in_the_file() {
        let lines: Vec<String> = [
            "Traceback (most recent call last):",
            "  File \"/m/a.py\", line 7, in <module>",
            "    f()",
            "  File \"/m/a.py\", line 12, in f",
            "  File \"/lib/json.py\", line 99, in loads",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(failing_line(Path::new("/m/a.py"), &lines), Some(12));
        assert_eq!(failing_line(Path::new("/m/b.py"), &lines), None);
    }
}
