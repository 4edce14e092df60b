//! Finds the program of a kernelspec.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::KernelspecError;

/// Whether a program name only means the selected Python interpreter, which is `python`.
pub(super) fn names_python(program: &str, python: &Path) -> bool {
    match program {
        "python" | "python3" => true,
        _ => minor_version(program).is_some_and(|minor| {
            // An interpreter of another version is not meant.
            interpreter_minor_version(python).is_none_or(|known| known == minor)
        }),
    }
}

/// The minor version in a name such as `python3.11`.
fn minor_version(name: &str) -> Option<&str> {
    let minor = name.strip_prefix("python3.")?;
    let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(minor)
}

/// The minor version of an interpreter, if its file name contains it.
fn interpreter_minor_version(python: &Path) -> Option<String> {
    let real = fs::canonicalize(python).ok()?;
    minor_version(real.file_name()?.to_str()?).map(str::to_owned)
}

/// Finds a program as the system does when it starts the kernel.
pub(super) fn find(program: &Path, path: &[PathBuf]) -> Result<PathBuf, KernelspecError> {
    let missing = || KernelspecError::NoProgram {
        program: program.to_owned(),
    };
    if program.is_absolute() {
        return match fs::metadata(program) {
            Err(_) => Err(missing()),
            Ok(_) if is_executable(program) => Ok(program.to_owned()),
            Ok(_) => Err(KernelspecError::NotExecutable {
                program: program.to_owned(),
            }),
        };
    }
    if program.components().count() > 1 || program.starts_with(".") {
        return Ok(program.to_owned());
    }
    if program.as_os_str().is_empty() {
        return Err(missing());
    }
    path.iter()
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(missing)
}

fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.is_file())
        && rustix::fs::access(program, Access::EXEC_OK).is_ok()
}
