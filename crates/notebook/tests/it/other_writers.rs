//! Programs that do not know our locks save the notebook at the same time: by renaming, by truncating, in place.
//! No edit is lost without a notice, and no reader sees a state that lacks an edit which was there before.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cellwright_notebook::edit::{Address, Operation};
use cellwright_notebook::file::{
    self, CellUpdate, ChangeOutcome, ChangeRequest, DetachedFiles, GuardRequest, RecordRequest,
    SaveStep,
};
use cellwright_notebook::{Baselines, Cells, Direction, Notebook, NotebookError, Notice};
use tempfile::TempDir;

fn notebook(ours: &str, theirs: &str) -> String {
    let cell = |id: &str, source: &str| {
        format!(
            r#"{{"cell_type":"code","execution_count":null,"id":"{id}","metadata":{{}},"outputs":[],"source":"{source}"}}"#
        )
    };
    format!(
        r#"{{"cells":[{},{}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
        cell("ours", ours),
        cell("theirs", theirs)
    )
}

fn edit(source: &str) -> Operation {
    Operation::Edit {
        cell: Address::Index(0),
        source: source.to_owned(),
        tags: None,
    }
}

fn sources(content: &str) -> [String; 2] {
    let notebook = Notebook::parse(content.to_owned()).unwrap();
    [0, 1].map(|cell| notebook.source(cell).into_owned())
}

fn rename_over(path: &Path, content: &str) -> io::Result<()> {
    let other = path.with_extension("other");
    fs::write(&other, content)?;
    fs::rename(other, path)
}

struct Fixture {
    dir: TempDir,
    path: PathBuf,
    baselines: Baselines,
    detached: DetachedFiles,
}

impl Fixture {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.ipynb");
        fs::write(&path, notebook("old", "0")).unwrap();
        let baselines = Baselines::new(dir.path().join("cache").join("baselines"));
        Self {
            dir,
            path,
            baselines,
            detached: DetachedFiles::default(),
        }
    }

    fn change(
        &self,
        on_step: &dyn Fn(SaveStep) -> io::Result<()>,
    ) -> Result<ChangeOutcome, NotebookError> {
        let request = ChangeRequest {
            baselines: Some(&self.baselines),
            on_step: Some(on_step),
            ..ChangeRequest::default()
        };
        file::change(&self.path, request, &|cells| edit("new").draft(cells))
    }

    fn content(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    fn assert_no_temporary_file(&self) {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        let is_temporary = |name: &&std::ffi::OsString| name.to_string_lossy().starts_with('.');
        assert!(!names.iter().any(|name| is_temporary(&name)), "{names:?}");
    }
}

/// Calls `action` once, at the first time that the save comes to `step`.
fn once_at(step: SaveStep, action: impl FnOnce()) -> impl Fn(SaveStep) -> io::Result<()> {
    let action = RefCell::new(Some(action));
    move |now| {
        if now == step
            && let Some(action) = action.borrow_mut().take()
        {
            action();
        }
        Ok(())
    }
}

/// The rename comes between the last check and the exchange, and a reader opens the file right after the exchange: it
/// waits, and reads the file of the other program.
#[test]
fn a_file_without_the_edit_of_another_program_is_never_read() {
    /// A reader that does not wait is done within this time.
    const READ_TIMEOUT: Duration = Duration::from_millis(300);
    let fixture = Fixture::new();
    let path = &fixture.path;
    let (sender, seen) = mpsc::channel();
    let reader: RefCell<Option<JoinHandle<()>>> = RefCell::default();
    let renamed = once_at(SaveStep::Exchange, || {
        rename_over(path, &notebook("old", "1")).unwrap();
    });
    let read = once_at(SaveStep::Verify, || {
        let (path, sender) = (path.clone(), sender.clone());
        let thread = thread::spawn(move || {
            let state = sources(&fs::read_to_string(path).unwrap());
            sender.send(state).unwrap();
        });
        let started = Instant::now();
        while !thread.is_finished() && started.elapsed() < READ_TIMEOUT {
            thread::sleep(Duration::from_millis(5));
        }
        *reader.borrow_mut() = Some(thread);
    });
    fixture
        .change(&|step| renamed(step).and_then(|()| read(step)))
        .unwrap();
    reader.take().unwrap().join().unwrap();
    assert_eq!(seen.recv().unwrap(), ["old", "1"]);
    assert_eq!(sources(&fixture.content()), ["new", "1"]);
    fixture.assert_no_temporary_file();
}

/// A program opens the old file for writing at the moment of the exchange: its text is in the file.
#[test]
fn a_program_that_opens_the_file_during_the_exchange_is_waited_for() {
    let fixture = Fixture::new();
    let writer: RefCell<Option<JoinHandle<()>>> = RefCell::default();
    let path = fixture.path.clone();
    let opening = |path: PathBuf| {
        let mut file = fs::File::options().write(true).open(path).unwrap();
        file.write_all(notebook("old", "1").as_bytes()).unwrap();
    };
    let on_step = once_at(SaveStep::Exchange, || {
        let (sender, started) = mpsc::channel();
        let path = path.clone();
        *writer.borrow_mut() = Some(thread::spawn(move || {
            sender.send(()).unwrap();
            opening(path);
        }));
        started.recv().unwrap();
        wait_until_blocked_or_done(writer.borrow().as_ref().unwrap());
    });
    fixture.change(&on_step).unwrap();
    writer.take().unwrap().join().unwrap();
    assert_eq!(sources(&fixture.content()), ["new", "1"]);
    fixture.assert_no_temporary_file();
}

