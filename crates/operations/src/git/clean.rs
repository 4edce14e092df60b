//! Removes outputs and execution counts from a notebook, for `git add`.

use std::borrow::Cow;
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::ipykernel::shell_quoted;
use cellwright_notebook::{FormatError, strip_file};

/// The first line of a file that git-lfs stores in the place of a large one.
const LFS_VERSION: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// Size limit of such a file in bytes, as git-lfs defines it.
const LFS_POINTER_LIMIT: usize = 1024;

/// Removes outputs and execution counts; all other bytes stay. `path` names the file in the failure.
///
/// An empty file and a pointer of git-lfs have no outputs and stay unchanged. Everything else that is not a notebook is an error,
/// so that git does not store outputs that were not found.
pub fn clean(bytes: Vec<u8>, path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    if bytes.trim_ascii().is_empty() || is_lfs_pointer(&bytes) {
        return Ok(bytes);
    }
    let stripped = match strip_file(&bytes) {
        Ok(Cow::Owned(stripped)) => Some(stripped),
        // The notebook has no outputs.
        Ok(Cow::Borrowed(_)) => None,
        Err(error) => return Err(not_cleaned(&bytes, &error, path)),
    };
    Ok(stripped.unwrap_or(bytes))
}

fn is_lfs_pointer(bytes: &[u8]) -> bool {
    let is_small = bytes.len() < LFS_POINTER_LIMIT;
    let rest = bytes.strip_prefix(LFS_VERSION);
    is_small && rest.is_some_and(|rest| rest.windows(11).any(|text| text == b"oid sha256:"))
}

fn not_cleaned(bytes: &[u8], error: &FormatError, path: Option<&Path>) -> Failure {
    let name = path.unwrap_or(Path::new("the notebook on stdin"));
    let argument = path.map_or("PATH".to_owned(), shell_quoted);
    let message = format!(
        "The outputs of {} could not be removed, so it is not added",
        name.display()
    );
    let mut failure = Failure::new(Kind::BadNotebook, message);
    match conflict_line(bytes) {
        Some(line) => {
            failure
                .causes
                .push(format!("line {line}: a conflict marker of git"));
            failure = failure.hint(format!(
                "`git checkout --merge {argument}` repeats an unfinished merge, cell by cell"
            ));
        }
        None => failure
            .causes
            .push(format!("it is not a notebook: {error}")),
    }
    failure.hint(format!(
        "`git -c filter.cellwright.clean=cat add {argument}` adds it as it is, with its outputs"
    ))
}

/// The number of the first line that `git merge` adds between two versions, from 1.
fn conflict_line(bytes: &[u8]) -> Option<usize> {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let at = lines.position(|line| line.starts_with(b"<<<<<<< "))?;
    let has_end = lines.any(|line| line.starts_with(b">>>>>>> "));
    has_end.then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> Failure {
        clean(text.into(), Some(Path::new("my notes.ipynb"))).unwrap_err()
    }

    #[test]
    fn files_without_outputs_stay() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        let notebook = r#"{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
        for text in ["", " \n", pointer, notebook] {
            assert_eq!(clean(text.into(), None).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_rejected_with_a_way_to_add_it() {
        let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
        let deep =
            format!(r#"{{"cells": [], "metadata": {deep}, "nbformat": 4, "nbformat_minor": 5}}"#);
        for text in [
            "{}",
            "[]",
            "no notebook",
            "\u{feff}\u{feff}{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}",
            r#"{"cells": [], "metadata": {}, "nbformat": 5, "nbformat_minor": 0}"#,
            r#"{"cells": ["#,
            &deep,
            "version https://git-lfs.github.com/spec/v1\n",
        ] {
            let failure = failure(text);
            assert!(
                failure.causes[0].starts_with("it is not a notebook: "),
                "{failure:?}"
            );
            assert!(failure.message.contains("my notes.ipynb"));
            assert!(format!("{:?}", failure.hints).contains("clean=cat add 'my notes.ipynb'"));
        }
    }

    #[test]
    fn conflict_markers_are_named() {
        let failure = failure("{\"cells\": [\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> topic\n]}\n");
        assert_eq!(failure.causes, ["line 2: a conflict marker of git"]);
        assert!(format!("{:?}", failure.hints).contains("git checkout --merge"));
    }
}
