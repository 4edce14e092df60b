//! Changes a notebook file: lock, load, edit (or merge), save, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tracing::debug;

use super::guard::GuardRequest;
use super::load::{self, LoadedNotebook, build_view, load_with_stamp, store_view_baseline};
use super::lock::{Lock, lock};
use super::metadata_diff::metadata_diff;
use super::os::FileStamp;
use super::save::{Chunk, ReplacedFile, SaveStep, save};
use crate::baseline::{Baseline, Baselines};
use crate::compose::{EditedNotebook, compose};
use crate::diff;
use crate::document::{Cells, Notebook};
use crate::edit::Draft;
use crate::error::{EditError, NotebookError, Notice};
use crate::merge::merge_draft;
use crate::plan::CellChangeCounts;
use crate::revision::Revision;
use crate::upgrade::{self, UpgradeOutcome};
use crate::view::{CellSummary, ViewBuilder, ViewRequest};

/// How to change a file.
#[derive(Clone, Copy, Default)]
pub struct ChangeRequest<'r> {
    /// The base revision of the edit; `None` for the current one.
    pub revision: Option<&'r str>,
    /// What to do if the file does not exist.
    pub on_missing: OnMissing,
    /// The store of earlier revisions.
    pub baselines: Option<&'r Baselines>,
    /// Asked before the file is replaced.
    pub guard: GuardRequest<'r>,
    /// Called before each step of the save. An error counts as a failure of that step; tests use
    /// this.
    pub on_step: Option<&'r dyn Fn(SaveStep) -> io::Result<()>>,
}

/// What to do if the file does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// Return an error.
    #[default]
    Fail,
    /// Start from an empty notebook in nbformat 4.5.
    Create,
}

/// The result of a change, read back from the file.
#[derive(Debug)]
pub struct ChangeOutcome {
    /// The file, after resolving symbolic links.
    pub path: PathBuf,
    /// The revision before; `None` if the file is new.
    pub before: Option<Revision>,
    /// The new revision.
    pub after: Revision,
    /// The number of cells now.
    pub count: usize,
    /// The number of cells by kind of change.
    pub tally: CellChangeCounts,
    /// The change as a unified diff of the text view.
    pub diff: String,
    /// The cell that the edit is about, after the edit.
    pub focus: Option<CellSummary>,
    /// The removed cell, before the edit.
    pub removed: Option<CellSummary>,
    /// Notices about the change.
    pub notices: Vec<Notice>,
}

/// How often to start again if another program keeps changing the file.
const ATTEMPT_LIMIT: usize = 5;

