//! [`Journals`]: every cell that ran on a session, with its outputs, one line of JSON each. On disk,
//! so that a long life costs no memory.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::SystemTime;

use cellwright_kernel::session::SessionId;
use cellwright_output::Outputs;
use serde::Serialize;

use super::private_folder;
use crate::evaluation::{EvalAnswer, Status};

pub(super) struct Journals {
    folder: PathBuf,
}

/// One cell, as it is written.
#[derive(Serialize)]
struct Line<'a> {
    generation: u32,
    count: Option<u32>,
    status: Status,
    title: Option<&'a str>,
    /// When it ended, in seconds since 1970.
    at: u64,
    code: &'a str,
    outputs: Option<&'a Outputs>,
}

impl Journals {
    /// Journals in this folder. What a host before this one left there is of no use.
    pub(super) fn new(folder: PathBuf) -> Self {
        std::fs::remove_dir_all(&folder).ok();
        Self { folder }
    }

    /// Where the cells of a session are written.
    pub(super) fn path(&self, session: SessionId) -> PathBuf {
        self.folder.join(format!("{session}.jsonl"))
    }

    /// Writes down what ran. A disk that is full takes the history, not the run.
    pub(super) fn write(&self, session: SessionId, codes: &[String], answer: &EvalAnswer) {
        let write = || -> std::io::Result<()> {
            let mut file = BufWriter::new(self.open(session)?);
            let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            for (cell, code) in answer.cells.iter().zip(codes) {
                if matches!(cell.status, Status::Skipped | Status::Refused)
                    || cell.outputs.is_none()
                {
                    continue;
                }
                let line = Line {
                    generation: answer.kernel.as_ref().map_or(0, |kernel| kernel.generation),
                    count: cell.execution_count,
                    status: cell.status,
                    title: cell.title.as_deref(),
                    at: at.as_ref().map_or(0, std::time::Duration::as_secs),
                    code,
                    outputs: cell.outputs.as_ref(),
                };
                serde_json::to_writer(&mut file, &line)?;
                file.write_all(b"\n")?;
            }
            file.flush()
        };
        write().ok();
    }

    fn open(&self, session: SessionId) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        match options.open(self.path(session)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                private_folder(&self.folder)?;
                options.open(self.path(session))
            }
            opened => opened,
        }
    }

    /// Forgets a session.
    pub(super) fn forget(&self, session: SessionId) {
        // Nothing may have run on it.
        std::fs::remove_file(self.path(session)).ok();
    }

    /// Forgets all sessions but these, and those that are younger: they were made since the list was.
    pub(super) fn keep(&self, sessions: impl Iterator<Item = SessionId>) {
        let wanted: BTreeSet<u64> = sessions.map(|id| id.0).collect();
        let Some(youngest) = wanted.last() else {
            return;
        };
        for entry in std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let id = path
                .file_stem()
                .and_then(|name| name.to_str()?.parse().ok());
            if id.is_some_and(|id: u64| id < *youngest && !wanted.contains(&id)) {
                std::fs::remove_file(path).ok();
            }
        }
    }

    pub(super) fn remove(&self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}
