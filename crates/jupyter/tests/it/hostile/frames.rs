//! Frames that are none, and more of them than anybody may send.

use std::pin::pin;

use bytes::Bytes;
use cellwright_jupyter::zmtp::{Incoming, Limits, Reader, ZmtpError};
use tokio::io::AsyncWriteExt;

use super::{announced, frame};
use crate::support::within;

async fn read(bytes: &[u8], limits: Limits) -> Result<Option<Incoming>, ZmtpError> {
    within(Reader::new(bytes, limits).next()).await
}

async fn refusal(bytes: &[u8], limits: Limits) -> ZmtpError {
    match read(bytes, limits).await {
        Ok(came) => panic!("accepted: {came:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn lengths_beyond_the_limit_are_refused_before_anything_comes() {
    let limits = Limits::default();
    for length in [(2 << 30) + 1, 1 << 40, 1 << 63, u64::MAX] {
        for flags in [0, 1, 4] {
            let error = refusal(&announced(flags, length), limits).await;
            let ZmtpError::TooLarge { limit } = error else {
                panic!("{error:?}");
            };
            assert_eq!(limit, 2 << 30);
        }
        // Also as the second of its message, where a sum could overflow.
        let bytes = [frame(1, b"first"), announced(0, length)].concat();
        let error = refusal(&bytes, limits).await;
        assert!(matches!(error, ZmtpError::TooLarge { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_message_may_be_as_large_as_the_limit_in_all_its_frames_and_no_larger() {
    let limits = Limits {
        message_bytes: 100_000,
        frames: 10,
    };
    let half = frame(1, &vec![1; 50_000]);
    let fits = [half.clone(), frame(0, &vec![2; 50_000])].concat();
    assert!(matches!(read(&fits, limits).await, Ok(Some(_))));
    let over = [half, frame(0, &vec![2; 50_001])].concat();
    let error = refusal(&over, limits).await;
    assert!(matches!(error, ZmtpError::TooLarge { .. }), "{error:?}");
    // And the next message begins anew.
    let mut reader = Reader::new(&fits[..], limits);
    reader.next().await.unwrap().unwrap();
    let twice = [fits.clone(), fits].concat();
    let mut reader = Reader::new(&twice[..], limits);
    for _ in 0..2 {
        within(reader.next()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn endless_frames_come_to_an_end() {
    let limits = Limits {
        message_bytes: 1 << 20,
        frames: 100,
    };
    let error = refusal(&frame(1, b"").repeat(101), limits).await;
    assert!(
        matches!(error, ZmtpError::TooManyFrames { limit: 100 }),
        "{error:?}"
    );
    let fits = [frame(1, b"").repeat(99), frame(0, b"")].concat();
    let Ok(Some(Incoming::Message(frames))) = read(&fits, limits).await else {
        panic!("refused");
    };
    assert_eq!(frames.len(), 100);
}

#[tokio::test]
async fn flags_and_commands_that_make_no_sense_are_refused() {
    let limits = Limits::default();
    for flags in (0..=255).filter(|flags| flags & !7 != 0) {
        let error = refusal(&[flags, 0], limits).await;
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
        let error = refusal(&bytes, limits).await;
        assert!(
            matches!(error, ZmtpError::Malformed { .. }),
            "{bytes:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn memory_follows_what_comes_and_not_what_is_announced() {
    const READERS: usize = 500;
    let before = memory();
    let mut writers = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (mut theirs, ours) = tokio::io::duplex(1024);
        let bytes = [announced(0, 2 << 30), vec![0; 100]].concat();
        theirs.write_all(&bytes).await.unwrap();
        let mut reader = Reader::new(ours, Limits::default());
        {
            let next = pin!(reader.next());
            let waits = tokio::time::timeout(std::time::Duration::from_millis(1), next).await;
            assert!(waits.is_err(), "it was only announced");
        }
        readers.push(reader);
        writers.push(theirs);
    }
    // A terabyte was announced. Other tests may take some meanwhile.
    let taken = memory().saturating_sub(before);
    assert!(taken < 4 << 30, "{taken} bytes were taken");
}

/// How much memory this process has asked for.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test]
async fn what_is_given_up_half_way_goes_on_where_it_was() {
    let bytes = [
        frame(1, b"first"),
        frame(0, &vec![7; 100_000]),
        frame(0, b"next"),
    ]
    .concat();
    let (mut theirs, ours) = tokio::io::duplex(64);
    let says = async {
        for piece in bytes.chunks(33) {
            theirs.write_all(piece).await.unwrap();
        }
        theirs.shutdown().await.unwrap();
    };
    let hears = async {
        let mut reader = Reader::new(ours, Limits::default());
        let mut came = Vec::new();
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    next = reader.next() => Some(next),
                    () = tokio::task::yield_now() => None,
                }
            };
            match next.await {
                Some(Ok(Some(incoming))) => came.push(incoming),
                Some(Ok(None)) => return came,
                Some(Err(error)) => panic!("{error:?}"),
                None => {}
            }
        }
    };
    let (came, ()) = within(async { tokio::join!(hears, says) }).await;
    let first = vec![Bytes::from_static(b"first"), Bytes::from(vec![7; 100_000])];
    let next = vec![Bytes::from_static(b"next")];
    assert!(came == [Incoming::Message(first), Incoming::Message(next)]);
}
