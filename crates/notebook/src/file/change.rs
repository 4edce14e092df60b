//! Changes a notebook file: lock, load, edit (or merge), save, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tracing::debug;

use super::attempts::Attempts;
use super::guard::GuardRequest;
use super::load::{self, build_view, load_with_stamp, store_view_baseline};
use super::lock::{Lock, lock};
use super::metadata_diff::metadata_diff;
use super::os::FileStamp;
use super::replace::DetachedFile;
use super::save::{Chunk, ChunkWriter, ReplacedFile, SaveStep, save};
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

/// How often a program that writes into a replaced file is merged.
const LATE_WRITE_LIMIT: usize = 3;

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

/// A change that is in the file, and the file that it replaced.
type SavedChange = (ChangeOutcome, Option<DetachedFile>);

/// Applies the draft that `draft` returns to the notebook at `path`.
pub fn change(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<ChangeOutcome, NotebookError> {
    let mut attempts = Attempts::new();
    while attempts.next().is_some() {
        match try_change(path, request, draft, &mut attempts) {
            Ok(Some(changed)) => return Ok(changed),
            Ok(None) => {
                debug!(path = %path.display(), "file changed during the save, starting again");
            }
            Err(NotebookError::NotFound { .. }) if attempts.may_return() => {}
            Err(error) => return Err(error),
        }
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}

/// Returns `None` if the file changed during the save and the change must start again.
fn try_change(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
    attempts: &mut Attempts,
) -> Result<Option<ChangeOutcome>, NotebookError> {
    let target = resolve_target(path)?;
    let changed = if target.exists {
        attempts.found();
        let _lock = lock(&target.path, request.baselines)?;
        let loaded = load_with_stamp(&target.path)?;
        let old = loaded.to_replace();
        change_loaded(&target.path, request, draft, &loaded.notebook, &old)?
    } else if request.on_missing == OnMissing::Create && request.revision.is_none() {
        // A link in a project of other people may lead to any place.
        if !load::has_notebook_extension(&target.path) {
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
    Ok(changed.map(|(changed, detached)| {
        merge_late_writes(&target.path, request, draft, changed, detached)
    }))
}

/// Makes the change again on what another program wrote into the file that was replaced. If that is not possible,
/// stores its text for an undo and reports it.
fn merge_late_writes(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
    mut changed: ChangeOutcome,
    detached: Option<DetachedFile>,
) -> ChangeOutcome {
    let mut files = Vec::from_iter(detached);
    for attempt in 0..=LATE_WRITE_LIMIT {
        let late = files
            .iter_mut()
            .find_map(|file| Some((file.changed_revision().ok()??, file.read().ok()?)));
        let Some((revision, content)) = late else {
            break;
        };
        debug!(path = %path.display(), %revision, "another program wrote into the replaced file");
        let merge = || {
            let notebook = Notebook::parse(content.clone()).ok()?;
            let _lock = lock(path, request.baselines).ok()?;
            let current = load_with_stamp(path).ok()?;
            if current.notebook.revision() != changed.after {
                return None;
            }
            change_loaded(path, request, draft, &notebook, &current.to_replace()).ok()?
        };
        if attempt < LATE_WRITE_LIMIT
            && let Some((mut merged, detached)) = merge()
        {
            let notice = Notice::Merged { with: revision };
            if !merged.notices.contains(&notice) {
                merged.notices.push(notice);
            }
            changed = merged;
            files.extend(detached);
        } else {
            let baselines = request.baselines;
            let notice = store_late_write(path, baselines, &content, changed.after);
            changed.notices.push(notice);
        }
    }
    changed
}

/// Reports what another program wrote into the file that was replaced.
pub(super) fn report_late_write(
    path: &Path,
    baselines: Option<&Baselines>,
    detached: Option<DetachedFile>,
    after: Revision,
) -> Option<Notice> {
    let mut detached = detached?;
    detached.changed_revision().ok()??;
    let content = detached.read().ok()?;
    Some(store_late_write(path, baselines, &content, after))
}

/// Stores the text of another program as the state before `after`.
pub(super) fn store_late_write(
    path: &Path,
    baselines: Option<&Baselines>,
    content: &[u8],
    after: Revision,
) -> Notice {
    let stored = baselines.is_some_and(|baselines| {
        let history = baselines.history();
        history.record_change(path, content, after).is_none()
    });
    Notice::LateWrite {
        revision: Revision::compute(content),
        stored,
    }
}

/// Returns `None` if the file changed during the save and the change must start again.
fn change_loaded(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
    notebook: &Notebook,
    old: &ReplacedFile<'_>,
) -> Result<Option<SavedChange>, NotebookError> {
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
    let is_current = old.revision == notebook.revision();
    if is_current && (draft.plan.changes_nothing(notebook) || edited.is_unchanged()) {
        draft.notices.push(Notice::Unchanged);
        let view = ViewBuilder::build(
            ViewRequest {
                cell: draft.focus,
                ..ViewRequest::default()
            },
            notebook,
        );
        store_view_baseline(&view, request.baselines);
        let outcome = ChangeOutcome {
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
        };
        return Ok(Some((outcome, None)));
    }
    save_and_verify(path, request, notebook, Some(old), draft, &edited)
}

fn create_notebook(
    path: &Path,
    request: ChangeRequest<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<Option<SavedChange>, NotebookError> {
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
) -> Result<Option<SavedChange>, NotebookError> {
    let on_step = request.on_step.unwrap_or(&|_| Ok(()));
    let chunks = &mut |write: ChunkWriter<'_>| {
        let mut chunks = edited.chunks();
        chunks.try_for_each(|chunk| write(Chunk::Bytes(chunk)))
    };
    let outcome = save(path, old, chunks, request.guard, on_step)?;
    let Some(written) = outcome.into_written() else {
        return Ok(None);
    };
    let view = build_view(
        path,
        ViewRequest {
            cell: draft.focus,
            ..ViewRequest::default()
        },
    )?;
    if view.revision != written.revision {
        return Err(NotebookError::NotReadBack {
            path: path.to_owned(),
        });
    }
    store_view_baseline(&view, request.baselines);
    let mut notices = draft.notices;
    if let (Some(baselines), Some(_)) = (request.baselines, old) {
        let history = baselines.history();
        notices.extend(history.record_change(path, notebook.bytes(), view.revision));
    }
    let mut tally = CellChangeCounts::count(&draft.plan, notebook);
    tally.changed -= edited.unchanged_cells;
    tally.kept += edited.unchanged_cells;
    notices.extend(edited.notices.iter().cloned());
    notices.extend(written.notices);
    let outcome = ChangeOutcome {
        path: path.to_owned(),
        before: old.map(|_| notebook.revision()),
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
    };
    Ok(Some((outcome, written.detached)))
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

/// Locks and reads a file that is replaced as a whole. If its revision is not that of the request, `reason` states why the
/// changes cannot be merged.
pub(super) fn lock_and_load(
    path: &Path,
    request: ChangeRequest<'_>,
    reason: &str,
) -> Result<LockedFile, NotebookError> {
    let target = resolve_target(path)?;
    if !target.exists {
        return Err(NotebookError::NotFound {
            path: path.to_owned(),
        });
    }
    let lock = lock(&target.path, request.baselines)?;
    let (bytes, stamp, metadata) = load::load_bytes_with_stamp(&target.path)?;
    let revision = Revision::compute(&bytes);
    if let Some(expected) = request
        .revision
        .filter(|expected| !revision.matches_name(expected))
    {
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
    for () in Attempts::new() {
        let LockedFile {
            path,
            bytes,
            stamp,
            metadata,
            revision,
            lock: _lock,
        } = lock_and_load(path, request, "an upgrade changes every cell")?;
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
            &mut |write| write(Chunk::Bytes(&new)),
            request.guard,
            on_step,
        )?;
        if let Some(written) = outcome.into_written() {
            let view = build_view(path, ViewRequest::default())?;
            if view.revision != written.revision {
                return Err(NotebookError::NotReadBack {
                    path: path.to_owned(),
                });
            }
            store_view_baseline(&view, request.baselines);
            let mut notices = written.notices;
            if let Some(baselines) = request.baselines {
                let history = baselines.history();
                notices.extend(history.record_change(path, &bytes, written.revision));
            }
            notices.extend(report_late_write(
                path,
                request.baselines,
                written.detached,
                written.revision,
            ));
            return Ok((Some(upgraded), written.revision, notices));
        }
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}
