//! Renders a notebook as text for `git diff`. Git writes this text to terminals as it is, so control characters are
//! shown as symbols.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::notice::UserNotice;
use cellwright_notebook::{NotebookError, Scope, parse_any_format, render_textconv};

use cellwright_stdext::terminal_text::show_controls;

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
    /// The file is not a notebook. Git shows its text: with an error, it would show nothing.
    NotANotebook {
        text: String,
        notice: UserNotice,
        failure: Failure,
    },
}

/// Renders a notebook. A notebook in an old format is upgraded first.
pub fn textconv(request: &TextconvRequest) -> Result<TextconvResult, Failure> {
    let path: &Path = &request.path;
    let bytes = read_file(path)?;
    Ok(match parse_any_format(bytes.clone()) {
        Ok((notebook, _)) => {
            let text = render_textconv(&notebook, request.scope);
            TextconvResult::Text(show_controls(&text).into_owned())
        }
        Err(error) => TextconvResult::NotANotebook {
            notice: not_a_notebook(path, &error),
            failure: NotebookError::Format {
                path: path.to_owned(),
                error,
            }
            .into(),
            text: show_controls(&String::from_utf8_lossy(&bytes)).into_owned(),
        },
    })
}
