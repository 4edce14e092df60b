//! [`Journals`]: every cell that ran on a session with its outputs, one JSON line each. The journals are on disk, so
//! that a long session costs no memory. A separate thread writes them, so that no request waits for the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use cellwright_execution::{CellOutputs, CellRequests, ExecutionReport, ExecutionStatus};
use cellwright_kernel::session::SessionId;
use cellwright_stdext::{LockExt, private};
use serde::Serialize;
use tokio::sync::oneshot;

use super::create_private_dir;

/// Number of entries that may wait for the disk; then the session waits, too.
const QUEUE_CAPACITY: usize = 256;

/// Delay between the first entry and the write, so that the thread does not wake up for every entry while a client
/// waits for its reply.
const BATCH_DELAY: Duration = Duration::from_millis(10);

pub(super) struct Journals {
    dir: PathBuf,
    commands: SyncSender<JournalCommand>,
    lost: LostCounts,
}

/// Number of runs of each session that could not be written.
type LostCounts = Arc<Mutex<BTreeMap<u64, u64>>>;

/// A command for the writer thread.
enum JournalCommand {
    Write(SessionId, Vec<u8>),
    Forget(SessionId),
    /// Replies when all earlier commands are done.
    Flush(oneshot::Sender<()>),
}

/// A cell in the journal.
#[derive(Serialize)]
struct JournalLine<'a> {
    generation: u32,
    count: Option<u32>,
    status: ExecutionStatus,
    title: Option<&'a str>,
    /// End of the run, in seconds since 1970.
    at: u64,
    code: &'a str,
    outputs: Option<&'a CellOutputs>,
}

impl Journals {
    /// Creates the journals in `directory` and removes those of the previous host.
    pub(super) fn new(dir: PathBuf) -> Self {
        std::fs::remove_dir_all(&dir).ok();
        let (commands, receiver) = sync_channel(QUEUE_CAPACITY);
        let lost = LostCounts::default();
        let writer = JournalWriter {
            dir: dir.clone(),
            lost: Arc::clone(&lost),
            open: None,
        };
        let started = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&receiver));
        // Without the thread every run counts as lost.
        drop(started);
        Self {
            dir,
            commands,
            lost,
        }
    }

    /// Path of the journal of a session.
    pub(super) fn path(&self, session: SessionId) -> PathBuf {
        path(&self.dir, session)
    }

    /// Writes the cells that ran.
    pub(super) fn write(
        &self,
        session: SessionId,
        requests: &CellRequests,
        report: &ExecutionReport,
    ) {
        let lines = render_lines(requests, report).unwrap_or_default();
        if lines.is_empty() {
            return;
        }
        if self
            .commands
            .send(JournalCommand::Write(session, lines))
            .is_err()
        {
            count_lost(&self.lost, session);
        }
    }

    /// Waits until all entries are written.
    pub(super) async fn flush(&self) {
        let (sender, flushed) = oneshot::channel();
        if self.commands.send(JournalCommand::Flush(sender)).is_ok() {
            flushed.await.ok();
        }
    }

    /// Number of runs of a session that could not be written.
    pub(super) fn lost(&self, session: SessionId) -> u64 {
        let lost = self.lost.lock_ignoring_poison();
        lost.get(&session.0).copied().unwrap_or(0)
    }

    /// Removes the journal of a session.
    pub(super) fn forget(&self, session: SessionId) {
        self.commands.send(JournalCommand::Forget(session)).ok();
    }

    /// Removes the journals of all other sessions, except those that were created after the list.
    pub(super) fn retain(&self, sessions: impl Iterator<Item = SessionId>) {
        let existing: BTreeSet<u64> = sessions.map(|id| id.0).collect();
        let Some(newest) = existing.last() else {
            return;
        };
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten();
        for entry in entries.flatten() {
            let path = entry.path();
            let id = path
                .file_stem()
                .and_then(|name| name.to_str()?.parse().ok());
            if let Some(id) = id
                && id < *newest
                && !existing.contains(&id)
            {
                self.forget(SessionId(id));
            }
        }
    }

    pub(super) fn remove(&self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

/// The state of the writer thread.
struct JournalWriter {
    dir: PathBuf,
    lost: LostCounts,
    /// The last journal that was written; often the next entry belongs to the same.
    open: Option<(SessionId, File)>,
}

impl JournalWriter {
    /// Handles commands until the journals are dropped.
    fn run(mut self, commands: &Receiver<JournalCommand>) {
        while let Ok(first) = commands.recv() {
            thread::sleep(BATCH_DELAY);
            for command in std::iter::once(first).chain(commands.try_iter()) {
                self.handle(command);
            }
        }
    }

    fn handle(&mut self, command: JournalCommand) {
        match command {
            JournalCommand::Write(session, lines) => {
                // If the disk is full, the history is lost and the run continues.
                if self.write(session, &lines).is_err() {
                    self.open = None;
                    count_lost(&self.lost, session);
                }
            }
            JournalCommand::Forget(session) => {
                self.open = self.open.take().filter(|(open, _)| *open != session);
                // The journal does not exist if nothing ran.
                std::fs::remove_file(path(&self.dir, session)).ok();
            }
            JournalCommand::Flush(sender) => {
                // The client may be gone.
                sender.send(()).ok();
            }
        }
    }

    fn write(&mut self, session: SessionId, lines: &[u8]) -> io::Result<()> {
        let mut file = match self.open.take() {
            Some((open, file)) if open == session => file,
            _ => self.open(session)?,
        };
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(lines) {
            // An incomplete line would make the next one unreadable.
            file.set_len(before)?;
            return Err(error);
        }
        self.open = Some((session, file));
        Ok(())
    }

    fn open(&self, session: SessionId) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        let path = path(&self.dir, session);
        match private::open_file(&options, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_private_dir(&self.dir)?;
                private::open_file(&options, &path)
            }
            opened => opened,
        }
    }
}

fn path(dir: &Path, session: SessionId) -> PathBuf {
    dir.join(format!("{session}.jsonl"))
}

fn count_lost(lost: &Mutex<BTreeMap<u64, u64>>, session: SessionId) {
    let mut lost = lost.lock_ignoring_poison();
    *lost.entry(session.0).or_default() += 1;
}

/// The journal lines of the cells that ran.
fn render_lines(requests: &CellRequests, report: &ExecutionReport) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    for (cell, request) in report.cells.iter().zip(requests.iter()) {
        let ran = !matches!(
            cell.status,
            ExecutionStatus::Skipped | ExecutionStatus::NotStarted
        );
        if !ran || cell.outputs().is_none() {
            continue;
        }
        let line = JournalLine {
            generation: report.kernel.as_ref().map_or(0, |kernel| kernel.generation),
            count: cell.execution_count,
            status: cell.status,
            title: cell.details().title.as_deref(),
            at: at.as_ref().map_or(0, Duration::as_secs),
            code: &request.code,
            outputs: cell.outputs(),
        };
        let start = lines.len();
        serde_json::to_writer(&mut lines, &line)?;
        // Outputs that were read from a notebook have its layout. A line break in JSON is white space.
        for byte in &mut lines[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        lines.push(b'\n');
    }
    Ok(lines)
}
