//! Reads arbitrary bytes as a ZMTP connection.
//!
//! The first byte selects the size of the chunks in which the rest arrives, and the length from which
//! frames are spooled to disk. The messages must not depend on either. Complete messages must be the
//! same after they are written and read again.

#![no_main]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use cellwright_jupyter::client::SpoolingStore;
use cellwright_jupyter::zmtp::{Limits, Reader, ReceivedItem, Writer};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf};

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    frames: 16,
};

/// Bytes that arrive in chunks of a fixed size.
struct ChunkedReader<'a>(&'a [u8], usize);

impl AsyncRead for ChunkedReader<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let length = self.1.min(self.0.len()).min(buffer.remaining());
        let (chunk, rest) = self.0.split_at(length);
        buffer.put_slice(chunk);
        self.0 = rest;
        Poll::Ready(Ok(()))
    }
}

/// Runs a future that never waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Reads to the end. Returns the received messages and commands, and the final error or an empty
/// string.
fn read_all(
    bytes: &[u8],
    chunk_size: usize,
    spool_threshold: usize,
) -> (Vec<ReceivedItem>, String) {
    let store = SpoolingStore::new(spool_threshold);
    let mut reader = Reader::new(ChunkedReader(bytes, chunk_size), LIMITS).with_store(store);
    let mut received = Vec::new();
    loop {
        match block_on(reader.next()) {
            Ok(Some(ReceivedItem::Message(frames))) => {
                let frames = frames.iter().map(|frame| frame.bytes().unwrap());
                received.push(ReceivedItem::Message(frames.collect()));
            }
            Ok(Some(ReceivedItem::Command(name, data))) => {
                received.push(ReceivedItem::Command(name, data));
            }
            Ok(None) => return (received, String::new()),
            Err(error) => return (received, error.to_string()),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let at_once = read_all(bytes, usize::MAX, usize::MAX);
    let chunk_size = 1 + usize::from(first);
    assert_eq!(
        read_all(bytes, chunk_size, usize::from(first % 16)),
        at_once
    );
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written);
    for incoming in &at_once.0 {
        block_on(async {
            match incoming {
                ReceivedItem::Message(frames) => writer.send(frames).await,
                ReceivedItem::Command(name, data) => {
                    let Ok(name) = std::str::from_utf8(name) else {
                        return Ok(());
                    };
                    writer.send_command(name, data).await
                }
            }
        })
        .expect("writing to memory does not fail");
    }
    drop(writer);
    let (again, error) = read_all(&written, usize::MAX, usize::MAX);
    assert_eq!(error, "");
    let was_written = |incoming: &&ReceivedItem| match incoming {
        ReceivedItem::Message(_) => true,
        ReceivedItem::Command(name, _) => std::str::from_utf8(name).is_ok(),
    };
    assert!(at_once.0.iter().filter(was_written).eq(&again));
});
