//! The part of a report that describes the saved notebook.

use cellwright_output::Outputs;
use cellwright_run::{CommitError, RecordOutcome, RunSpec, Stores};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::ExecutionRequest;
use super::duration::format_duration;
use super::report::{ExecutionReport, ExecutionStatus};
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice};

/// Outputs of one cell that are told with the answer. They are in the notebook in any case.
const CELL_OUTPUTS_MAX: usize = 256 * 1024;

/// Outputs of all cells that are told with the answer.
const ALL_OUTPUTS_MAX: usize = 8 * 1024 * 1024;

/// What a cell has put out.
#[derive(Debug)]
pub(crate) enum CellOutputs {
    /// As it was captured.
    Captured(Box<Outputs>),
    /// As it stands in the notebook.
    Written(Box<RawValue>),
}

impl Serialize for CellOutputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Captured(outputs) => outputs.serialize(serializer),
            Self::Written(outputs) => outputs.serialize(serializer),
        }
    }
}

/// The notebook, as `--json` tells it.
#[derive(Debug, Serialize)]
pub(crate) struct NotebookReport {
    path: String,
    /// Whether it was written.
    changed: bool,
    revision: Option<String>,
    /// Whether somebody else changed it meanwhile.
    merged: bool,
    /// Cells that could not be given what they put out.
    conflicts: Vec<ConflictReport>,
    /// Where that is kept.
    artifact: Option<String>,
}

#[derive(Debug, Serialize)]
struct ConflictReport {
    index: usize,
    id: Option<String>,
    why: &'static str,
}

/// What comes of a notebook of which no cell is to run: its edits are made, or it is copied.
pub(crate) fn finish_without_cells(
    wish: &ExecutionRequest,
    places: Stores,
) -> Result<ExecutionReport, Failure> {
    let mut answer = ExecutionReport::new(None, wish);
    let order = wish.notebook.as_ref();
    let told = match order.filter(|order| !order.edits.is_empty() || order.output.is_some()) {
        Some(order) => {
            let written = cellwright_run::apply_edits(order.clone(), places);
            let written = written.map_err(|error| Failure::from_run_error(error, order))?;
            answer.record_saved(&written, order);
            "no cell is to run; the notebook was written"
        }
        None => "no cell is to run, nothing written",
    };
    answer
        .notices
        .push(UserNotice::new(NoticeKind::NothingToRun, told));
    answer.close();
    Ok(answer)
}

impl ExecutionReport {
    /// The cells were not there as they had been read, or could not be edited: nothing ran.
    pub(crate) fn record_commit_failure(&mut self, error: CommitError, order: &RunSpec) {
        self.record_not_started(Failure::from_commit_error(error, order));
    }

