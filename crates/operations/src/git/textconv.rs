//! Renders a notebook as text for `git diff`.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_notebook::{NotebookError, Scope, parse_any_format, render_textconv};

use super::{not_a_notebook, read_file};

/// A request to render a notebook.
#[derive(Debug)]
pub struct TextconvRequest {
    pub path: PathBuf,
    pub scope: Scope,
}

/// The result of a request.
#[derive(Debug)]
pub enum TextconvResult {
    Text(String),
    /// The file is not a notebook. Git shows its bytes: with an error, it would show nothing.
    NotANotebook {
        bytes: Vec<u8>,
        notice: UserNotice,
        failure: Failure,
    },
}

/// Renders a notebook. A notebook in an old format is upgraded first.
pub fn textconv(request: &TextconvRequest) -> Result<TextconvResult, Failure> {
    let path: &Path = &request.path;
    let bytes = read_file(path)?;
    Ok(match parse_any_format(bytes.clone()) {
        Ok((notebook, _)) => TextconvResult::Text(render_textconv(&notebook, request.scope)),
        Err(error) => TextconvResult::NotANotebook {
            notice: not_a_notebook(path, &error, "it is shown unchanged"),
            failure: NotebookError::Format {
                path: path.to_owned(),
                error,
            }
            .into(),
            bytes,
        },
    })
}
