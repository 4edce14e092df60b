//! Reads arbitrary bytes as the frames that host and clients exchange, and parses each as every kind of message.
//!
//! The first byte sets the size of the parts in which the bytes arrive.

#![no_main]

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use cellwright_host::frame::{Frame, FrameReader};
use cellwright_host::hello::{ClientHello, Greeting, HostHello};
use cellwright_host::protocol::{ClientMessage, ExecuteParams, HostRequest};
use cellwright_host::reply::{Answer, RunInfo, SessionInfo};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncRead, ReadBuf};

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let frames = read_all(bytes, bytes.len().max(1));
    assert_eq!(read_all(bytes, 1 + usize::from(first % 7)), frames);
    for frame in frames.into_iter().flatten() {
        frame.value().ok();
        frame.parse::<HostRequest>().ok();
        frame.parse::<ExecuteParams>().ok();
        frame.parse::<ClientMessage>().ok();
        frame.parse::<Answer>().ok();
        frame.parse::<RunInfo>().ok();
        frame.parse::<SessionInfo>().ok();
        frame.parse::<Greeting<ClientHello>>().ok();
        frame.parse::<Greeting<HostHello>>().ok();
    }
});

/// Reads all frames of bytes that arrive in parts.
fn read_all(bytes: &[u8], part: usize) -> Vec<Result<Frame, String>> {
    let mut reader = FrameReader::new(Parts { bytes, part });
    let mut frames = Vec::new();
    loop {
        let next = pin!(reader.next());
        let Poll::Ready(next) = next.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the bytes are all there");
        };
        match next {
            Ok(Some(frame)) => frames.push(Ok(frame)),
            Ok(None) => return frames,
            Err(error) => {
                frames.push(Err(error.to_string()));
                return frames;
            }
        }
    }
}

/// Bytes that arrive in parts of one size.
struct Parts<'b> {
    bytes: &'b [u8],
    part: usize,
}

impl AsyncRead for Parts<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let count = self.part.min(self.bytes.len()).min(buffer.remaining());
        let (now, rest) = self.bytes.split_at(count);
        buffer.put_slice(now);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}
