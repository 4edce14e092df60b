//! Arbitrary bytes as a connection's frames.
//!
//! The first byte says how the rest is cut when it comes, and from which size on frames go to disk. However
//! that is, the same messages come of it; and whole messages, written again, are read again.

#![no_main]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use cellwright_jupyter::zmtp::{Incoming, Limits, Reader, Writer};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf};

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    frames: 16,
};

struct Pieces<'a>(&'a [u8], usize);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let length = self.1.min(self.0.len()).min(buffer.remaining());
        let (piece, rest) = self.0.split_at(length);
        buffer.put_slice(piece);
        self.0 = rest;
        Poll::Ready(Ok(()))
    }
}

/// Nothing here ever waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}

/// Everything that comes, and how it ends.
fn all(bytes: &[u8], length: usize, store_from: usize) -> (Vec<Incoming>, String) {
    let mut reader = Reader::new(Pieces(bytes, length), LIMITS).storing(store_from);
    let mut came = Vec::new();
    loop {
        match now(reader.next()) {
            Ok(Some(Incoming::Large(frames))) => {
                let frames = frames.iter().map(|frame| frame.bytes().unwrap());
                came.push(Incoming::Message(frames.collect()));
            }
            Ok(Some(incoming)) => came.push(incoming),
            Ok(None) => return (came, String::new()),
            Err(error) => return (came, error.to_string()),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let whole = all(bytes, usize::MAX, usize::MAX);
    let length = 1 + usize::from(first);
    assert_eq!(all(bytes, length, usize::from(first % 16)), whole);
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written);
    for incoming in &whole.0 {
        now(async {
            match incoming {
                Incoming::Message(frames) => writer.send(frames).await,
                Incoming::Large(_) => unreachable!("they were read back"),
                Incoming::Command(name, carries) => {
                    let Ok(name) = std::str::from_utf8(name) else {
                        return Ok(());
                    };
                    writer.command(name, carries).await
                }
            }
        })
        .expect("memory takes everything");
    }
    drop(writer);
    let (again, end) = all(&written, usize::MAX, usize::MAX);
    assert_eq!(end, "");
    let is_text = |incoming: &&Incoming| match incoming {
        Incoming::Message(_) | Incoming::Large(_) => true,
        Incoming::Command(name, _) => std::str::from_utf8(name).is_ok(),
    };
    assert!(whole.0.iter().filter(is_text).eq(&again));
});
