//! [`Recorder`]: receives the outputs of cells and writes them to their notebook while the cells run.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use cellwright_kernel::Description;
use cellwright_output::Stream;

use crate::error::RunError;
use crate::recorder_command::{CommitError, FinishedCell, RecordOutcome, RecorderCommand, Stores};
use crate::run_spec::RunSpec;
use crate::saver::Saver;

/// Number of commands that may wait for the saver thread; then the sender blocks. A larger queue only costs
/// memory.
const COMMAND_QUEUE_CAPACITY: usize = 64;

/// Receives the outputs of a notebook's cells. A separate thread writes them to the file: about once a second,
/// however fast the cells are, and once more at the end.
///
/// Cells are named by their position in [`RunSpec::cells`].
#[derive(Debug)]
pub struct Recorder {
    commands: SyncSender<RecorderCommand>,
    thread: JoinHandle<RecordOutcome>,
}

impl Recorder {
    /// Starts the thread that writes the notebook.
    pub fn start(spec: RunSpec, stores: Stores) -> std::io::Result<Self> {
        let (commands, receiver): (_, Receiver<RecorderCommand>) =
            sync_channel(COMMAND_QUEUE_CAPACITY);
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || Saver::new(spec, stores).serve(&receiver))?;
        Ok(Self { commands, thread })
    }

    /// Applies the edits and finds the planned cells. The caller does this once the kernel is ready.
    ///
    /// After an error no cell may run, and the notebook is unchanged, except that it contains the edits after a
    /// [`CommitError::CellsChanged`] with `edited`. A copy at [`RunSpec::output`] may exist.
    pub fn commit(&self) -> Result<(), CommitError> {
        let (sender, reply) = sync_channel(1);
        self.send(RecorderCommand::Commit(sender));
        reply.recv().unwrap_or(Err(CommitError::RecorderGone))
    }

    /// Sets the kernel that runs the following cells.
    pub fn set_kernel(&self, kernel: &Description) {
        self.send(RecorderCommand::SetKernel(Box::new(kernel.clone())));
    }

    /// Marks a cell as started: it has no outputs in the file until it finishes.
    pub fn begin_cell(&self, cell: usize) {
        let at = SystemTime::now();
        self.send(RecorderCommand::BeginCell { cell, at });
    }

    /// Records the result of a cell.
    pub fn finish_cell(&self, finished: FinishedCell) {
        self.send(RecorderCommand::FinishCell(Box::new(finished)));
    }

    /// Appends output that arrived after the cell finished.
    pub fn append_late(&self, cell: usize, stream: Stream, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.send(RecorderCommand::AppendLate {
            cell,
            stream,
            bytes,
        });
    }

    /// Saves the remaining changes and returns the outcome of the whole recording.
    pub fn finish(self) -> RecordOutcome {
        drop(self.commands);
        self.thread.join().unwrap_or_else(|_| RecordOutcome {
            panicked: true,
            ..RecordOutcome::default()
        })
    }

    fn send(&self, command: RecorderCommand) {
        // If the thread has panicked, `finish` reports it.
        self.commands.send(command).ok();
    }
}

/// Applies the edits of a run in which no cell runs.
pub fn apply_edits(spec: RunSpec, stores: Stores) -> Result<RecordOutcome, RunError> {
    let recorder = Recorder::start(spec, stores)?;
    recorder.commit()?;
    Ok(recorder.finish())
}
