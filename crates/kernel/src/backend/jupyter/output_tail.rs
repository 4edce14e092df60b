//! [`ProcessOutputTail`]: the end of a process's standard output and error. It belongs to no cell, but explains why a
//! kernel failed to start or died.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cellwright_stdext::LockExt;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backend::late_output::Tail;
use crate::process::ChildPipes;

/// How long to read the output of a process that has exited.
const FINAL_OUTPUT_TIMEOUT: Duration = Duration::from_millis(50);

/// Reads the output of a process and keeps the end.
#[derive(Debug)]
pub(super) struct ProcessOutputTail {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
}

impl ProcessOutputTail {
    /// Starts to read the pipes of a process.
    pub(super) fn read_from(pipes: ChildPipes) -> io::Result<Self> {
        let tail = Arc::new(Mutex::new(Tail::default()));
        let mut readers = JoinSet::new();
        for pipe in [pipes.stdout, pipes.stderr] {
            let mut pipe = Receiver::from_owned_fd(pipe)?;
            let tail = Arc::clone(&tail);
            readers.spawn(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                    let mut tail = tail.lock_ignoring_poison();
                    tail.push(&buffer[..count]);
                }
            });
        }
        Ok(Self { tail, readers })
    }

    /// The end of the output, so far.
    pub(super) fn text(&self) -> String {
        let tail = self.tail.lock_ignoring_poison();
        tail.text()
    }

    /// The end of the output of a process that has exited.
    pub(super) async fn final_text(&mut self) -> String {
        let all = async { while self.readers.join_next().await.is_some() {} };
        // A child of the process may still have the pipe open.
        timeout(FINAL_OUTPUT_TIMEOUT, all).await.ok();
        self.text()
    }
}