/// Lets the other thread come to its call of `open`.
fn wait_until_blocked_or_done(thread: &JoinHandle<()>) {
    for _ in 0..1000 {
        if thread.is_finished() {
            return;
        }
        thread::yield_now();
    }
}

/// A program has had the file open all the time and writes after the command has checked it.
#[test]
fn text_written_into_the_replaced_file_is_merged() {
    let fixture = Fixture::new();
    let theirs = fs::File::options().write(true).open(&fixture.path).unwrap();
    let on_step = once_at(SaveStep::SyncDir, || {
        (&theirs)
            .write_all(notebook("old", "1").as_bytes())
            .unwrap();
    });
    let outcome = fixture.change(&on_step).unwrap();
    drop(on_step);
    assert_eq!(sources(&fixture.content()), ["new", "1"]);
    let merged = |notice: &Notice| matches!(notice, Notice::Merged { .. });
    assert!(outcome.notices.iter().any(merged), "{:?}", outcome.notices);
    fixture.assert_no_temporary_file();
}

#[test]
fn text_in_the_replaced_file_that_cannot_be_merged_is_reported_and_restored_by_undo() {
    let fixture = Fixture::new();
    let theirs = fs::File::options().write(true).open(&fixture.path).unwrap();
    // The edited cell is gone in their file.
    let their_content = r#"{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}"#.to_owned();
    let on_step = once_at(SaveStep::SyncDir, || {
        theirs.set_len(0).unwrap();
        (&theirs).write_all(their_content.as_bytes()).unwrap();
    });
    let outcome = fixture.change(&on_step).unwrap();
    assert_eq!(sources(&fixture.content()), ["new", "0"]);
    let reported = outcome.notices.iter();
    let reported: Vec<&Notice> = reported
        .filter(|notice| matches!(notice, Notice::LateWrite { stored: true, .. }))
        .collect();
    assert_eq!(reported.len(), 1, "{:?}", outcome.notices);
    let request = ChangeRequest {
        baselines: Some(&fixture.baselines),
        ..ChangeRequest::default()
    };
    file::restore(&fixture.path, request, Direction::Undo).unwrap();
    assert_eq!(fixture.content(), their_content);
}

/// A program truncates the file and completes it, again and again, while the file is read.
/// Every user who may read a file can lock it.
#[test]
fn a_lock_of_another_program_on_the_notebook_does_not_keep_it_from_being_written() {
    let fixture = Fixture::new();
    let held = fs::File::open(&fixture.path).unwrap();
    held.lock().unwrap();
    fixture.change(&|_| Ok(())).unwrap();
    assert_eq!(sources(&fixture.content()), ["new", "0"]);
    let shared = fs::File::open(&fixture.path).unwrap();
    shared.lock_shared().unwrap();
    let request = ChangeRequest {
        baselines: Some(&fixture.baselines),
        ..ChangeRequest::default()
    };
    file::change(&fixture.path, request, &|cells| edit("newer").draft(cells)).unwrap();
    assert_eq!(sources(&fixture.content()), ["newer", "0"]);
    fixture.assert_no_temporary_file();
}

/// The directory of the cache cannot be written.
#[test]
fn a_change_that_cannot_be_undone_is_reported() {
    let fixture = Fixture::new();
    let cache = fixture.dir.path().join("cache");
    fs::write(&cache, "").unwrap();
    let changed = fixture.change(&|_| Ok(())).unwrap();
    assert!(
        matches!(&changed.notices[..], [Notice::UndoNotStored { .. }]),
        "{:?}",
        changed.notices
    );
    assert_eq!(sources(&fixture.content()), ["new", "0"]);
}

#[test]
fn truncated_file_is_read_again() {
    /// The program is not faster than a person's fastest editor.
    const PAUSE: Duration = Duration::from_millis(1);
    let fixture = Fixture::new();
    let stop = AtomicBool::new(false);
    let results: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            let content = notebook("old", &"x".repeat(200_000));
            while !stop.load(Ordering::Relaxed) {
                fs::write(&fixture.path, &content).unwrap();
                thread::sleep(PAUSE);
            }
        });
        let results = (0..300).map(|_| file::survey(&fixture.path)).collect();
        stop.store(true, Ordering::Relaxed);
        results
    });
    for result in results {
        result.unwrap();
    }
}

/// How another program saves.
#[derive(Clone, Copy, Debug)]
enum Save {
    Rename,
    Truncate,
    InPlace,
    /// Writes a copy, then truncates, as Jupyter does.
    Jupyter,
}

