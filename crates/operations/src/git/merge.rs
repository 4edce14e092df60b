//! Merges two notebooks with a common base, for `git merge`.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{UserNotice, describe_merge};
use cellwright_notebook::{
    Cells, ConflictMarkers, MergeNotice, MergedNotebook, Notebook, NotebookError, merge_three_way,
};
use cellwright_stdext::regular_file::Links;
use schemars::JsonSchema;
use serde::Serialize;

use super::read_file;
use super::replace_file::replace_file;

/// A request to merge notebooks.
#[derive(Debug)]
pub struct MergeRequest {
    /// The common base; empty if both sides created the file.
    pub base: PathBuf,
    /// Our notebook; receives the result.
    pub ours: PathBuf,
    pub theirs: PathBuf,
    /// The path of the file in messages; that of `ours` if `None`.
    pub path: Option<PathBuf>,
    pub markers: ConflictMarkers,
}

/// The result of a merge.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MergeReport {
    /// Path of the notebook.
    path: String,
    /// Whether there is no conflict.
    pub clean: bool,
    /// The conflicts.
    pub conflicts: Vec<UserNotice>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// Merges the notebooks and writes the result to `ours`. An error leaves all files unchanged.
pub fn merge(request: &MergeRequest) -> Result<MergeReport, Failure> {
    let name = request.path.as_deref().unwrap_or(&request.ours);
    let base = read_file(&request.base)?;
    let base = if base.trim_ascii().is_empty() {
        Notebook::empty()
    } else {
        parse(base, name, "the common base")?
    };
    let ours = parse(read_file(&request.ours)?, name, "ours")?;
    let theirs = parse(read_file(&request.theirs)?, name, "theirs")?;
    let merged = merge_three_way(&base, &ours, &theirs, &request.markers);
    // Git must not receive a file that is not a notebook.
    let result = parse(merged.bytes.clone(), name, "the result")?;
    if merged.bytes != ours.bytes() {
        replace_file(&request.ours, &merged.bytes, Links::Follow).map_err(|error| {
            let message = format!("Could not write {}", request.ours.display());
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(error.to_string());
            failure
        })?;
    }
    Ok(report(name, &merged, &result))
}

fn report(name: &Path, merged: &MergedNotebook, result: &Notebook) -> MergeReport {
    let id = |cell: usize| result.id(cell).map(String::from);
    let (conflicts, notices): (Vec<_>, Vec<_>) = merged
        .notices
        .iter()
        .partition(|notice| notice.is_conflict());
    let describe = |notices: Vec<&MergeNotice>| -> Vec<UserNotice> {
        let notices = notices.into_iter();
        notices
            .map(|notice| describe_merge(notice, name, &id))
            .collect()
    };
    MergeReport {
        path: name.display().to_string(),
        clean: merged.is_clean(),
        conflicts: describe(conflicts),
        notices: describe(notices),
    }
}

fn parse(bytes: Vec<u8>, name: &Path, role: &str) -> Result<Notebook, Failure> {
    Notebook::parse(bytes).map_err(|error| {
        let path = PathBuf::from(format!("{} ({role})", name.display()));
        NotebookError::Format { path, error }.into()
    })
}
