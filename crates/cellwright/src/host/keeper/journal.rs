//! [`Journals`]: every cell that ran on a session with its outputs, one JSON line each. The journals are on disk, so
//! that a long session costs no memory. A separate thread writes them, so that no request waits for the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::execution::CellOutputs;
use cellwright_kernel::session::SessionId;
use cellwright_stdext::LockExt;
use serde::Serialize;
use tokio::sync::oneshot;

use super::create_private_dir;
use crate::execution::{ExecutionReport, ExecutionStatus};

/// How many entries may wait for the disk before whoever runs code waits, too.
const QUEUE_CAPACITY: usize = 256;

/// How long the thread waits for more before it writes: to be woken for every entry would take a
/// processor away from whoever waits for the answer.
const BATCH_DELAY: Duration = Duration::from_millis(10);

pub(super) struct Journals {
    folder: PathBuf,
    orders: SyncSender<JournalCommand>,
    lost: LostCounts,
}

/// How many runs of a session could not be written down.
type LostCounts = Arc<Mutex<BTreeMap<u64, u64>>>;

/// What the thread is to do, in this order.
enum JournalCommand {
    Write(SessionId, Vec<u8>),
    Forget(SessionId),
    /// Everything before this is done.
    Tell(oneshot::Sender<()>),
}

/// One cell, as it is written.
#[derive(Serialize)]
struct JournalLine<'a> {
    generation: u32,
    count: Option<u32>,
    status: ExecutionStatus,
    title: Option<&'a str>,
    /// When it ended, in seconds since 1970.
    at: u64,
    code: &'a str,
    outputs: Option<&'a CellOutputs>,
}

impl Journals {
    /// Journals in this folder. What a host before this one left there is of no use.
    pub(super) fn new(folder: PathBuf) -> Self {
        std::fs::remove_dir_all(&folder).ok();
        let (orders, receiver) = sync_channel(QUEUE_CAPACITY);
        let lost = LostCounts::default();
        let writer = JournalWriter {
            folder: folder.clone(),
            lost: Arc::clone(&lost),
            open: None,
        };
        let begun = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&receiver));
        // Without it nothing is written, which is counted.
        drop(begun);
        Self {
            folder,
            orders,
            lost,
        }
    }

    /// Where the cells of a session are written.
    pub(super) fn path(&self, session: SessionId) -> PathBuf {
        path(&self.folder, session)
    }

    /// Has written down what ran.
    pub(super) fn write(&self, session: SessionId, codes: &[String], answer: &ExecutionReport) {
        let lines = render_lines(codes, answer).unwrap_or_default();
        if lines.is_empty() {
            return;
        }
        if self
            .orders
            .send(JournalCommand::Write(session, lines))
            .is_err()
        {
            count_lost(&self.lost, session);
        }
    }

    /// Waits until everything is written that is to be.
    pub(super) async fn flush(&self) {
        let (reply, told) = oneshot::channel();
        if self.orders.send(JournalCommand::Tell(reply)).is_ok() {
            told.await.ok();
        }
    }

    /// How many runs of a session could not be written down.
    pub(super) fn lost(&self, session: SessionId) -> u64 {
        let lost = self.lost.lock_ignoring_poison();
        lost.get(&session.0).copied().unwrap_or(0)
    }

    /// Forgets a session.
    pub(super) fn forget(&self, session: SessionId) {
        // A thread that is gone has nothing to remember.
        self.orders.send(JournalCommand::Forget(session)).ok();
    }

    /// Forgets all sessions but these, and those that are younger: they were made since the list was.
    pub(super) fn retain(&self, sessions: impl Iterator<Item = SessionId>) {
        let wanted: BTreeSet<u64> = sessions.map(|id| id.0).collect();
        let Some(youngest) = wanted.last() else {
            return;
        };
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        for entry in entries.flatten() {
            let path = entry.path();
            let id = path
                .file_stem()
                .and_then(|name| name.to_str()?.parse().ok());
            if let Some(id) = id
                && id < *youngest
                && !wanted.contains(&id)
            {
                self.forget(SessionId(id));
            }
        }
    }

    pub(super) fn remove(&self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// The thread's own.
struct JournalWriter {
    folder: PathBuf,
    lost: LostCounts,
    /// The journal that was written to last: often the next entry is for the same.
    open: Option<(SessionId, File)>,
}

impl JournalWriter {
    /// Works until nobody is left who could order anything.
    fn run(mut self, orders: &Receiver<JournalCommand>) {
        while let Ok(first) = orders.recv() {
            thread::sleep(BATCH_DELAY);
            for order in std::iter::once(first).chain(orders.try_iter()) {
                self.handle(order);
            }
        }
    }

    fn handle(&mut self, order: JournalCommand) {
        match order {
            JournalCommand::Write(session, lines) => {
                // A disk that is full takes the history, not the run.
                if self.write(session, &lines).is_err() {
                    self.open = None;
                    count_lost(&self.lost, session);
                }
            }
            JournalCommand::Forget(session) => {
                self.open = self.open.take().filter(|(open, _)| *open != session);
                // Nothing may have run on it.
                std::fs::remove_file(path(&self.folder, session)).ok();
            }
            JournalCommand::Tell(reply) => {
                // Whoever asked may have gone.
                reply.send(()).ok();
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
            // Half a line would make the next one unreadable.
            file.set_len(before)?;
            return Err(error);
        }
        self.open = Some((session, file));
        Ok(())
    }

    fn open(&self, session: SessionId) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let path = path(&self.folder, session);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_private_dir(&self.folder)?;
                options.open(&path)
            }
            opened => opened,
        }
    }
}

fn path(folder: &Path, session: SessionId) -> PathBuf {
    folder.join(format!("{session}.jsonl"))
}

fn count_lost(lost: &Mutex<BTreeMap<u64, u64>>, session: SessionId) {
    let mut lost = lost.lock_ignoring_poison();
    *lost.entry(session.0).or_default() += 1;
}

/// The cells that ran, as they are written.
fn render_lines(codes: &[String], answer: &ExecutionReport) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    for (cell, code) in answer.cells.iter().zip(codes) {
        let ran = !matches!(
            cell.status,
            ExecutionStatus::Skipped | ExecutionStatus::NotStarted
        );
        if !ran || cell.outputs.is_none() {
            continue;
        }
        let line = JournalLine {
            generation: answer.kernel.as_ref().map_or(0, |kernel| kernel.generation),
            count: cell.execution_count,
            status: cell.status,
            title: cell.title.as_deref(),
            at: at.as_ref().map_or(0, Duration::as_secs),
            code,
            outputs: cell.outputs.as_ref(),
        };
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
