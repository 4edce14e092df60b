//! Removes outputs and execution counts from a notebook, for `git add`.

use std::borrow::Cow;
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::ipykernel::shell_quoted;
use cellwright_notebook::{FormatError, Scope, strip_file};

use super::textconv::{TextconvRequest, TextconvResult, textconv};

/// The first line of a file that git-lfs stores in the place of a large one.
const LFS_VERSION: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// Size limit of such a file in bytes, as git-lfs defines it.
const LFS_POINTER_LIMIT: usize = 1024;

/// Removes outputs and execution counts; all other bytes stay. `path` names the file in the failure.
///
/// An empty file, a pointer of git-lfs and the text that `git blame` passes have no outputs to remove and stay unchanged. Everything else that is not a notebook is an error,
/// so that git does not store outputs that were not found.
pub fn clean(bytes: Vec<u8>, path: Option<&Path>) -> Result<Vec<u8>, Failure> {
    if bytes.trim_ascii().is_empty() || is_lfs_pointer(&bytes) {
        return Ok(bytes);
    }
    let stripped = match strip_file(&bytes) {
        Ok(Cow::Owned(stripped)) => Some(stripped),
        // The notebook has no outputs.
        Ok(Cow::Borrowed(_)) => None,
        Err(_) if path.is_some_and(|path| is_text_of(path, &bytes)) => None,
        Err(error) => return Err(not_cleaned(&bytes, &error, path)),
    };
    Ok(stripped.unwrap_or(bytes))
}

/// Whether a file is a pointer of git-lfs and nothing else: lines with the hashes and the size of a file.
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    let rest = (bytes.len() < LFS_POINTER_LIMIT)
        .then(|| bytes.strip_prefix(LFS_VERSION))
        .flatten();
    let Some(lines) = rest.and_then(|rest| std::str::from_utf8(rest).ok()) else {
        return false;
    };
    let is_hash = |value: &str| {
        let digits = value.strip_prefix("sha256:").unwrap_or_default();
        digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_size =
        |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid = |line: &str| match line.split_once(' ') {
        Some(("oid", value)) => is_hash(value),
        Some(("size", value)) => is_size(value),
        Some((key, value)) => key.starts_with("ext-") && is_hash(value),
        None => false,
    };
    lines.lines().all(is_valid) && lines.lines().any(|line| line.starts_with("oid "))
}

/// Whether `bytes` are the text that `git textconv` prints for the notebook in the working tree. `git blame` passes this text
/// to the filter, and compares the result with the texts of commits.
fn is_text_of(path: &Path, bytes: &[u8]) -> bool {
    [Scope::All, Scope::Sources].into_iter().any(|scope| {
        let path = path.to_owned();
        let text = textconv(&TextconvRequest { path, scope });
        matches!(text, Ok(TextconvResult::Text(text)) if text.as_bytes() == bytes)
    })
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
        let hash = "4d7a".repeat(16);
        let pointer = &format!(
            "version https://git-lfs.github.com/spec/v1\next-0-a sha256:{hash}\noid sha256:{hash}\nsize 12345\n"
        );
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
            &format!(
                "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 1\n{{\"outputs\": [1]}}\n",
                "4d7a".repeat(16)
            ),
            r#"{"worksheets": {"cells": [{"outputs": [1]}]}, "nbformat": 3, "nbformat_minor": 0}"#,
            r#"{"worksheets": [[{"outputs": [1]}]], "nbformat": 3, "nbformat_minor": 0}"#,
            r#"{"worksheets": [{"cells": {"a": {"outputs": [1]}}}], "nbformat": 3, "nbformat_minor": 0}"#,
            r#"{"cells": [], "worksheets": {"cells": [{"outputs": [1]}]}, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#,
            r#"{"cells": {"a": {"output": 1}}, "nbformat": 1}"#,
            r#"{"worksheets": [{"cells": [[{"outputs": [1]}]]}], "nbformat": 2}"#,
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
