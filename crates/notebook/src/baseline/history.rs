//! History: the whole content of earlier revisions of a file, stored so that a change can be undone.
//!
//! A directory holds one file for each content, named by its revision, and one index for each
//! notebook: the revisions of its states in order, and which of them is the present one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{create_private_dir, prune};
use crate::error::Notice;
use crate::revision::Revision;

/// Larger contents are not stored. In bytes.
const CONTENT_LIMIT: u64 = 32 * 1024 * 1024;
const TOTAL_SIZE_LIMIT: u64 = 256 * 1024 * 1024;
const FILE_COUNT_LIMIT: usize = 1024;
/// The largest number of states of one notebook.
const STATE_LIMIT: usize = 100;
/// First line of every index. A new format gets a new header.
const HEADER: &str = "cellwright history 1";

/// A directory of contents, bounded in size. It is a cache: what is missing cannot be undone, and
/// nothing else happens.
#[derive(Clone, Debug)]
pub struct History {
    dir: PathBuf,
}

/// The direction of a step in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the state before a change.
    Undo,
    /// To the state after a change that was undone.
    Redo,
}

/// Another state of a notebook.
#[derive(Debug)]
pub struct HistoryStep {
    /// Its content.
    pub content: Vec<u8>,
    /// The number of states before it.
    pub earlier: usize,
    /// The number of states after it.
    pub later: usize,
}

/// Why there is no other state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStep {
    /// No change of this file is stored, or all are undone (or redone).
    Nothing,
    /// Another program has changed the file since.
    Changed,
    /// The content is not stored any more, or was too large.
    NotStored,
}

/// The states of one notebook.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    states: Vec<Revision>,
    /// Position of the present state.
    present: usize,
}

impl History {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Stores the content of a revision.
    pub fn store(&self, revision: Revision, content: &[u8]) -> io::Result<()> {
        if content.len() as u64 > CONTENT_LIMIT {
            return Ok(());
        }
        self.place_content(revision, |partial| fs::write(partial, content))
    }

    /// Stores the content of a file. A content that does not have the revision is never returned.
    pub fn store_file(&self, revision: Revision, mut file: &fs::File) -> io::Result<()> {
        if file.metadata()?.len() > CONTENT_LIMIT {
            return Ok(());
        }
        self.place_content(revision, |partial| {
            io::copy(&mut file, &mut fs::File::create(partial)?).map(drop)
        })
    }

    /// Records a change of a file with the content `content` before. Returns a notice if that is not possible: the change is
    /// made, but cannot be undone.
    pub(crate) fn record_change(
        &self,
        path: &Path,
        content: &[u8],
        after: Revision,
    ) -> Option<Notice> {
        let before = Revision::compute(content);
        let recorded = self
            .store(before, content)
            .and_then(|()| self.record(path, before, after, None));
        let reason = recorded.err()?.to_string();
        Some(Notice::UndoNotStored { reason })
    }

    /// Records that a file changed from `before` to `after`. If `replaced` is its present state, the
    /// change continues the one that led there.
    pub fn record(
        &self,
        path: &Path,
        before: Revision,
        after: Revision,
        replaced: Option<Revision>,
    ) -> io::Result<()> {
        let mut index = self.index(path).unwrap_or_default();
        let present = index.states.get(index.present).copied();
        index.states.truncate(index.present + 1);
        if let Some(last) = index.states.last_mut()
            && replaced == present
        {
            *last = after;
        } else {
            if present != Some(before) {
                // Another program changed the file: an undo must not revert that change, too.
                index.states = vec![before];
            }
            index.states.push(after);
        }
        let surplus = index.states.len().saturating_sub(STATE_LIMIT);
        index.states.drain(..surplus);
        index.present = index.states.len() - 1;
        self.write_index(path, &index)
    }

    /// The state before or after the present one, which must have the revision `current`.
    pub fn step(
        &self,
        path: &Path,
        current: Revision,
        direction: Direction,
    ) -> Result<HistoryStep, NoStep> {
        let index = self.index(path).ok_or(NoStep::Nothing)?;
        if index.states.get(index.present) != Some(&current) {
            return Err(NoStep::Changed);
        }
        let at = index.target(direction).ok_or(NoStep::Nothing)?;
        let revision = index.states[at];
        let content = fs::read(self.dir.join(revision.to_string())).ok();
        let content = content.filter(|content| Revision::compute(content) == revision);
        Ok(HistoryStep {
            content: content.ok_or(NoStep::NotStored)?,
            earlier: at,
            later: index.states.len() - 1 - at,
        })
    }

    /// Makes the state of a step the present one.
    pub fn take_step(&self, path: &Path, direction: Direction) -> io::Result<()> {
        let mut index = self.index(path).unwrap_or_default();
        if let Some(at) = index.target(direction) {
            index.present = at;
        }
        self.write_index(path, &index)
    }

    fn index_file(path: &Path) -> String {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = Revision::compute(path.as_os_str().as_encoded_bytes());
        format!("{name}.index")
    }

    fn index(&self, path: &Path) -> Option<Index> {
        Index::parse(&fs::read_to_string(self.dir.join(Self::index_file(path))).ok()?)
    }

    fn write_index(&self, path: &Path, index: &Index) -> io::Result<()> {
        let name = Self::index_file(path);
        self.place(&name, |partial| fs::write(partial, index.to_text()))
    }

    /// Stores a content, or marks it as used if it is stored.
    fn place_content(
        &self,
        revision: Revision,
        write: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = revision.to_string();
        match fs::File::options().append(true).open(self.dir.join(&name)) {
            Ok(existing) => existing.set_modified(SystemTime::now()),
            Err(_) => self.place(&name, write),
        }
    }

    /// Creates or replaces a file.
    fn place(&self, name: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let file = self.dir.join(name);
        create_private_dir(&self.dir)?;
        let partial = self.dir.join(format!(".{name}.{}", std::process::id()));
        let placed = write(&partial).and_then(|()| fs::rename(&partial, &file));
        if let Err(error) = placed {
            // On a full disk, a part would remain.
            fs::remove_file(&partial).ok();
            return Err(error);
        }
        prune(&self.dir, TOTAL_SIZE_LIMIT, FILE_COUNT_LIMIT)
    }
}

impl Index {
    fn target(&self, direction: Direction) -> Option<usize> {
        match direction {
            Direction::Undo => self.present.checked_sub(1),
            Direction::Redo => Some(self.present + 1).filter(|at| *at < self.states.len()),
        }
    }

    fn to_text(&self) -> String {
        let mut out = format!("{HEADER}\n{}\n", self.present);
        for state in &self.states {
            out.push_str(&format!("{state}\n"));
        }
        out
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEADER {
            return None;
        }
        let present = lines.next()?.parse().ok()?;
        let states: Option<Vec<Revision>> = lines.map(Revision::parse).collect();
        let states = states.filter(|states| present < states.len())?;
        Some(Self { states, present })
    }
}
