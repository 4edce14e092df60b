//! [`Words`]: what a kernel's process says past its channels. It is nobody's output, but tells why a
//! kernel would not start or has died.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backend::late::Tail;
use crate::process::Ends;

/// How long the last words of a process that has ended may take.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The last words of a process.
#[derive(Debug)]
pub(super) struct Words {
    tail: Arc<Mutex<Tail>>,
    readers: JoinSet<()>,
}

impl Words {
    pub(super) fn hear(ends: Ends) -> io::Result<Self> {
        let tail = Arc::new(Mutex::new(Tail::default()));
        let mut readers = JoinSet::new();
        for pipe in [ends.stdout, ends.stderr] {
            let mut pipe = Receiver::from_owned_fd(pipe)?;
            let tail = Arc::clone(&tail);
            readers.spawn(async move {
                let mut buffer = vec![0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                    tail.hear(&buffer[..count]);
                }
            });
        }
        Ok(Self { tail, readers })
    }

    /// What was said last, by now.
    pub(super) fn text(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.text()
    }

    /// What a process that has ended said last.
    pub(super) async fn last(&mut self) -> String {
        let all = async { while self.readers.join_next().await.is_some() {} };
        // A child of it may have the pipe still.
        timeout(LAST_WORDS, all).await.ok();
        self.text()
    }
}
