//! [`InstalledKernel`]: an installed kernelspec, and whether it can be started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_jupyter::kernelspec::{self, Kernelspec, KernelspecEntry, KernelspecError};
use cellwright_jupyter::paths::JupyterPaths;

use super::jupyter::search_path;
use crate::ipykernel::{self, IpykernelStatus};
use crate::project_interpreter::ProjectInterpreter;

/// An installed kernelspec.
#[derive(Debug)]
pub struct InstalledKernel {
    pub name: String,
    /// The directory of the kernelspec.
    pub dir: PathBuf,
    /// `None` if it is invalid.
    pub kernelspec: Option<Kernelspec>,
    /// The program that it starts.
    pub program: Option<PathBuf>,
    /// Why it cannot be started.
    pub problem: Option<KernelProblem>,
}

/// Why a kernel cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelProblem {
    Kernelspec(KernelspecError),
    NoIpykernel {
        python: PathBuf,
    },
    /// The interpreter could not be run.
    PythonFailed {
        python: PathBuf,
        reason: String,
    },
}

impl std::fmt::Display for KernelProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kernelspec(fault) => fault.fmt(f),
            Self::NoIpykernel { python } => write!(f, "{} has no ipykernel", python.display()),
            Self::PythonFailed { python, reason } => write!(f, "{}: {reason}", python.display()),
        }
    }
}

/// Lists every installed kernelspec. Checks the interpreters that need ipykernel unless `skip_check`, but starts none of the
/// environment of `unknown`.
pub fn list_installed(
    paths: &JupyterPaths,
    env: &[(OsString, OsString)],
    python: Option<&Path>,
    skip_check: bool,
    unknown: Option<&ProjectInterpreter>,
) -> io::Result<Vec<InstalledKernel>> {
    let path = search_path(env);
    let entries = kernelspec::list(paths).into_iter();
    let mut kernels: Vec<InstalledKernel> = entries
        .map(|entry| installed_kernel(entry, &path, python))
        .collect();
    if skip_check {
        return Ok(kernels);
    }
    let mut pythons: Vec<PathBuf> = kernels
        .iter()
        .filter_map(InstalledKernel::interpreter)
        .filter(|python| !unknown.is_some_and(|unknown| unknown.contains(python)))
        .collect();
    pythons.sort();
    pythons.dedup();
    let statuses = ipykernel::query_status(&pythons, env)?;
    for kernel in &mut kernels {
        let Some(python) = kernel.interpreter() else {
            continue;
        };
        let index = pythons.iter().position(|other| *other == python);
        kernel.problem = match index.and_then(|index| statuses.get(index)) {
            Some(IpykernelStatus::Missing) => Some(KernelProblem::NoIpykernel { python }),
            Some(IpykernelStatus::Unknown { reason }) => Some(KernelProblem::PythonFailed {
                python,
                reason: reason.clone(),
            }),
            _ => None,
        };
    }
    Ok(kernels)
}

fn installed_kernel(
    entry: KernelspecEntry,
    path: &[PathBuf],
    python: Option<&Path>,
) -> InstalledKernel {
    let mut kernel = InstalledKernel {
        name: entry.name,
        dir: entry.dir,
        kernelspec: None,
        program: None,
        problem: None,
    };
    match entry.spec {
        Ok(kernelspec) => {
            match kernelspec.find_program(path, python) {
                Ok(program) => kernel.program = Some(program),
                Err(fault) => kernel.problem = Some(KernelProblem::Kernelspec(fault)),
            }
            kernel.kernelspec = Some(kernelspec);
        }
        Err(fault) => kernel.problem = Some(KernelProblem::Kernelspec(fault)),
    }
    kernel
}

impl InstalledKernel {
    /// The interpreter, if the kernel needs ipykernel in it.
    fn interpreter(&self) -> Option<PathBuf> {
        let kernelspec = self.kernelspec.as_ref()?;
        self.program.clone().filter(|_| kernelspec.is_ipykernel())
    }

    /// The command that starts it, shortened, and without the connection file argument of every kernel.
    pub fn command_summary(&self) -> String {
        let Some(kernelspec) = &self.kernelspec else {
            return "-".to_owned();
        };
        let mut words: Vec<String> = Vec::new();
        for argument in &kernelspec.argv {
            if argument.contains("{connection_file}") {
                // Drop the flag of the connection file, too.
                if words.len() > 1 && words.last().is_some_and(|word| word.starts_with('-')) {
                    words.pop();
                }
                continue;
            }
            words.push(argument.replace(char::is_control, " "));
        }
        if let (Some(first), Some(program)) = (words.first_mut(), &self.program) {
            *first = program.display().to_string();
        }
        shorten_middle(&words.join(" "))
    }
}

/// Omits the middle of a text that is too long for a table.
fn shorten_middle(text: &str) -> String {
    const CHARS_MAX: usize = 72;
    let count = text.chars().count();
    if count <= CHARS_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(CHARS_MAX / 2 - 1).collect();
    let tail: String = text.chars().skip(count - CHARS_MAX / 2).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_with_argv(argv: &[&str]) -> InstalledKernel {
        let mut kernelspec = Kernelspec::ipykernel(Path::new("python"));
        kernelspec.argv = argv.iter().map(|&word| word.to_owned()).collect();
        InstalledKernel {
            name: "x".to_owned(),
            dir: PathBuf::new(),
            program: Some("/bin/it".into()),
            kernelspec: Some(kernelspec),
            problem: None,
        }
    }

    #[test]
    fn command_summary_omits_the_connection_file() {
        let cases: [(&[&str], &str); 4] = [
            (
                &["it", "-m", "thing", "-f", "{connection_file}"],
                "/bin/it -m thing",
            ),
            (
                &["it", "kernel", "--conn={connection_file}"],
                "/bin/it kernel",
            ),
            (&["it", "{connection_file}"], "/bin/it"),
            (&["it", "a\nb"], "/bin/it a b"),
        ];
        for (argv, expected) in cases {
            assert_eq!(
                kernel_with_argv(argv).command_summary(),
                expected,
                "{argv:?}"
            );
        }
        let long = "x".repeat(500);
        let summary = kernel_with_argv(&["it", &long, "end"]).command_summary();
        assert!(
            summary.starts_with("/bin/it x") && summary.ends_with("x end"),
            "{summary}"
        );
        assert_eq!(summary.chars().count(), 72);
    }

    #[test]
    fn only_ipykernel_kernelspecs_need_ipykernel() {
        let needs = |argv: &[&str]| kernel_with_argv(argv).interpreter().is_some();
        assert!(needs(&[
            "python",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}"
        ]));
        assert!(needs(&[
            "python",
            "-Xfrozen_modules=off",
            "-m",
            "ipykernel"
        ]));
        assert!(!needs(&["python", "-m", "bash_kernel"]));
        assert!(!needs(&["deno", "jupyter"]));
    }
}
