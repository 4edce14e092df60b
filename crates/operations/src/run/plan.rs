//! [`RunPlan`]: the edits to make and the cells to run.

use std::path::Path;

use cellwright_diagnostics::failure::{Failure, Kind, capitalize, flag_value, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::parameters::{
    INJECTED_TAG, Injection, InjectionPoint, Parameter, TaggedCell, assigned_parameters,
    plan_injection, unknown_names,
};
use cellwright_execution::{
    CellFreshness, CellSelection, Edit, ExecutionHistory, Freshness, Listing, NotebookPreview,
    PlannedCells, PreviewError, describe_cells, preview as preview_notebook,
};
use cellwright_host::kernel_host::KernelHost;
use cellwright_notebook::{CellKind, Cells};

use super::RunRequest;
use crate::file_path::FilePath;
use crate::freshness;

/// The edits to make and the cells to run.
pub(super) struct RunPlan {
    pub(super) revision: String,
    pub(super) listing: Listing,
    pub(super) edits: Vec<Edit>,
    pub(super) cells: PlannedCells,
    /// Indexes of the earlier cells that have not run on the kernel.
    pub(super) missing_cells: Vec<usize>,
    pub(super) notices: Vec<UserNotice>,
}

impl RunPlan {
    pub(super) fn new(
        request: &RunRequest,
        path: &FilePath,
        session_dir: &Path,
        kernels: &KernelHost,
    ) -> Result<Self, Failure> {
        let mut edits = request.edits.clone();
        let mut previewed = preview(path, &edits)?;
        let shown = path.display_path();
        let parameters = &request.parameters.parameters;
        let mut notices = request.parameters.notices.clone();
        let mut selected = select_cells(request, &previewed, shown)?;
        let session_states =
            || session_states(request, &previewed.listing, shown, session_dir, kernels);
        if request.stale || request.changed {
            require_session(request)?;
            let states = session_states()?;
            selected.retain(
                |&index| match states[index].as_ref().map(|cell| cell.state) {
                    Some(Freshness::Fresh) | None => false,
                    Some(Freshness::Stale) => request.stale,
                    Some(_) => true,
                },
            );
            notices.extend(describe_selection(&states, &selected));
        }
        let mut missing_cells =
            missing_cells(request, &previewed.listing, &selected, session_states)?;
        notices.extend(describe_missing_cells(request, &missing_cells));
        if !parameters.is_empty() {
            let (edit, notice) = inject_parameters(&previewed.listing, parameters)?;
            notices.extend(notice);
            edits.push(edit);
            // The selection counts cells without the injected one.
            let Injection {
                point: at,
                defaults,
            } = plan_injection(&tagged_cells(&previewed.listing));
            let (index, new) = match at {
                InjectionPoint::Replace(index) => (index, false),
                InjectionPoint::After(index) => (index + 1, true),
                InjectionPoint::Top => (0, true),
            };
            let moved = selected.iter_mut().chain(&mut missing_cells);
            for other in moved.filter(|other| new && **other >= index) {
                *other += 1;
            }
            selected.push(index);
            selected.sort_unstable();
            selected.dedup();
            previewed = preview(path, &edits)?;
            if defaults.is_none() {
                let later = selected.iter().copied().filter(|&other| other > index);
                let notice = describe_untagged(&previewed.listing, parameters, index, later);
                notices.push(notice);
            }
        }
        let NotebookPreview {
            revision, listing, ..
        } = previewed;
        Ok(Self {
            revision: request.revision.clone().unwrap_or(revision),
            cells: PlannedCells::runnable(&listing, selected),
            missing_cells,
            listing,
            edits,
            notices,
        })
    }
}

/// Reads the notebook as it will be after the edits.
fn preview(path: &FilePath, edits: &[Edit]) -> Result<NotebookPreview, Failure> {
    preview_notebook(path.open_path(), edits).map_err(|error| match error {
        PreviewError::Notebook(error) => path.change_failure(error),
        error => cellwright_execution::preview_failure(error),
    })
}

/// Only sessions know which cells ran.
fn require_session(request: &RunRequest) -> Result<(), Failure> {
    if request.session.is_some() {
        return Ok(());
    }
    let selection = if request.stale { "stale" } else { "changed" };
    let message = format!("The selection of {selection} cells needs a session");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint(hint![
        "a kernel without a session has no history; name a session with ",
        flag_value("session", "NAME"),
    ]))
}