impl Save {
    /// Sets the second cell to `value`, keeping the first as it is, and returns whether the file could be read.
    fn save(self, path: &Path, value: usize) -> bool {
        let Ok(mut file) = fs::File::options().read(true).write(true).open(path) else {
            return false;
        };
        let mut content = String::new();
        if io::Read::read_to_string(&mut file, &mut content).is_err() {
            return false;
        }
        let Ok(current) = Notebook::parse(content) else {
            return false;
        };
        let new = notebook(&current.source(0), &value.to_string());
        match self {
            Self::Rename => {
                drop(file);
                rename_over(path, &new).unwrap();
            }
            Self::Truncate => {
                file.set_len(0).unwrap();
                file.rewind().unwrap();
                file.write_all(new.as_bytes()).unwrap();
            }
            Self::InPlace => {
                file.rewind().unwrap();
                file.write_all(new.as_bytes()).unwrap();
                file.set_len(new.len() as u64).unwrap();
            }
            Self::Jupyter => {
                let copy = path.with_extension("copy");
                fs::copy(path, &copy).unwrap();
                file.set_len(0).unwrap();
                file.rewind().unwrap();
                file.write_all(new.as_bytes()).unwrap();
                fs::remove_file(copy).unwrap();
            }
        }
        true
    }
}

/// How often the number of another program went back for a reader.
fn count_regressions(path: &Path, stop: &AtomicBool) -> usize {
    let (mut last, mut regressions) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let content = fs::read_to_string(path).ok();
        let Some(current) = content.and_then(|content| Notebook::parse(content).ok()) else {
            continue;
        };
        let value: usize = current.source(1).parse().unwrap();
        regressions += usize::from(value < last);
        last = value;
    }
    regressions
}

/// One other program saves a growing number, with and without pauses, while `write` writes `WRITES` times and returns its
/// notices. The number never goes back for a reader, and is in the file at the end, or a notice reports it.
fn write_under_load(write: impl Fn(&Fixture, usize) -> Result<Vec<Notice>, NotebookError>) {
    const WRITES: usize = 100;
    /// A write that finds no pause of the other program takes seconds until it is given up.
    const BUSY_LIMIT: usize = 5;
    /// The other program saves this often, then pauses.
    const SAVES: usize = 20;
    const PAUSE: Duration = Duration::from_millis(4);
    for save in [Save::Rename, Save::Truncate, Save::InPlace, Save::Jupyter] {
        let fixture = Fixture::new();
        let stop = AtomicBool::new(false);
        let saved = AtomicUsize::new(0);
        // A program that was not waited for has written into a replaced file.
        let (mut late, mut lost) = (0, 0);
        let (mut written, mut busy) = (0, 0);
        let regressions = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let next = saved.load(Ordering::Relaxed) + 1;
                    if save.save(&fixture.path, next) {
                        saved.store(next, Ordering::Release);
                    }
                    if next.is_multiple_of(SAVES) {
                        thread::sleep(PAUSE);
                    }
                    thread::yield_now();
                }
            });
            let reader = scope.spawn(|| count_regressions(&fixture.path, &stop));
            for number in 0..WRITES {
                match write(&fixture, number) {
                    Ok(notices) => {
                        written += 1;
                        let is_lost = |notice: &&Notice| matches!(notice, Notice::LateWrite { .. });
                        late += notices.len();
                        lost += notices.iter().filter(is_lost).count();
                    }
                    // The other program has saved again before the file was read back.
                    Err(NotebookError::NotReadBack { .. }) => {}
                    Err(NotebookError::Busy { .. }) if busy == BUSY_LIMIT => break,
                    Err(NotebookError::Busy { .. }) => busy += 1,
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        panic!("{save:?}: {error}");
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(written > 0, "{save:?}: no write found a pause");
        assert!(
            regressions <= late,
            "{save:?}: {regressions} times, {late} late"
        );
        let last: usize = sources(&fixture.content())[1].parse().unwrap();
        let saved = saved.load(Ordering::Acquire);
        assert!(last == saved || lost > 0, "{save:?}: {last} of {saved}");
        fixture.assert_no_temporary_file();
    }
}

#[test]
fn edits_keep_the_edits_of_other_programs_under_load() {
    write_under_load(|fixture, number| {
        let request = ChangeRequest {
            baselines: Some(&fixture.baselines),
            ..ChangeRequest::default()
        };
        let source = format!("edit {number}");
        let outcome = file::change(&fixture.path, request, &|cells| edit(&source).draft(cells));
        outcome.map(|outcome| outcome.notices)
    });
}

#[test]
fn runs_keep_the_edits_of_other_programs_under_load() {
    write_under_load(|fixture, number| {
        let base = file::survey(&fixture.path)?;
        let update = CellUpdate {
            cell: 0,
            execution_count: Some(number as u64),
            ..CellUpdate::default()
        };
        let recorded = file::record(RecordRequest {
            path: &fixture.path,
            base: &base.record_base(),
            updates: &[update],
            metadata: &[],
            expected: base.revision(),
            guard: GuardRequest::default(),
            detached: &fixture.detached,
            baselines: Some(&fixture.baselines),
            on_step: None,
        });
        recorded.map(|recorded| recorded.notices)
    });
}
