//! Changing a notebook file: lock, load, edit (or merge), save, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::load::{self, Loaded, load_with_stamp, look, remember_glance};
use super::lock::lock;
use super::save::{Chunk, Old, Saved, Step, save};
use crate::baseline::{Baseline, Baselines};
use crate::compose::{Edited, compose};
use crate::diff;
use crate::document::{Cells, Notebook};
use crate::edit::Draft;
use crate::error::{EditError, NotebookError, Notice};
use crate::merge::merge;
use crate::plan::Tally;
use crate::revision::Revision;
use crate::upgrade::{self, Upgraded};
use crate::view::{CellSummary, Viewer, Wanted};

/// How a file is to be changed.
#[derive(Clone, Copy, Default)]
pub struct Request<'r> {
    /// The revision the edit was made for; without one, whatever the file holds now.
    pub revision: Option<&'r str>,
    /// Whether a missing file is started as an empty notebook.
    pub missing: Missing,
    /// Where earlier revisions are remembered.
    pub baselines: Option<&'r Baselines>,
    /// Called before each step of the save; tests make steps fail with it.
    pub watch: Option<&'r dyn Fn(Step) -> io::Result<()>>,
}

/// What to do when there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    #[default]
    Refuse,
    /// Start from an empty notebook in nbformat 4.5.
    Create,
}

/// What a change did; everything here was read back from the file.
#[derive(Debug)]
pub struct Changed {
    /// The file, behind all links.
    pub path: PathBuf,
    /// The revision before; `None` if the file is new.
    pub before: Option<Revision>,
    /// The revision now.
    pub after: Revision,
    /// How many cells there are now.
    pub count: usize,
    /// What happened to how many cells.
    pub tally: Tally,
    /// The change as a unified diff of the text view.
    pub diff: String,
    /// The cell the edit is about, as it is now.
    pub focus: Option<CellSummary>,
    /// The cell that was taken out, as it was.
    pub removed: Option<CellSummary>,
    /// Things worth telling.
    pub notices: Vec<Notice>,
}

/// How often to begin anew when somebody else keeps changing the file.
const TRIES: usize = 5;