/// The freshness of each cell in the session of the request. Without a session, no cell has run.
fn session_states(
    request: &RunRequest,
    listing: &Listing,
    path: &Path,
    session_dir: &Path,
    kernels: &KernelHost,
) -> Result<Vec<Option<CellFreshness>>, Failure> {
    if let Some(session) = request.session.as_deref().filter(|_| !request.restart)
        && let Some(known) =
            freshness::session_history(kernels, path, Some((session, session_dir)))?
    {
        return Ok(known.states(listing));
    }
    Ok(ExecutionHistory::default().freshness(listing, None))
}

/// The cells before the last selected one that are not selected and have not run on the kernel.
fn missing_cells(
    request: &RunRequest,
    listing: &Listing,
    selected: &[usize],
    states: impl FnOnce() -> Result<Vec<Option<CellFreshness>>, Failure>,
) -> Result<Vec<usize>, Failure> {
    let end = selected.last().copied().unwrap_or(0);
    let is_code = |index: &usize| listing.kind(*index) == CellKind::Code;
    let earlier =
        || (0..end).filter(|index| is_code(index) && selected.binary_search(index).is_err());
    // Nothing is known about the cells that ran on a kernel of another program.
    if request.kernel.existing.is_some() || earlier().next().is_none() {
        return Ok(Vec::new());
    }
    let states = states()?;
    let not_run = [Freshness::NeverRun, Freshness::OtherKernel];
    let not_run = |index: &usize| {
        let cell = states[*index].as_ref();
        cell.is_some_and(|cell| not_run.contains(&cell.state))
    };
    Ok(earlier().filter(not_run).collect())
}

/// Number of selected cells that the notice about them names.
const DESCRIBED_CELLS_MAX: usize = 10;

/// Why each cell was selected that is not fresh.
fn describe_selection(states: &[Option<CellFreshness>], selected: &[usize]) -> Option<UserNotice> {
    let describe = |&index: &usize| {
        let state = states[index].as_ref()?;
        Some(format!("cell {index} {}", freshness::describe(state)))
    };
    let cells: Vec<String> = selected.iter().filter_map(describe).collect();
    let mut text = cells
        .iter()
        .take(DESCRIBED_CELLS_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if cells.len() > DESCRIBED_CELLS_MAX {
        text.push_str(&format!("; {} more", cells.len() - DESCRIBED_CELLS_MAX));
    }
    (!cells.is_empty())
        .then(|| UserNotice::new(NoticeKind::StaleCells, format!("not fresh: {text}")))
}

fn describe_missing_cells(request: &RunRequest, missing: &[usize]) -> Option<UserNotice> {
    if missing.is_empty() {
        return None;
    }
    let verb = if missing.len() == 1 { "has" } else { "have" };
    let cells = describe_cells(missing);
    let (kind, place) = match &request.session {
        None => (NoticeKind::CellsNotRun, "on this kernel".to_owned()),
        Some(session) => {
            let place = format!("on the kernel of session {session}");
            (NoticeKind::SessionCellsNotRun, place)
        }
    };
    let text = format!("{cells} {verb} not run {place}");
    Some(UserNotice::new(kind, text))
}

/// The notice that no cell holds the defaults, and which of the cells that run after the injected cell `index` override
/// a parameter.
fn describe_untagged(
    listing: &Listing,
    parameters: &[Parameter],
    index: usize,
    later: impl Iterator<Item = usize>,
) -> UserNotice {
    let mut text = format!("no cell is tagged `parameters`; the values are set in cell {index}");
    for cell in later {
        let names = assigned_parameters(parameters, &listing.source(cell));
        if !names.is_empty() {
            let id = listing.id(cell);
            let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
            let names = names.join(", ");
            text.push_str(&format!(
                "; cell {cell}{id} assigns {names} and overrides the value"
            ));
        }
    }
    UserNotice::new(NoticeKind::NoParametersCell, text)
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
    // An edit without a selection runs the edited cells; with `stale`, also the cells that they make stale.
    let with_parameters = !request.parameters.parameters.is_empty();
    let by_freshness = request.stale || request.changed;
    if selection.is_all() && edited().next().is_some() && !with_parameters && !by_freshness {
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
    let Injection { point, defaults } = plan_injection(&tagged_cells(listing));
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
        tags: Some(vec![INJECTED_TAG.to_owned()]),
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

/// The cells with the properties that decide where parameters are.
pub(crate) fn tagged_cells(listing: &Listing) -> Vec<TaggedCell> {
    let cell = |index: usize| TaggedCell {
        index,
        is_code: listing.kind(index) == CellKind::Code,
        tags: listing.cell_tags(index).to_vec(),
    };
    (0..listing.count()).map(cell).collect()
}
