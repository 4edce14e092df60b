//! Removes outputs and execution counts from a notebook, for `git add`.

use std::borrow::Cow;
use std::path::Path;

use cellwright_diagnostics::notice::UserNotice;
use cellwright_notebook::{Notebook, strip_outputs};

use super::not_a_notebook;

/// A notebook without outputs; or the same bytes with a notice, if they are not a notebook.
#[derive(Debug)]
pub struct CleanResult {
    pub bytes: Vec<u8>,
    pub notice: Option<UserNotice>,
}

/// Removes outputs and execution counts; all other bytes stay. `path` names the file in the notice.
pub fn clean(bytes: Vec<u8>, path: Option<&Path>) -> CleanResult {
    match Notebook::parse(&bytes[..]) {
        Ok(notebook) => {
            let stripped = match strip_outputs(&notebook) {
                Cow::Owned(stripped) => Some(stripped),
                // The notebook has no outputs.
                Cow::Borrowed(_) => None,
            };
            CleanResult {
                bytes: stripped.unwrap_or(bytes),
                notice: None,
            }
        }
        Err(error) => {
            let path = path.unwrap_or(Path::new("standard input"));
            let notice = not_a_notebook(path, &error, "it is copied unchanged");
            CleanResult {
                bytes,
                notice: Some(notice),
            }
        }
    }
}
