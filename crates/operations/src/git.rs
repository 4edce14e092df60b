//! Git for notebooks: the setup of a repository, and the commands that git runs.

mod attributes;
pub mod check;
pub mod clean;
mod confinement;
pub mod merge;
pub mod program;
mod replace_file;
mod settings;
pub mod setup;
pub mod textconv;

pub use confinement::Confinement;

use std::fs;
use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_notebook::FormatError;

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not read {}", path.display()));
        failure.causes.push(error.to_string());
        failure
    })
}

/// The notice that a file is not a notebook.
fn not_a_notebook(path: &Path, error: &FormatError) -> UserNotice {
    let name = path.display();
    UserNotice::new(
        NoticeKind::NotANotebook,
        format!("{name} is not a notebook ({error}); it is shown as it is"),
    )
}
