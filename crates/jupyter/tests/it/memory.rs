//! The memory that frames are read into, and headers that are odd.

use bytes::Bytes;
use cellwright_jupyter::message::Header;
use cellwright_jupyter::zmtp::{Incoming, Limits, Reader, Writer};
use tokio::io::{DuplexStream, duplex};

const LARGE: usize = 100_000;

struct Wires {
    writer: Writer<DuplexStream>,
    reader: Reader<DuplexStream>,
}

impl Wires {
    fn new() -> Self {
        let (near, far) = duplex(1 << 20);
        Self {
            writer: Writer::new(near),
            reader: Reader::new(far, Limits::default()),
        }
    }

    /// Sends a frame of so many bytes of a kind; gives what comes.
    async fn pass(&mut self, byte: u8, length: usize) -> Bytes {
        let sent = Bytes::from(vec![byte; length]);
        self.writer.send(std::slice::from_ref(&sent)).await.unwrap();
        match self.reader.next().await.unwrap() {
            Some(Incoming::Message(mut frames)) => {
                assert_eq!(frames, [sent]);
                frames.remove(0)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_large_frame_gets_the_memory_of_the_one_before_if_nobody_has_that() {
    let mut wires = Wires::new();
    let first = wires.pass(b'a', LARGE).await;
    let place = first.as_ptr();
    drop(first);
    for length in [LARGE / 2, LARGE - 1, LARGE] {
        let next = wires.pass(b'b', length).await;
        assert_eq!(next.as_ptr(), place);
    }
}

#[tokio::test]
async fn a_frame_that_somebody_has_stays_what_it_is() {
    let mut wires = Wires::new();
    let first = wires.pass(b'a', LARGE).await;
    let part = first.slice(10..20);
    drop(first);
    let second = wires.pass(b'b', LARGE).await;
    let third = wires.pass(b'c', LARGE).await;
    assert_eq!(part, [b'a'; 10][..]);
    assert_eq!(second, vec![b'b'; LARGE]);
    assert_eq!(third, vec![b'c'; LARGE]);
}

#[tokio::test]
async fn memory_is_not_kept_beyond_a_flood_nor_for_a_frame_that_is_huge() {
    let mut wires = Wires::new();
    let large = wires.pass(b'a', LARGE).await;
    assert!(!large.is_unique());
    wires.pass(b'b', 10).await;
    assert!(large.is_unique());

    let huge = 33 << 20;
    let (near, far) = duplex(1 << 20);
    let mut writer = Writer::new(near);
    let sending = tokio::spawn(async move {
        writer.send(&[Bytes::from(vec![b'c'; huge])]).await.unwrap();
        writer
    });
    let mut reader = Reader::new(far, Limits::default());
    let Some(Incoming::Message(frames)) = reader.next().await.unwrap() else {
        panic!("no message");
    };
    assert_eq!(frames[0].len(), huge);
    assert!(frames[0].is_unique());
    sending.await.unwrap();
}

#[test]
fn a_header_that_is_odd_is_read_for_what_it_has() {
    let odd = r#"{"msg_id": 1, "msg_type": "status", "session": null, "username": {"a": [1, "b"]},
        "date": [1.5, {"c": -1}], "version": true, "subshell_id": -3, "more": "x"}"#;
    let header: Header = serde_json::from_str(odd).unwrap();
    let expected = Header {
        msg_type: "status".to_owned(),
        ..Header::default()
    };
    assert_eq!(header, expected);
    let whole = r#"{"msg_id": "a\n\u00e9", "subshell_id": "s"}"#;
    let header: Header = serde_json::from_str(whole).unwrap();
    assert_eq!(header.msg_id, "a\né");
    assert_eq!(header.subshell_id.as_deref(), Some("s"));
    for broken in [
        r#"{"msg_id": "a"#,
        r#"{"msg_id": [1, }"#,
        r#"{"msg_id": nul}"#,
    ] {
        serde_json::from_str::<Header>(broken).unwrap_err();
    }
}
