//! Baselines: the cells of earlier revisions, stored so that an edit for one of them can be
//! merged, and the contents of files, so that a change can be undone.

mod history;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cell::CellKind;
use crate::document::Cells;
use crate::json::text::{self, Escapes};
use crate::revision::Revision;
use crate::source::string_tokens;

pub use history::{Direction, History, HistoryStep, NoStep};

/// The cells of a notebook at one revision, without outputs: the part that an edit can see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    pub(crate) cells: Vec<BaselineCell>,
}

/// One stored cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaselineCell {
    pub(crate) kind: CellKind,
    pub(crate) id: Option<String>,
    pub(crate) source: String,
    /// Hash of the whole cell, so that a change of its outputs is noticed too.
    pub(crate) hash: Revision,
}

impl Cells for Baseline {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn kind(&self, index: usize) -> CellKind {
        self.cells[index].kind
    }

    fn source(&self, index: usize) -> Cow<'_, str> {
        Cow::Borrowed(&self.cells[index].source)
    }

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.cells[index].id.as_deref().map(Cow::Borrowed)
    }
}

/// A directory of baselines, bounded in size. It is a cache: if an entry is missing or damaged, a
/// later merge is rejected and nothing else happens.
#[derive(Clone, Debug)]
pub struct Baselines {
    dir: PathBuf,
}

/// First line of every file. A new file format gets a new header.
const HEADER: &str = "cellwright baseline 1";
/// Larger views are not stored. In bytes.
pub(crate) const BASELINE_LIMIT: usize = 8 * 1024 * 1024;
const TOTAL_SIZE_LIMIT: u64 = 64 * 1024 * 1024;
const FILE_COUNT_LIMIT: usize = 512;

impl Baselines {
    /// Uses `directory`, which is created on first use.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Stores the baseline of a revision.
    pub fn store(&self, revision: Revision, baseline: &Baseline) -> io::Result<()> {
        let file = self.dir.join(revision.to_string());
        if file.exists() {
            // Recently used files are pruned last.
            return fs::File::options()
                .append(true)
                .open(&file)?
                .set_modified(SystemTime::now());
        }
        create_private_dir(&self.dir)?;
        let partial = self.dir.join(format!(".{revision}.{}", std::process::id()));
        fs::write(&partial, baseline.to_text())?;
        fs::rename(&partial, &file)?;
        prune(&self.dir, TOTAL_SIZE_LIMIT, FILE_COUNT_LIMIT)
    }

    /// The history of files, in a directory next to this one.
    pub fn history(&self) -> History {
        History::new(self.dir.with_file_name("history"))
    }

    /// The directory for lock files of writers, next to this one.
    pub(crate) fn lock_dir(&self) -> PathBuf {
        self.dir.with_file_name("locks")
    }

    /// Returns the baseline of the revision named `name`: all digits, or a prefix of at least
    /// eight.
    pub fn find(&self, name: &str) -> Option<Baseline> {
        if !Revision::is_valid_name(name) {
            return None;
        }
        let prefix = name.to_ascii_lowercase();
        let mut found = fs::read_dir(&self.dir).ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            let matches = entry.file_name().to_str()?.starts_with(&prefix);
            matches.then(|| entry.path())
        });
        let only = found.next()?;
        // Two revisions share the prefix: return none rather than guess.
        if found.next().is_some() {
            return None;
        }
        if !fs::metadata(&only).ok()?.is_file() {
            return None;
        }
        let baseline = Baseline::from_text(&fs::read_to_string(&only).ok()?);
        if baseline.is_none() {
            // Damaged, for example cut short by a crash. Remove it so that the revision can be
            // stored again.
            fs::remove_file(&only).ok();
        }
        baseline
    }
}

/// Removes the least recently used files until the directory is within its limits.
pub(crate) fn prune(dir: &Path, size_limit: u64, count_limit: usize) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(dir)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
    let mut count = files.len();
    for (_, size, path) in files {
        if bytes <= size_limit && count <= count_limit {
            break;
        }
        // Another process may have removed it already.
        if fs::remove_file(path).is_ok() {
            bytes -= size;
            count -= 1;
        }
    }
    Ok(())
}

/// Sources may be confidential: only the owner may read them.
pub(crate) fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

impl Baseline {
    /// One line per cell: kind, hash, id and source, the last two as JSON strings.
    fn to_text(&self) -> String {
        let quote = |text: &str| text::encode(text, Escapes::Utf8);
        let mut out = format!("{HEADER}\n");
        for cell in &self.cells {
            let id = cell.id.as_deref().map_or_else(|| "-".to_owned(), quote);
            out.push_str(&format!(
                "{} {} {id} {}\n",
                cell.kind,
                cell.hash,
                quote(&cell.source)
            ));
        }
        // The count at the end distinguishes a file cut short by a crash from a shorter notebook.
        out.push_str(&format!("end {}\n", self.cells.len()));
        out
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines: Vec<&str> = text.strip_suffix('\n')?.split('\n').collect();
        let end = lines.pop()?;
        let (header, cells) = lines.split_first()?;
        if *header != HEADER || end != format!("end {}", cells.len()) {
            return None;
        }
        let cells: Option<Vec<BaselineCell>> = cells.iter().map(|line| parse_cell(line)).collect();
        Some(Self { cells: cells? })
    }
}

fn parse_cell(line: &str) -> Option<BaselineCell> {
    let (kind, rest) = line.split_once(' ')?;
    let (hash, rest) = rest.split_once(' ')?;
    let bytes = rest.as_bytes();
    let strings: Vec<String> = string_tokens(bytes)
        .map(|token| text::decode(&bytes[token]).into_owned())
        .collect();
    let (id, source) = match &strings[..] {
        [source] if rest.starts_with('-') => (None, source),
        [id, source] => (Some(id.clone()), source),
        _ => return None,
    };
    Some(BaselineCell {
        kind: CellKind::from_name(kind)?,
        id,
        source: source.clone(),
        hash: Revision::parse(hash)?,
    })
}
