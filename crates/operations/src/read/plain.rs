//! Reads a text file that is not a notebook.

use std::io::Read;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice;
use cellwright_engine::engine::Engine;
use cellwright_notebook::select::{self, Part, SelectError, Selector, View};
use cellwright_notebook::{Revision, file};
use cellwright_output::ByteSize;

use super::TextResult;
use crate::file_path::FilePath;

/// Larger files are rejected. In bytes.
const FILE_SIZE_MAX: u64 = 64 * 1024 * 1024;

/// Reads the file if it is not a notebook and the selector fits a text; `None` otherwise.
pub(super) fn read(
    path: &FilePath,
    selector: &Selector,
    engine: &Engine,
) -> Result<Option<TextResult>, Failure> {
    let fits = selector.view == View::Text
        && matches!(selector.part, Part::All | Part::Lines(_))
        && !selector.outputs
        && !selector.ids;
    // Errors of such files are those of notebooks; a pipe must not be opened here.
    let is_notebook = file::has_notebook_extension(path.display_path())
        || !path.open_path().is_file()
        || (starts_as_json(path) && is_notebook(path, engine));
    if is_notebook || !fits {
        return Ok(None);
    }
    let text = load(path)?;
    let revision = Revision::compute(text.as_bytes()).to_string();
    let mut notices = Vec::new();
    let text = match &selector.part {
        Part::Lines(ranges) => {
            let whole = text.strip_suffix('\n').unwrap_or(&text);
            let (text, skipped) =
                select::select_lines(whole, ranges).map_err(|error| line_failure(&error, path))?;
            notices = notice::describe(&skipped);
            text
        }
        _ => text,
    };
    Ok(Some(TextResult {
        path: path.to_text(),
        view: "file",
        revision,
        total_cells: None,
        text,
        notices,
        bytes: None,
        images: Vec::new(),
    }))
}

/// Whether the first character of the file can start a notebook.
fn starts_as_json(path: &FilePath) -> bool {
    let mut start = [0; 512];
    let count = file::open(path.open_path()).and_then(|mut file| file.read(&mut start));
    let start = &start[..count.unwrap_or(0)];
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    start.trim_ascii_start().first() == Some(&b'{')
}

fn is_notebook(path: &FilePath, engine: &Engine) -> bool {
    file::read_view(path.open_path(), None, engine.baselines.as_ref()).is_ok()
}

fn load(path: &FilePath) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("Could not read: {}", path.to_text());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(error.to_string());
        failure
    };
    let file = file::open(path.open_path()).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    file.take(FILE_SIZE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_SIZE_MAX {
        let message = format!("File too large: {}", path.to_text());
        let mut failure = Failure::new(Kind::BadFile, message);
        let size = ByteSize(size.max(bytes.len() as u64));
        let limit = ByteSize(FILE_SIZE_MAX);
        let cause = format!("it has {size}; text files are read up to {limit}");
        failure.causes.push(cause);
        return Err(failure);
    }
    // No text has a zero byte.
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(binary(path, &format!("byte {at} is zero")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        binary(path, &format!("byte {at} is not UTF-8"))
    })
}

fn binary(path: &FilePath, reason: &str) -> Failure {
    let message = format!("Not a text file: {}", path.to_text());
    let mut failure = Failure::new(Kind::BadFile, message);
    failure.causes.push(reason.to_owned());
    failure.hint("notebooks, text files in UTF-8 and artifacts can be read")
}

fn line_failure(error: &SelectError, path: &FilePath) -> Failure {
    let message = match error {
        SelectError::BeyondEnd { line, total } => {
            format!(
                "Line {line} is beyond the end of {} ({total} lines)",
                path.to_text()
            )
        }
        SelectError::EmptyNotebook => format!("The file {} is empty", path.to_text()),
        other => other.to_string(),
    };
    Failure::new(Kind::BadArguments, message)
}
