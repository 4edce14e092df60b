//! [`DurationStore`]: how long the cells of notebooks took, for the estimate of the next run. It is a cache: errors are
//! ignored, and old entries are deleted.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many notebooks are known.
const NOTEBOOKS_MAX: usize = 200;

/// How many cells of a notebook are known.
const CELLS_MAX: usize = 2000;

/// The largest file that is read, in bytes.
const FILE_SIZE_MAX: u64 = 1024 * 1024;

/// Shortest total duration that is worth an estimate.
const TOTAL_MIN: Duration = Duration::from_secs(1);

/// Durations of cells, in one small file for each notebook.
#[derive(Clone, Debug)]
pub struct DurationStore {
    directory: PathBuf,
}

/// Milliseconds by the hash of the source.
type Durations = BTreeMap<String, u64>;

impl DurationStore {
    /// A store in a directory, which is created when needed.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The durations of the cells with these sources in their last run.
    pub fn read<'s>(
        &self,
        notebook: &Path,
        sources: impl IntoIterator<Item = &'s str>,
    ) -> Vec<Option<Duration>> {
        let known = self.load(notebook);
        let duration = |source| known.get(&hash(source)).copied().map(Duration::from_millis);
        sources.into_iter().map(duration).collect()
    }

    /// Adds the durations of cells that ran.
    pub fn record<'s>(
        &self,
        notebook: &Path,
        cells: impl IntoIterator<Item = (&'s str, Duration)>,
    ) {
        let mut known = self.load(notebook);
        let mut total = Duration::ZERO;
        for (source, duration) in cells {
            total += duration;
            let key = hash(source);
            if known.len() < CELLS_MAX || known.contains_key(&key) {
                let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                known.insert(key, milliseconds);
            }
        }
        if total >= TOTAL_MIN {
            // Without the store there is no estimate.
            self.write(notebook, &known).ok();
        }
    }

    fn file(&self, notebook: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", hash(notebook)))
    }

    fn load(&self, notebook: &Path) -> Durations {
        let file = self.file(notebook);
        let small = fs::metadata(&file).is_ok_and(|file| file.len() <= FILE_SIZE_MAX);
        let bytes = small.then(|| fs::read(&file).ok()).flatten();
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn write(&self, notebook: &Path, known: &Durations) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let file = self.file(notebook);
        let temporary = file.with_extension(std::process::id().to_string());
        fs::write(&temporary, serde_json::to_vec(known)?)?;
        fs::rename(&temporary, &file)?;
        self.delete_old_files()
    }

    fn delete_old_files(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
        files.sort();
        let excess = files.len().saturating_sub(NOTEBOOKS_MAX);
        for (_, file) in files.drain(..excess) {
            fs::remove_file(file)?;
        }
        Ok(())
    }
}

fn hash(value: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_known_by_notebook_and_source() {
        let dir = tempfile::tempdir().unwrap();
        let store = DurationStore::new(dir.path().join("durations"));
        let (a, b) = (Path::new("/a.ipynb"), Path::new("/b.ipynb"));
        assert_eq!(store.read(a, ["x"]), [None]);
        store.record(
            a,
            [("x", Duration::from_millis(1500)), ("y", Duration::ZERO)],
        );
        let known = Some(Duration::from_millis(1500));
        assert_eq!(
            store.read(a, ["y", "z", "x"]),
            [Some(Duration::ZERO), None, known]
        );
        assert_eq!(store.read(b, ["x"]), [None]);
        // Short runs need no estimate.
        store.record(b, [("x", Duration::from_millis(10))]);
        assert_eq!(store.read(b, ["x"]), [None]);
        fs::write(store.file(a), "junk").unwrap();
        assert_eq!(store.read(a, ["x"]), [None]);
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let store = DurationStore::new(dir.path().to_owned());
        for number in 0..NOTEBOOKS_MAX + 10 {
            let path = PathBuf::from(format!("/{number}.ipynb"));
            store.record(&path, [("x", TOTAL_MIN)]);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), NOTEBOOKS_MAX);
    }
}