    /// Takes what became of the notebook.
    pub(crate) fn record_saved(&mut self, written: &RecordOutcome, order: &RunSpec) {
        let path = order.output.as_ref().unwrap_or(&order.path);
        let artifact = written.artifact.map(|id| id.to_string());
        let kept = artifact.as_ref().map_or_else(
            || "what they put out could not be kept".to_owned(),
            |artifact| format!("what they put out is in {artifact}"),
        );
        let mut conflicts = Vec::new();
        for conflict in &written.conflicts {
            let why = match conflict.reason {
                cellwright_notebook::file::CellConflict::Changed => "changed",
                cellwright_notebook::file::CellConflict::Missing => "gone",
            };
            let cell = &self.cells[conflict.cell];
            // One that did not run has nothing to lose.
            if matches!(
                cell.status,
                ExecutionStatus::Skipped | ExecutionStatus::NotStarted
            ) {
                continue;
            }
            conflicts.push(ConflictReport {
                index: cell.index,
                id: cell.id.clone(),
                why,
            });
        }
        if written.merged && conflicts.is_empty() {
            let text = format!(
                "{} was changed by somebody else while its cells ran; both are in it now",
                path.display()
            );
            self.notices.push(UserNotice::new(NoticeKind::Merged, text));
        }
        for (cell, id) in &written.moved_outputs {
            let index = self.cells[*cell].index;
            let text = format!("the outputs of cell {index} are too large for the notebook: {id}");
            self.notices
                .push(UserNotice::new(NoticeKind::OutputsMoved, text));
        }
        let unwritten = match &written.failure {
            _ if written.panicked => {
                let message = "This is a bug in cellwright: the thread that writes came to grief";
                let failure = Failure::new(Kind::Bug, message);
                let path = path.display();
                Some(failure.hint(format!("what the cells put out may be missing in {path}")))
            }
            Some(error) => {
                let message = format!("What the cells put out is not in {}", path.display());
                let mut failure = Failure::new(Kind::BadFile, message);
                failure.causes.push(error.to_string());
                failure.add_causes(error);
                Some(failure.hint(kept))
            }
            None if !conflicts.is_empty() => {
                let which: Vec<String> = conflicts
                    .iter()
                    .map(|conflict| format!("{} ({})", conflict.index, conflict.why))
                    .collect();
                let message = format!(
                    "Some cells of {} were changed by somebody else while they ran",
                    path.display()
                );
                let mut failure = Failure::new(Kind::Conflict, message);
                failure
                    .causes
                    .push(format!("left as they are: cell {}", which.join(", ")));
                Some(failure.hint(kept))
            }
            None => None,
        };
        if let Some(failure) = unwritten {
            self.record_save_failure(failure);
        }
        self.attach_saved_outputs(written);
        self.notebook = Some(NotebookReport {
            path: path.display().to_string(),
            changed: written.saves > 0,
            // What could not be written is not what is there.
            revision: written
                .revision
                .filter(|_| written.failure.is_none())
                .map(|revision| revision.to_string()),
            merged: written.merged,
            conflicts,
            artifact,
        });
    }

    /// What is in the notebook is told as it stands there.
    fn attach_saved_outputs(&mut self, written: &RecordOutcome) {
        let Some(survey) = &written.survey else {
            return;
        };
        let mut told = 0;
        let mut untold = Vec::new();
        for (cell, place) in self.cells.iter_mut().zip(&written.cell_indexes) {
            let Some(place) = *place else {
                continue;
            };
            let size = survey.outputs_size(place);
            if size > CELL_OUTPUTS_MAX || told + size > ALL_OUTPUTS_MAX {
                untold.push(cell.index.to_string());
                continue;
            }
            told += size;
            let outputs = survey.outputs(place).ok();
            let text = outputs.and_then(|bytes| String::from_utf8(bytes).ok());
            let raw = text.and_then(|text| RawValue::from_string(text).ok());
            cell.outputs = raw.map(CellOutputs::Written);
        }
        if !untold.is_empty() {
            let text = format!(
                "outputs that are too large to be told here are in the notebook: cell {}",
                untold.join(", ")
            );
            self.notices
                .push(UserNotice::new(NoticeKind::OutputsOmitted, text));
        }
    }
}

impl ExecutionReport {
    /// How it went with a notebook, in a few lines.
    pub(super) fn summary(&self) -> Option<String> {
        let notebook = self.notebook.as_ref()?;
        let (mut ok, mut failed, mut skipped) = (0, 0, 0);
        for cell in &self.cells {
            match cell.status {
                _ if cell.ended_as_expected() => ok += 1,
                ExecutionStatus::Skipped
                | ExecutionStatus::NotStarted
                | ExecutionStatus::Pending => skipped += 1,
                _ => failed += 1,
            }
        }
        let all = ok + failed + skipped;
        let plural = if all == 1 { "" } else { "s" };
        let took = format_duration(self.elapsed);
        let mut lines = if ok == all {
            format!("ran {all} cell{plural} in {took}")
        } else {
            let ran = ok + failed;
            format!("ran {ran} of {all} cell{plural} in {took}: {ok} ok")
        };
        if failed > 0 {
            lines.push_str(&format!(", {failed} failed"));
        }
        if skipped > 0 {
            lines.push_str(&format!(", {skipped} not run"));
        }
        if let Some(revision) = &notebook.revision {
            let word = if notebook.changed {
                "written"
            } else {
                "unchanged"
            };
            lines.push_str(&format!(
                "\n{word}: {}\nrevision: {revision}",
                notebook.path
            ));
        }
        Some(lines)
    }
}
