//! [`RunPlan`]: the edits to make and the cells to run.

use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind, capitalize, flag_value, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::parameters::{
    INJECTED_TAG, Injection, InjectionPoint, Parameter, TaggedCell, plan_injection, unknown_names,
};
use cellwright_execution::{
    CellSelection, Edit, ExecutionHistory, Freshness, Listing, NotebookPreview, PlannedCell,
    preview as preview_notebook,
};
use cellwright_host::kernel_host::KernelHost;
use cellwright_notebook::{CellKind, Cells};

use super::RunRequest;
use crate::eval::canonical;
use crate::freshness;

/// The edits to make and the cells to run.
pub(super) struct RunPlan {
    pub(super) revision: String,
    pub(super) listing: Listing,
    pub(super) edits: Vec<Edit>,
    pub(super) cells: Vec<PlannedCell>,
    pub(super) notices: Vec<UserNotice>,
}

impl RunPlan {
    pub(super) fn new(
        request: &RunRequest,
        path: &Path,
        cwd: &Path,
        kernels: &KernelHost,
    ) -> Result<Self, Failure> {
        let mut edits = request.edits.clone();
        let mut preview =
            preview_notebook(path, &edits).map_err(cellwright_execution::preview_failure)?;
        let parameters = &request.parameters.parameters;
        let mut notices = request.parameters.notices.clone();
        let mut selected = select_cells(request, &preview, path)?;
        if request.stale || request.changed {
            let states = states(request, &preview.listing, path, cwd, kernels)?;
            selected.retain(|&index| match states[index] {
                Some(Freshness::Fresh) | None => false,
                Some(Freshness::Stale) => request.stale,
                Some(_) => true,
            });
        }
        if !parameters.is_empty() {
            let (edit, notice) = inject_parameters(&preview.listing, parameters)?;
            notices.extend(notice);
            edits.push(edit);
            // The selection counts cells without the injected one.
            let at = plan_injection(&cells(&preview.listing)).point;
            let (index, new) = match at {
                InjectionPoint::Replace(index) => (index, false),
                InjectionPoint::After(index) => (index + 1, true),
                InjectionPoint::Top => (0, true),
            };
            for other in selected.iter_mut().filter(|other| new && **other >= index) {
                *other += 1;
            }
            selected.push(index);
            selected.sort_unstable();
            selected.dedup();
            preview =
                preview_notebook(path, &edits).map_err(cellwright_execution::preview_failure)?;
        }
        let NotebookPreview {
            revision, listing, ..
        } = preview;
        Ok(Self {
            revision: request.revision.clone().unwrap_or(revision),
            cells: PlannedCell::runnable(&listing, selected),
            listing,
            edits,
            notices,
        })
    }
}

/// The freshness of each cell in the requested session.
fn states(
    request: &RunRequest,
    listing: &Listing,
    path: &Path,
    cwd: &Path,
    kernels: &KernelHost,
) -> Result<Vec<Option<Freshness>>, Failure> {
    let Some(session) = &request.session else {
        let selection = if request.stale { "stale" } else { "changed" };
        let message = format!("The selection of {selection} cells needs a session");
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint(hint![
            "a kernel without a session has no history; name a session with ",
            flag_value("session", "NAME"),
        ]));
    };
    let cwd = canonical(cwd.to_owned());
    if !request.restart
        && let Some(known) = freshness::session_history(kernels, path, Some((session, &cwd)))?
    {
        return Ok(known.states(listing));
    }
    Ok(ExecutionHistory::default().freshness(listing, None))
}

/// The selected cells.
fn select_cells(
    request: &RunRequest,
    preview: &NotebookPreview,
    path: &Path,
) -> Result<Vec<usize>, Failure> {
    let edited = || preview.edited_cells.iter();
    let mut selection: CellSelection = request.selection.clone();
    if request.and_below && edited().next().is_none() {
        let message = "The cells below an edit were requested without an edit";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint(hint![
            flag_value("from", "CELL"),
            " runs a cell and all following cells",
        ]));
    }
    // An edit without a selection runs the edited cells.
    let with_parameters = !request.parameters.parameters.is_empty();
    if selection.is_all() && edited().next().is_some() && !with_parameters {
        if request.and_below {
            selection.from = edited().next().map(usize::to_string);
        } else {
            let code = |index: &&usize| preview.listing.kind(**index) == CellKind::Code;
            return Ok(edited().filter(code).copied().collect());
        }
    }
    selection
        .resolve(&preview.listing)
        .map_err(|error| cellwright_execution::selection_failure(error, path))
}

/// The edit that inserts the cell with the parameters.
fn inject_parameters(
    listing: &Listing,
    parameters: &[Parameter],
) -> Result<(Edit, Option<UserNotice>), Failure> {
    let language = listing.language().unwrap_or("python");
    let source =
        cellwright_execution::parameters::cell_source(language, parameters).map_err(|error| {
            let failure = Failure::new(Kind::BadArguments, capitalize(&error.to_string()));
            failure.hint("nothing was written, nothing ran")
        })?;
    let Injection { point, defaults } = plan_injection(&cells(listing));
    let notice = defaults.and_then(|index| {
        let unknown = unknown_names(parameters, &listing.source(index));
        (!unknown.is_empty()).then(|| {
            UserNotice::new(
                NoticeKind::UnknownParameter,
                format!(
                    "the parameters cell (cell {index}) does not define {}",
                    unknown.join(", ")
                ),
            )
        })
    });
    let insert = Edit {
        action: "insert".to_owned(),
        source: Some(source.clone()),
        tags: vec![INJECTED_TAG.to_owned()],
        ..Edit::default()
    };
    let edit = match point {
        InjectionPoint::Replace(index) => Edit::source(index.to_string(), source),
        InjectionPoint::After(index) => Edit {
            after: Some(index.to_string()),
            ..insert
        },
        InjectionPoint::Top => Edit {
            index: Some(0),
            ..insert
        },
    };
    Ok((edit, notice))
}

fn cells(listing: &Listing) -> Vec<TaggedCell> {
    let cell = |(index, cell): (usize, &cellwright_execution::ListedCell)| TaggedCell {
        index,
        is_code: cell.kind == CellKind::Code,
        tags: cell.tags.clone(),
    };
    listing.cells().iter().enumerate().map(cell).collect()
}