/// Changes the notebook at `path` by what `draft` works out.
pub fn change(
    path: &Path,
    request: Request<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<Changed, NotebookError> {
    for _ in 0..TRIES {
        let target = resolve(path)?;
        let changed = if target.exists {
            let _lock = lock(&target.path)?;
            let loaded = load_with_stamp(&target.path)?;
            change_loaded(&target.path, request, draft, &loaded)?
        } else if request.missing == Missing::Create && request.revision.is_none() {
            create(&target.path, request, draft)?
        } else {
            return Err(NotebookError::NotFound {
                path: path.to_owned(),
            });
        };
        if let Some(changed) = changed {
            return Ok(changed);
        }
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}

/// `None` if the file changed under our hands and everything must begin anew.
fn change_loaded(
    path: &Path,
    request: Request<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
    loaded: &Loaded,
) -> Result<Option<Changed>, NotebookError> {
    let notebook = &loaded.notebook;
    let bad_edit = |error| NotebookError::Edit {
        path: path.to_owned(),
        error,
    };
    let mut draft = match request.revision {
        Some(revision) if !notebook.revision().is_named_by(revision) => {
            let base = base(path, request.baselines, revision, notebook)?;
            let ours = draft(&base).map_err(bad_edit)?;
            let mut merged =
                merge(&base, ours, notebook).map_err(|why| NotebookError::Conflict {
                    path: path.to_owned(),
                    revision: revision.to_owned(),
                    current: notebook.revision(),
                    why,
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
    let edited = compose(notebook, &draft.plan);
    if draft.plan.changes_nothing(notebook) || edited.is_same() {
        draft.notices.push(Notice::Unchanged);
        let glance = Viewer::look(
            Wanted {
                text: None,
                cell: draft.focus,
            },
            notebook,
        );
        remember_glance(&glance, request.baselines);
        return Ok(Some(Changed {
            path: path.to_owned(),
            before: Some(notebook.revision()),
            after: notebook.revision(),
            count: glance.count,
            tally: Tally {
                kept: glance.count,
                ..Tally::default()
            },
            diff: String::new(),
            focus: glance.cell,
            removed: None,
            notices: draft.notices,
        }));
    }
    let old = Old {
        stamp: loaded.stamp,
        metadata: &loaded.metadata,
        revision: notebook.revision(),
    };
    finish(path, request, notebook, Some(&old), draft, &edited)
}

fn create(
    path: &Path,
    request: Request<'_>,
    draft: &dyn Fn(&dyn Cells) -> Result<Draft, EditError>,
) -> Result<Option<Changed>, NotebookError> {
    let folder = super::os::folder_of(path);
    if !folder.is_dir() {
        return Err(NotebookError::NotFound {
            path: folder.to_owned(),
        });
    }
    let notebook = Notebook::empty();
    let draft = draft(&notebook).map_err(|error| NotebookError::Edit {
        path: path.to_owned(),
        error,
    })?;
    let edited = compose(&notebook, &draft.plan);
    match finish(path, request, &notebook, None, draft, &edited) {
        // Somebody else was faster: begin anew with their file.
        Err(NotebookError::Exists { .. }) => Ok(None),
        other => other,
    }
}

/// Saves, and reads back what was saved.
fn finish(
    path: &Path,
    request: Request<'_>,
    notebook: &Notebook,
    old: Option<&Old<'_>>,
    draft: Draft,
    edited: &Edited<'_>,
) -> Result<Option<Changed>, NotebookError> {
    let watch = request.watch.unwrap_or(&|_| Ok(()));
    let saved = save(path, old, edited.chunks().map(Chunk::Bytes), watch)?;
    let (Saved::Written { revision, .. } | Saved::Same { revision }) = saved else {
        return Ok(None);
    };
    let glance = look(
        path,
        Wanted {
            text: None,
            cell: draft.focus,
        },
    )?;
    if glance.revision != revision {
        return Err(NotebookError::NotReadBack {
            path: path.to_owned(),
        });
    }
    remember_glance(&glance, request.baselines);
    let mut notices = draft.notices;
    let mut tally = Tally::of(&draft.plan, notebook);
    tally.changed -= edited.idle;
    tally.kept += edited.idle;
    notices.extend(edited.notices.iter().cloned());
    Ok(Some(Changed {
        path: path.to_owned(),
        before: old.map(|old| old.revision),
        after: glance.revision,
        count: glance.count,
        tally,
        diff: diff::unified(notebook, &draft.plan, &edited.new_ids, path),
        focus: glance.cell,
        removed: draft.removed.map(|index| CellSummary::of(notebook, index)),
        notices,
    }))
}

fn base(
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
            why: "that revision is not remembered, so the changes cannot be compared".to_owned(),
        })
}

pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
}

/// Follows symbolic links, so that the file is replaced and not the link. Without one the path stays
/// as it was given: people recognise it in messages.
pub(super) fn resolve(path: &Path) -> Result<Target, NotebookError> {
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
        Ok(true) if super::os::through_held_folder(path) => {
            let why = "it has become a link meanwhile";
            return Err(failed(io::Error::other(why)));
        }
        Ok(true) => match fs::canonicalize(path) {
            Ok(target) => target,
            // The end of a chain of links that leads nowhere; loops are another error.
            Err(error) if is_missing(&error) => {
                let mut end = path.to_owned();
                while is_link(&end).unwrap_or(false) {
                    let link = fs::read_link(&end).map_err(failed)?;
                    end = super::os::folder_of(&end).join(link);
                }
                return Ok(missing(end));
            }
            Err(error) => return Err(failed(error)),
        },
        Err(error) if is_missing(&error) => return Ok(missing(path.to_owned())),
        Err(error) => return Err(failed(error)),
    };
    // Refused here, before anybody waits for a lock on a pipe.
    load::check_regular(&target)?;
    Ok(Target {
        path: target,
        exists: true,
    })
}

/// Brings the notebook at `path` to nbformat 4.5: from nbformat 3, or by adding what 4.5 wants.
/// Answers what was done, `None` if there was nothing to do, and the revision of the file.
pub fn upgrade(
    path: &Path,
    request: Request<'_>,
) -> Result<(Option<Upgraded>, Revision), NotebookError> {
    for _ in 0..TRIES {
        let target = resolve(path)?;
        if !target.exists {
            return Err(NotebookError::NotFound {
                path: path.to_owned(),
            });
        }
        let path = target.path.as_path();
        let _lock = lock(path)?;
        let (bytes, stamp, metadata) = load::load_bytes(path)?;
        let revision = Revision::of(&bytes);
        if let Some(wanted) = request.revision
            && !revision.is_named_by(wanted)
        {
            return Err(NotebookError::Conflict {
                path: path.to_owned(),
                revision: wanted.to_owned(),
                current: revision,
                why: "an upgrade touches every cell".to_owned(),
            });
        }
        let upgraded = upgrade::upgrade(&bytes).map_err(|error| NotebookError::Format {
            path: path.to_owned(),
            error,
        })?;
        let Some((upgraded, new)) = upgraded else {
            return Ok((None, revision));
        };
        let old = Old {
            stamp,
            metadata: &metadata,
            revision,
        };
        let watch = request.watch.unwrap_or(&|_| Ok(()));
        let saved = save(path, Some(&old), std::iter::once(Chunk::Bytes(&new)), watch)?;
        if let Saved::Written {
            revision: written, ..
        }
        | Saved::Same { revision: written } = saved
        {
            let wanted = Wanted {
                text: None,
                cell: None,
            };
            let glance = look(path, wanted)?;
            if glance.revision != written {
                return Err(NotebookError::NotReadBack {
                    path: path.to_owned(),
                });
            }
            remember_glance(&glance, request.baselines);
            return Ok((Some(upgraded), written));
        }
    }
    Err(NotebookError::Busy {
        path: path.to_owned(),
    })
}