/// Applies the draft that `draft` returns to the notebook at `path`.
pub fn change(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<ChangeOutcome, NotebookError> {
    for _ in 0..ATTEMPT_LIMIT {
        let target = resolve_target(path)?;
        let changed = if target.exists {
            let _lock = lock(&target.path)?;
            let loaded = load_with_stamp(&target.path)?;
            change_loaded(&target.path, request, draft, &loaded)?
        } else if request.on_missing == OnMissing::Create && request.revision.is_none() {
            if ![path, &target.path]
                .into_iter()
                .any(load::has_notebook_extension)
            {
                return Err(NotebookError::NotANotebook {
                    path: path.to_owned(),
                });
            }
            create_notebook(&target.path, request, draft)?
        } else {
            return Err(NotebookError::NotFound {
                path: path.to_owned(),
            });
        };
        if let Some(changed) = changed {
            return Ok(changed);
        }
        debug!(path = %target.path.display(), "file changed during the save, starting again");
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}

/// Returns `None` if the file changed during the save and the change must start again.
fn change_loaded(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
    loaded: &LoadedNotebook,
) -> Result<Option<ChangeOutcome>, NotebookError> {
    let notebook = &loaded.notebook;
    let bad_edit = |error| NotebookError::Edit {
        path: path.to_owned(),
        error,
    };
    let mut draft = match request.revision {
        Some(revision) if !notebook.revision().matches_name(revision) => {
            debug!(path = %path.display(), revision, current = %notebook.revision(), "merging");
            let base = find_baseline(path, request.baselines, revision, notebook)?;
            let ours = draft(&base).map_err(bad_edit)?;
            let mut merged =
                merge_draft(&base, ours, notebook).map_err(|reason| NotebookError::Conflict {
                    path: path.to_owned(),
                    revision: revision.to_owned(),
                    current: notebook.revision(),
                    reason,
                })?;
            if !merged.plan.changes_nothing(notebook) {
                merged.notices.push(Notice::Merged {
                    with: notebook.revision(),
                });
            }
            merged
        }
        _ => draft(notebook).map_err(bad_edit)?,
    };
    draft.plan.check_metadata(notebook).map_err(bad_edit)?;
    let edited = compose(notebook, &draft.plan);
    if draft.plan.changes_nothing(notebook) || edited.is_unchanged() {
        draft.notices.push(Notice::Unchanged);
        let view = ViewBuilder::build(
            ViewRequest {
                cell: draft.focus,
                ..ViewRequest::default()
            },
            notebook,
        );
        store_view_baseline(&view, request.baselines);
        return Ok(Some(ChangeOutcome {
            path: path.to_owned(),
            before: Some(notebook.revision()),
            after: notebook.revision(),
            count: view.count,
            tally: CellChangeCounts {
                kept: view.count,
                ..CellChangeCounts::default()
            },
            diff: String::new(),
            focus: view.cell,
            removed: None,
            notices: draft.notices,
        }));
    }
    let old = ReplacedFile {
        stamp: loaded.stamp,
        metadata: &loaded.metadata,
        revision: notebook.revision(),
    };
    save_and_verify(path, request, notebook, Some(&old), draft, &edited)
}

fn create_notebook(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<Option<ChangeOutcome>, NotebookError> {
    let dir = super::os::parent_dir(path);
    if !dir.is_dir() {
        return Err(NotebookError::NoDirectory {
            path: dir.to_owned(),
        });
    }
    let notebook = Notebook::empty();
    let bad_edit = |error| NotebookError::Edit {
        path: path.to_owned(),
        error,
    };
    let draft = draft(&notebook).map_err(bad_edit)?;
    draft.plan.check_metadata(&notebook).map_err(bad_edit)?;
    let edited = compose(&notebook, &draft.plan);
    match save_and_verify(path, request, &notebook, None, draft, &edited) {
        // Another program created the file first: start again with it.
        Err(NotebookError::Exists { .. }) => Ok(None),
        other => other,
    }
}

/// Saves the file and reads it back.
fn save_and_verify(
    path: &Path,
    request: ChangeRequest<'_>,
    notebook: &Notebook,
    old: Option<&ReplacedFile<'_>>,
    draft: Draft,
    edited: &EditedNotebook<'_>,
) -> Result<Option<ChangeOutcome>, NotebookError> {
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let chunks = edited.chunks().map(Chunk::Bytes);
    let outcome = save(path, old, chunks, request.guard, on_step)?;
    let Some((revision, guard_notices, _lock)) = outcome.into_saved() else {
        return Ok(None);
    };
    let view = build_view(
        path,
        ViewRequest {
            cell: draft.focus,
            ..ViewRequest::default()
        },
    )?;
    if view.revision != revision {
        return Err(NotebookError::NotReadBack {
            path: path.to_owned(),
        });
    }
    store_view_baseline(&view, request.baselines);
    if let (Some(baselines), Some(_)) = (request.baselines, old) {
        let history = baselines.history();
        history.record_change(path, notebook.bytes(), view.revision);
    }
    let mut notices = draft.notices;
    let mut tally = CellChangeCounts::count(&draft.plan, notebook);
    tally.changed -= edited.unchanged_cells;
    tally.kept += edited.unchanged_cells;
    notices.extend(edited.notices.iter().cloned());
    notices.extend(guard_notices);
    Ok(Some(ChangeOutcome {
        path: path.to_owned(),
        before: old.map(|old| old.revision),
        after: view.revision,
        count: view.count,
        tally,
        diff: diff::unified_diff(
            notebook,
            &draft.plan,
            &edited.new_ids,
            &metadata_diff(notebook, &draft.plan, edited),
            path,
        ),
        focus: view.cell,
        removed: draft.removed.map(|index| CellSummary::new(notebook, index)),
        notices,
    }))
}

fn find_baseline(
    path: &Path,
    baselines: Option<&Baselines>,
    revision: &str,
    notebook: &Notebook,
) -> Result<Baseline, NotebookError> {
    baselines
        .and_then(|baselines| baselines.find(revision))
        .ok_or_else(|| NotebookError::Conflict {
            path: path.to_owned(),
            revision: revision.to_owned(),
            current: notebook.revision(),
            reason: "no baseline is stored for that revision, so the changes cannot be compared"
                .to_owned(),
        })
}

pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
}

/// Follows symbolic links, so that the file is replaced and not the link. Other paths stay as
/// given, because users recognise them in messages.
pub(super) fn resolve_target(path: &Path) -> Result<Target, NotebookError> {
    let failed = |source| NotebookError::Io {
        step: "find",
        path: path.to_owned(),
        source,
    };
    let missing = |path: PathBuf| Target {
        path,
        exists: false,
    };
    let is_link = |path: &Path| fs::symlink_metadata(path).map(|found| found.is_symlink());
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let target = match is_link(path) {
        Ok(false) => path.to_owned(),
        Ok(true) if super::os::is_proc_fd_path(path) => {
            let reason = "the path became a symbolic link";
            return Err(failed(io::Error::other(reason)));
        }
        Ok(true) => match fs::canonicalize(path) {
            Ok(target) => target,
            // A chain of links to a missing file: return its end. Loops are a different error.
            Err(error) if is_missing(&error) => {
                let mut end = path.to_owned();
                while is_link(&end).unwrap_or(false) {
                    let link = fs::read_link(&end).map_err(failed)?;
                    end = super::os::parent_dir(&end).join(link);
                }
                return Ok(missing(end));
            }
            Err(error) => return Err(failed(error)),
        },
        Err(error) if is_missing(&error) => return Ok(missing(path.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    // Rejected here, before a lock on a pipe could block.
    load::check_regular(&target)?;
    Ok(Target {
        path: target,
        exists: true,
    })
}

/// An existing file and its content. It stays locked until `lock` is dropped.
pub(super) struct LockedFile {
    /// The path after resolving symbolic links.
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) stamp: FileStamp,
    pub(super) metadata: fs::Metadata,
    pub(super) revision: Revision,
    pub(super) lock: Lock,
}

/// Locks and reads a file that is replaced as a whole. If its revision is not the expected one, `reason` states why the
/// changes cannot be merged.
pub(super) fn lock_and_load(
    path: &Path,
    expected: Option<&str>,
    reason: &str,
) -> Result<LockedFile, NotebookError> {
    let target = resolve_target(path)?;
    if !target.exists {
        return Err(NotebookError::NotFound {
            path: path.to_owned(),
        });
    }
    let lock = lock(&target.path)?;
    let (bytes, stamp, metadata) = load::load_bytes_with_stamp(&target.path)?;
    let revision = Revision::compute(&bytes);
    if let Some(expected) = expected.filter(|expected| !revision.matches_name(expected)) {
        return Err(NotebookError::Conflict {
            path: target.path,
            revision: expected.to_owned(),
            current: revision,
            reason: reason.to_owned(),
        });
    }
    Ok(LockedFile {
        path: target.path,
        bytes,
        stamp,
        metadata,
        revision,
        lock,
    })
}

/// Upgrades the notebook at `path` to nbformat 4.5: from nbformat 3, or by adding what 4.5
/// requires. Returns the outcome (`None` if there was nothing to do), the revision of the file, and notices.
pub fn upgrade(
    path: &Path,
    request: ChangeRequest<'_>,
) -> Result<(Option<UpgradeOutcome>, Revision, Vec<Notice>), NotebookError> {
    for _ in 0..ATTEMPT_LIMIT {
        let LockedFile {
            path,
            bytes,
            stamp,
            metadata,
            revision,
            lock: _lock,
        } = lock_and_load(path, request.revision, "an upgrade changes every cell")?;
        let path = path.as_path();
        let upgraded = upgrade::upgrade(&bytes).map_err(|error| load::format_error(path, error))?;
        let Some((upgraded, new)) = upgraded else {
            return Ok((None, revision, Vec::new()));
        };
        let old = ReplacedFile {
            stamp,
            metadata: &metadata,
            revision,
        };
        let on_step = request.on_step.unwrap_or(&|_| Ok(()));
        let outcome = save(
            path,
            Some(&old),
            std::iter::once(Chunk::Bytes(&new)),
            request.guard,
            on_step,
        )?;
        if let Some((written, notices, _lock)) = outcome.into_saved() {
            let view = build_view(path, ViewRequest::default())?;
            if view.revision != written {
                return Err(NotebookError::NotReadBack {
                    path: path.to_owned(),
                });
            }
            store_view_baseline(&view, request.baselines);
            if let Some(baselines) = request.baselines {
                baselines.history().record_change(path, &bytes, written);
            }
            return Ok((Some(upgraded), written, notices));
        }
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}
