//! [`preview`]: reads a notebook as it will be after edits that are not applied yet.

use std::path::Path;

use cellwright_notebook::edit::draft_sequence;
use cellwright_notebook::{Notebook, NotebookError, Slot, compose, file};

use crate::edits::{Edit, InvalidEdit, to_operations};
use crate::listing::Listing;

/// A notebook as it will be after the edits.
#[derive(Debug)]
pub struct NotebookPreview {
    /// Revision of the file, without the edits.
    pub revision: String,
    /// Cells after the edits.
    pub listing: Listing,
    /// Indexes of the cells whose source the edits set.
    pub edited_cells: Vec<usize>,
}

/// Why a notebook cannot be previewed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreviewError {
    /// The file cannot be read, or the edits do not apply to it.
    #[error(transparent)]
    Notebook(#[from] NotebookError),
    /// An edit is invalid.
    #[error(transparent)]
    Edit(#[from] InvalidEdit),
}

/// Reads a notebook and applies `edits` in memory; the file is not written.
pub fn preview(path: &Path, edits: &[Edit]) -> Result<NotebookPreview, PreviewError> {
    if edits.is_empty() {
        let survey = file::survey(path)?;
        return Ok(NotebookPreview {
            revision: survey.revision().to_string(),
            listing: Listing::from_survey(&survey),
            edited_cells: Vec::new(),
        });
    }
    let notebook = file::load(path)?;
    let draft =
        draft_sequence(&notebook, &to_operations(edits)?).map_err(|error| NotebookError::Edit {
            path: path.to_owned(),
            error,
        })?;
    draft
        .plan
        .check_metadata(&notebook)
        .map_err(|error| NotebookError::Edit {
            path: path.to_owned(),
            error,
        })?;
    let edited = compose(&notebook, &draft.plan).to_bytes();
    let after = Notebook::parse(edited).map_err(|error| NotebookError::Format {
        path: path.to_owned(),
        error,
    })?;
    let is_new = |slot: &Slot| slot.origin.is_none() || slot.source.is_some();
    let slots = draft.plan.slots.iter().enumerate();
    Ok(NotebookPreview {
        revision: notebook.revision().to_string(),
        listing: Listing::from_notebook(&after),
        edited_cells: slots
            .filter(|(_, slot)| is_new(slot))
            .map(|(index, _)| index)
            .collect(),
    })
}
