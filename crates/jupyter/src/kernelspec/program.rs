//! The program of a kernelspec.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::Fault;

/// Whether a program's name says no more than that it is the Python at hand.
pub(super) fn stands_for(program: &str, python: &Path) -> bool {
    match program {
        "python" | "python3" => true,
        _ => minor(program).is_some_and(|minor| {
            // An interpreter that is known to be of another version is not what is meant.
            version(python).is_none_or(|known| known == minor)
        }),
    }
}

/// The second number of `python3.11` and the like.
fn minor(name: &str) -> Option<&str> {
    let minor = name.strip_prefix("python3.")?;
    let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some(minor)
}

/// The second number of an interpreter's version, if its file says it.
fn version(python: &Path) -> Option<String> {
    let real = fs::canonicalize(python).ok()?;
    minor(real.file_name()?.to_str()?).map(str::to_owned)
}

/// Finds a program as it would be found when it is started.
pub(super) fn look(program: &Path, path: &[PathBuf]) -> Result<PathBuf, Fault> {
    let missing = || Fault::NoProgram {
        program: program.to_owned(),
    };
    if program.is_absolute() {
        return match fs::metadata(program) {
            Err(_) => Err(missing()),
            Ok(_) if is_executable(program) => Ok(program.to_owned()),
            Ok(_) => Err(Fault::NotExecutable {
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
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|candidate| is_executable(candidate))
        .ok_or_else(missing)
}

fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|meta| meta.is_file())
        && rustix::fs::access(program, Access::EXEC_OK).is_ok()
}
