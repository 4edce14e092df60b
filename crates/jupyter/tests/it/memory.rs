//! The memory of received frames, and unusual headers.

use bytes::Bytes;
use cellwright_jupyter::client::SpoolingStore;
use cellwright_jupyter::codec::MessageCodec;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::{Header, Message};
use cellwright_jupyter::zmtp::{Limits, Reader, ReceivedItem, Writer};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

const LARGE: usize = 100_000;

struct Pair {
    writer: Writer<DuplexStream>,
    reader: Reader<DuplexStream>,
}

impl Pair {
    fn new() -> Self {
        let (near, far) = duplex(1 << 20);
        Self {
            writer: Writer::new(near),
            reader: Reader::new(far, Limits::default()),
        }
    }

    /// Sends a frame of `length` equal bytes and returns it as it was received.
    async fn transfer(&mut self, byte: u8, length: usize) -> Bytes {
        let sent = Bytes::from(vec![byte; length]);
        self.writer.send(std::slice::from_ref(&sent)).await.unwrap();
        match self.reader.next().await.unwrap() {
            Some(ReceivedItem::Message(mut frames)) => {
                assert_eq!(frames, [sent]);
                frames.remove(0)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_large_frame_reuses_the_memory_of_a_dropped_one() {
    let mut pair = Pair::new();
    let first = pair.transfer(b'a', LARGE).await;
    let address = first.as_ptr();
    drop(first);
    for length in [LARGE / 2, LARGE - 1, LARGE] {
        let next = pair.transfer(b'b', length).await;
        assert_eq!(next.as_ptr(), address);
    }
}

#[tokio::test]
async fn memory_is_reused_from_any_of_several_frames_if_it_fits() {
    let mut pair = Pair::new();
    let first = pair.transfer(b'a', LARGE).await;
    let second = pair.transfer(b'b', LARGE).await;
    let third = pair.transfer(b'c', LARGE).await;
    let address = second.as_ptr();
    drop(second);
    let fourth = pair.transfer(b'd', LARGE).await;
    assert_eq!(fourth.as_ptr(), address);
    assert_eq!((first[0], third[0]), (b'a', b'c'));
    drop(fourth);
    // The free buffer is far larger than this frame.
    let small = pair.transfer(b'e', LARGE / 3).await;
    assert_ne!(small.as_ptr(), address);
    // Only the latest frames are retained.
    let mut all = Vec::new();
    for byte in 0..20 {
        all.push(pair.transfer(byte, LARGE).await);
    }
    assert!(first.is_unique() && third.is_unique() && all[0].is_unique());
    assert!(!all[19].is_unique());
}

#[tokio::test]
async fn a_frame_in_use_does_not_change() {
    let mut pair = Pair::new();
    let first = pair.transfer(b'a', LARGE).await;
    let part = first.slice(10..20);
    drop(first);
    let second = pair.transfer(b'b', LARGE).await;
    let third = pair.transfer(b'c', LARGE).await;
    assert_eq!(part, [b'a'; 10][..]);
    assert_eq!(second, vec![b'b'; LARGE]);
    assert_eq!(third, vec![b'c'; LARGE]);
}

#[tokio::test]
async fn memory_is_not_retained_after_a_flood_nor_for_a_huge_frame() {
    let mut pair = Pair::new();
    let large = pair.transfer(b'a', LARGE).await;
    assert!(!large.is_unique());
    pair.transfer(b'b', 10).await;
    assert!(large.is_unique());

    let huge = 33 << 20;
    let (near, far) = duplex(1 << 20);
    let mut writer = Writer::new(near);
    let sending = tokio::spawn(async move {
        writer.send(&[Bytes::from(vec![b'c'; huge])]).await.unwrap();
        writer
    });
    let mut reader = Reader::new(far, Limits::default());
    let Some(ReceivedItem::Message(frames)) = reader.next().await.unwrap() else {
        panic!("no message");
    };
    assert_eq!(frames[0].len(), huge);
    assert!(frames[0].is_unique());
    sending.await.unwrap();
}

/// Peak memory of this process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_spooled_frame_is_not_in_memory_while_it_is_received_and_verified() {
    const PIECE: usize = 1 << 16;
    const LENGTH: usize = 64 << 20;
    let piece = vec![b'x'; PIECE];
    let mut codec = MessageCodec::new("key");
    let mut message = Message::new("display_data", "s", &json!({}));
    let sent = {
        // The signature of a content that is never in memory as a whole.
        let mut mac = Hmac::<Sha256>::new_from_slice(b"key").unwrap();
        for part in [&message.raw_header, &message.parent, &message.metadata] {
            mac.update(part);
        }
        for _ in 0..LENGTH / PIECE {
            mac.update(&piece);
        }
        mac.finalize().into_bytes()
    };
    let signature = format!("{:x}", Bytes::copy_from_slice(&sent));
    let (mut near, far) = duplex(1 << 16);
    let head = [
        Bytes::from_static(b"<IDS|MSG>"),
        signature.into(),
        message.raw_header.clone(),
        message.parent.clone(),
        message.metadata.clone(),
    ];
    let before = peak_memory();
    let sending = tokio::spawn(async move {
        for frame in head {
            let length = [&[3][..], &(frame.len() as u64).to_be_bytes()].concat();
            near.write_all(&length).await.unwrap();
            near.write_all(&frame).await.unwrap();
        }
        let length = [&[2][..], &(LENGTH as u64).to_be_bytes()].concat();
        near.write_all(&length).await.unwrap();
        for _ in 0..LENGTH / PIECE {
            near.write_all(&piece).await.unwrap();
        }
    });
    let store = SpoolingStore::new(1 << 20).with_signing_key("key");
    let mut reader = Reader::new(far, Limits::default()).with_store(store);
    let Some(ReceivedItem::Message(frames)) = reader.next().await.unwrap() else {
        panic!("no message");
    };
    sending.await.unwrap();
    let received = codec.decode(frames).unwrap();
    assert_eq!(received.header, message.header);
    let Frame::OnDisk(content) = &received.content else {
        panic!("the content is in memory");
    };
    let mut length = 0;
    content
        .read(|piece| {
            assert!(piece.iter().all(|byte| *byte == b'x'));
            length += piece.len();
            Ok(())
        })
        .unwrap();
    assert_eq!(length, LENGTH);
    assert!(
        peak_memory() - before < 4 << 20,
        "{} bytes",
        peak_memory() - before
    );
    message.content = vec![b'y'; LENGTH].into();
    assert!(message.content != received.content);
}

#[test]
fn a_header_with_invalid_fields_is_read() {
    let unusual = r#"{"msg_id": 1, "msg_type": "status", "session": null, "username": {"a": [1, "b"]},
        "date": [1.5, {"c": -1}], "version": true, "subshell_id": -3, "more": "x"}"#;
    let header: Header = serde_json::from_str(unusual).unwrap();
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
