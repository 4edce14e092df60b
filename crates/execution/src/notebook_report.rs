//! Adds the saved notebook to a report.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{self, NoticeKind};
use cellwright_notebook::NotebookError;
use cellwright_notebook::file::CellConflict;
use cellwright_stdext::error_chain;
use serde_json::value::RawValue;

use super::ExecutionRequest;
use super::report::{CellOutputs, ConflictReason, ConflictReport, ExecutionReport, NotebookReport};
use super::report_builder::ReportBuilder;
use crate::{CommitError, RecordOutcome, RunSpec, Stores};

/// Size in bytes of the outputs of one cell that a report contains. The notebook contains all of them.
const CELL_OUTPUTS_MAX: usize = 256 * 1024;

/// Size in bytes of the outputs of all cells that a report contains.
const ALL_OUTPUTS_MAX: usize = 8 * 1024 * 1024;

/// Applies the edits, or writes the copy, of a notebook of which no cell runs.
pub fn finish_without_cells(
    request: &ExecutionRequest,
    stores: Stores,
) -> Result<ExecutionReport, Failure> {
    let mut builder = ReportBuilder::new(None, request);
    let spec = request.notebook.as_ref();
    let notice = match spec.filter(|spec| !spec.edits.is_empty() || spec.output.is_some()) {
        Some(spec) => {
            let outcome = crate::apply_edits(spec.clone(), stores);
            let outcome = outcome.map_err(|error| crate::run_failure(error, spec))?;
            builder.record_saved(&outcome, spec);
            "no cell is selected to run; the notebook was written"
        }
        None => "no cell is selected to run, nothing written",
    };
    builder.add_notice(NoticeKind::NothingToRun, notice);
    builder.close();
    Ok(builder.report)
}

impl ReportBuilder {
    /// Records that the cells had changed, or that the edits did not apply: no cell may start.
    pub(super) fn record_commit_failure(&mut self, error: CommitError, spec: &RunSpec) {
        self.record_not_started(crate::commit_failure(error, spec));
    }

    /// Records the result of saving the notebook.
    pub(super) fn record_saved(&mut self, outcome: &RecordOutcome, spec: &RunSpec) {
        let file = spec.written_file();
        let mut path = file.to_text();
        if let Some(now) = file.moved_to() {
            let now = now.display().to_string();
            let text = format!(
                "the directory of {path} was moved while the notebook ran; the notebook is now {now}"
            );
            self.add_notice(NoticeKind::NotebookMoved, text);
            path = now;
        }
        let conflicts = self.conflicts(outcome);
        if outcome.merged && conflicts.is_empty() {
            let text = format!(
                "another writer changed {path} while its cells ran; the file contains both changes"
            );
            self.add_notice(NoticeKind::Merged, text);
        }
        for (cell, id) in &outcome.moved_outputs {
            let index = self.report.cells[*cell].index;
            let text = format!("the outputs of cell {index} are too large for the notebook: {id}");
            self.add_notice(NoticeKind::OutputsMoved, text);
        }
        for notice in notice::describe(&outcome.notices) {
            self.add_notice(notice.kind, notice.text);
        }
        if let Some(failure) = save_failure(outcome, &conflicts, &path) {
            self.record_save_failure(failure);
        }
        self.attach_saved_outputs(outcome);
        self.report.notebook = Some(NotebookReport {
            path,
            changed: outcome.saves > 0,
            // After a failure the file has another content.
            revision: outcome
                .revision
                .filter(|_| outcome.failure.is_none())
                .map(|revision| revision.to_string()),
            merged: outcome.merged,
            conflicts,
            artifact: outcome.artifact.map(|id| id.to_string()),
        });
    }

    /// The cells that ran and whose outputs could not be saved.
    fn conflicts(&self, outcome: &RecordOutcome) -> Vec<ConflictReport> {
        let conflicts = outcome.conflicts.iter().map(|conflict| {
            let cell = &self.report.cells[conflict.cell];
            let report = ConflictReport {
                index: cell.index,
                id: cell.id.clone(),
                why: match conflict.reason {
                    CellConflict::Changed => ConflictReason::Changed,
                    CellConflict::Missing => ConflictReason::Gone,
                },
            };
            (cell, report)
        });
        conflicts
            .filter(|(cell, _)| cell.ran())
            .map(|(_, report)| report)
            .collect()
    }

    /// Replaces the outputs of the report by those in the saved notebook.
    fn attach_saved_outputs(&mut self, outcome: &RecordOutcome) {
        let Some(survey) = &outcome.survey else {
            return;
        };
        let mut total = 0;
        let mut omitted = Vec::new();
        for (cell, index) in self.report.cells.iter_mut().zip(&outcome.cell_indexes) {
            let Some(index) = *index else {
                continue;
            };
            let size = survey.outputs_size(index);
            if size > CELL_OUTPUTS_MAX || total + size > ALL_OUTPUTS_MAX {
                omitted.push(cell.index.to_string());
                continue;
            }
            total += size;
            let outputs = survey.outputs(index).ok();
            let text = outputs.and_then(|bytes| String::from_utf8(bytes).ok());
            let json = text.and_then(|text| RawValue::from_string(text).ok());
            cell.set_outputs(json.map(CellOutputs::from));
        }
        if !omitted.is_empty() {
            let text = format!(
                "outputs that are too large for this report are in the notebook: cell {}",
                omitted.join(", ")
            );
            self.add_notice(NoticeKind::OutputsOmitted, text);
        }
    }
}

/// Why the outputs are not, or not completely, in the file.
fn save_failure(
    outcome: &RecordOutcome,
    conflicts: &[ConflictReport],
    path: &str,
) -> Option<Failure> {
    let stored = outcome.artifact.map_or_else(
        || "the outputs of these cells could not be stored".to_owned(),
        |artifact| format!("the outputs of these cells are in {artifact}"),
    );
    if outcome.panicked {
        let message = "This is a bug in cellwright: the recorder thread panicked";
        let failure = Failure::new(Kind::Bug, message);
        return Some(failure.hint(format!("outputs may be missing in {path}")));
    }
    if let Some(error) = &outcome.failure {
        let message = format!("Could not save the outputs in {path}");
        let kind = match error {
            NotebookError::OpenInRoom { .. } => Kind::Conflict,
            _ => Kind::BadFile,
        };
        let mut failure = Failure::new(kind, message);
        failure.causes.push(error.to_string());
        let causes = error_chain::causes(error).map(ToString::to_string);
        failure.causes.extend(causes);
        return Some(failure.hint(stored));
    }
    if conflicts.is_empty() {
        return None;
    }
    let cells: Vec<String> = conflicts
        .iter()
        .map(|conflict| format!("{} ({})", conflict.index, conflict.why.name()))
        .collect();
    let message = format!("Another writer changed cells of {path} while they ran");
    let mut failure = Failure::new(Kind::Conflict, message);
    failure
        .causes
        .push(format!("left unchanged: cell {}", cells.join(", ")));
    Some(failure.hint(stored))
}
