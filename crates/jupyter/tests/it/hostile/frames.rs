//! Invalid frames, and frames beyond the limits.

use std::pin::pin;

use bytes::Bytes;
use cellwright_jupyter::zmtp::{Limits, Reader, ReceivedItem, ZmtpError};
use tokio::io::AsyncWriteExt;

use super::{frame, frame_header};
use crate::support::within;

async fn read_one(bytes: &[u8], limits: Limits) -> Result<Option<ReceivedItem>, ZmtpError> {
    within(Reader::new(bytes, limits).next()).await
}

async fn read_error(bytes: &[u8], limits: Limits) -> ZmtpError {
    match read_one(bytes, limits).await {
        Ok(incoming) => panic!("accepted: {incoming:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn lengths_beyond_the_limit_are_rejected_before_their_bytes_arrive() {
    let limits = Limits::default();
    for length in [(2 << 30) + 1, 1 << 40, 1 << 63, u64::MAX] {
        for flags in [0, 1, 4] {
            let error = read_error(&frame_header(flags, length), limits).await;
            let ZmtpError::TooLarge { limit } = error else {
                panic!("{error:?}");
            };
            assert_eq!(limit, 2 << 30);
        }
        // Also for the second frame of a message, where the sum could overflow.
        let bytes = [frame(1, b"first"), frame_header(0, length)].concat();
        let error = read_error(&bytes, limits).await;
        assert!(matches!(error, ZmtpError::TooLarge { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_size_limit_applies_to_all_frames_of_a_message() {
    let limits = Limits {
        message_bytes: 100_000,
        frames: 10,
    };
    let half = frame(1, &vec![1; 50_000]);
    let fits = [half.clone(), frame(0, &vec![2; 50_000])].concat();
    assert!(matches!(read_one(&fits, limits).await, Ok(Some(_))));
    let over = [half, frame(0, &vec![2; 50_001])].concat();
    let error = read_error(&over, limits).await;
    assert!(matches!(error, ZmtpError::TooLarge { .. }), "{error:?}");
    // The next message has its own limit.
    let mut reader = Reader::new(&fits[..], limits);
    reader.next().await.unwrap().unwrap();
    let twice = [fits.clone(), fits].concat();
    let mut reader = Reader::new(&twice[..], limits);
    for _ in 0..2 {
        within(reader.next()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_number_of_frames_is_limited() {
    let limits = Limits {
        message_bytes: 1 << 20,
        frames: 100,
    };
    let error = read_error(&frame(1, b"").repeat(101), limits).await;
    assert!(
        matches!(error, ZmtpError::TooManyFrames { limit: 100 }),
        "{error:?}"
    );
    let fits = [frame(1, b"").repeat(99), frame(0, b"")].concat();
    let Ok(Some(ReceivedItem::Message(frames))) = read_one(&fits, limits).await else {
        panic!("rejected");
    };
    assert_eq!(frames.len(), 100);
}

#[tokio::test]
async fn invalid_flags_and_commands_are_rejected() {
    let limits = Limits::default();
    for flags in (0..=255).filter(|flags| flags & !7 != 0) {
        let error = read_error(&[flags, 0], limits).await;
        assert!(
            matches!(error, ZmtpError::Malformed { .. }),
            "{flags}: {error:?}"
        );
    }
    for bytes in [
        frame(4, b""),
        frame(4, b"\0"),
        frame(4, b"\0PING"),
        frame(4, b"\x05PING"),
        frame(4, b"\xffPING"),
        frame(5, b"\x04PING"),
    ] {
        let error = read_error(&bytes, limits).await;
        assert!(
            matches!(error, ZmtpError::Malformed { .. }),
            "{bytes:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn memory_follows_arrived_bytes_not_announced_lengths() {
    const READERS: usize = 500;
    let before = virtual_memory();
    let mut writers = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (mut peer, local) = tokio::io::duplex(1024);
        let bytes = [frame_header(0, 2 << 30), vec![0; 100]].concat();
        peer.write_all(&bytes).await.unwrap();
        let mut reader = Reader::new(local, Limits::default());
        {
            let next = pin!(reader.next());
            let timed_out = tokio::time::timeout(std::time::Duration::from_millis(1), next).await;
            assert!(timed_out.is_err(), "the frame has not arrived");
        }
        readers.push(reader);
        writers.push(peer);
    }
    // A terabyte was announced. Other tests may allocate some memory at the same time.
    let allocated = virtual_memory().saturating_sub(before);
    assert!(allocated < 4 << 30, "{allocated} bytes were allocated");
}

/// Virtual memory of this process in bytes.
fn virtual_memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
async fn next_is_cancel_safe() {
    let bytes = [
        frame(1, b"first"),
        frame(0, &vec![7; 100_000]),
        frame(0, b"next"),
    ]
    .concat();
    let (mut peer, local) = tokio::io::duplex(64);
    let writing = async {
        for piece in bytes.chunks(33) {
            peer.write_all(piece).await.unwrap();
        }
        peer.shutdown().await.unwrap();
    };
    let reading = async {
        let mut reader = Reader::new(local, Limits::default());
        let mut received = Vec::new();
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    next = reader.next() => Some(next),
                    () = tokio::task::yield_now() => None,
                }
            };
            match next.await {
                Some(Ok(Some(incoming))) => received.push(incoming),
                Some(Ok(None)) => return received,
                Some(Err(error)) => panic!("{error:?}"),
                None => {}
            }
        }
    };
    let (received, ()) = within(async { tokio::join!(reading, writing) }).await;
    let first = vec![Bytes::from_static(b"first"), Bytes::from(vec![7; 100_000])];
    let next = vec![Bytes::from_static(b"next")];
    assert!(received == [ReceivedItem::Message(first), ReceivedItem::Message(next)]);
}
