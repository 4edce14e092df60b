//! What holds of every message, however it comes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::{Header, Message};
use cellwright_jupyter::wire::Wire;
use cellwright_jupyter::zmtp::{Incoming, Limits, Reader, Writer};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that come in pieces, with pauses.
struct Pieces(VecDeque<Vec<u8>>, bool);

impl Pieces {
    fn new(bytes: &[u8], lengths: &[usize]) -> Self {
        let mut rest = bytes;
        let mut pieces = VecDeque::new();
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at((*length).min(rest.len()));
            pieces.push_back(piece.to_vec());
            rest = more;
        }
        Self(pieces, false)
    }
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1 = !self.1;
        if self.1 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// Everything that comes, until it ends or makes no sense. Frames of this size go to disk on the way.
async fn all(pieces: Pieces, limits: Limits, store_from: usize) -> (Vec<Incoming>, bool) {
    let mut reader = Reader::new(pieces, limits).storing(store_from);
    let mut came = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(Incoming::Large(frames))) => {
                let stored = |frame: &Frame| matches!(frame, Frame::Stored(_));
                assert!(frames.iter().any(stored));
                for frame in &frames {
                    assert_eq!(stored(frame), frame.size() >= store_from as u64);
                }
                let frames = frames.iter().map(|frame| frame.bytes().unwrap());
                came.push(Incoming::Message(frames.collect()));
            }
            Ok(Some(incoming)) => came.push(incoming),
            Ok(None) => return (came, true),
            Err(_) => return (came, false),
        }
    }
}

fn frame() -> impl Strategy<Value = Bytes> {
    let length = prop_oneof![
        4 => 0..20usize,
        2 => 250..260usize,
        1 => 32_760..32_775usize,
        1 => 60_000..140_000usize,
    ];
    (length, any::<u8>()).prop_map(|(length, byte)| Bytes::from(vec![byte; length]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_are_the_same_however_they_are_cut(
        messages in vec(vec(frame(), 1..6), 0..6),
        lengths in vec(prop_oneof![1..10usize, 1..100_000usize], 1..8),
        store_from in prop_oneof![Just(usize::MAX), 32_768..100_000usize],
    ) {
        wait(async {
            let mut written = Vec::new();
            let mut writer = Writer::new(&mut written);
            for message in &messages {
                writer.send(message).await.unwrap();
                writer.command("PING", b"\0\0x").await.unwrap();
            }
            drop(writer);
            let limits = Limits::default();
            let (came, whole) = all(Pieces::new(&written, &lengths), limits, store_from).await;
            assert!(whole);
            let ping = || Incoming::Command("PING".into(), Bytes::from_static(b"\0\0x"));
            let expected: Vec<Incoming> = messages
                .iter()
                .flat_map(|message| [Incoming::Message(message.clone()), ping()])
                .collect();
            assert!(came == expected);
            // Cut off anywhere, it is whole messages and then nothing or an error.
            let end = lengths[0] % (written.len() + 1);
            let (came, _) = all(Pieces::new(&written[..end], &lengths), limits, store_from).await;
            assert!(came[..] == expected[..came.len()]);
        });
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_and_their_cuts_do_not_matter(
        bytes in vec(prop_oneof![0..8u8, any::<u8>()], 0..400),
        lengths in vec(1..50usize, 1..4),
    ) {
        let limits = Limits { message_bytes: 100_000, frames: 10 };
        let cut = wait(all(Pieces::new(&bytes, &lengths), limits, 32_768));
        let whole = wait(all(Pieces::new(&bytes, &[400]), limits, usize::MAX));
        assert_eq!(cut, whole);
    }

    #[test]
    fn no_frames_make_the_wire_panic(
        frames in vec(prop_oneof![
            Just(Bytes::from_static(b"<IDS|MSG>")),
            Just(Bytes::from_static(b"{}")),
            Just(Bytes::from_static(br#"{"msg_type":"x","msg_id":7}"#)),
            vec(any::<u8>(), 0..70).prop_map(Bytes::from),
            "[0-9a-fA-F]{64}".prop_map(Bytes::from),
        ], 0..12),
    ) {
        assert!(Wire::new("key").decode(frames.clone()).is_err(), "forged");
        // Without a key much of it is a message.
        if let Ok(message) = Wire::new("").decode(frames.clone()) {
            message.parent_id();
            message.value();
            let mut again = Wire::new("").encode(&message);
            let at = message.identities.len() + 1;
            again[at].clone_from(&frames[at]);
            assert_eq!(again, frames);
        }
    }

    #[test]
    fn a_signature_is_worth_the_same_whether_it_is_checked_on_the_way_or_afterwards(
        content in vec(any::<u8>(), 0..300),
        parent in vec(any::<u8>(), 0..300),
        identities in vec(vec(any::<u8>(), 0..300), 0..3),
        buffers in vec(vec(any::<u8>(), 0..300), 0..3),
        changed in any::<Option<(prop::sample::Index, prop::sample::Index)>>(),
        lengths in vec(1..200usize, 1..4),
        // Signatures are never so large that they go to disk.
        store_from in 65..300usize,
    ) {
        let mut message = Message::new("stream", "session", &serde_json::json!({}));
        message.identities = identities.into_iter().map(Bytes::from).collect();
        message.parent = parent.into();
        message.content = Bytes::from(content).into();
        message.buffers = buffers.into_iter().map(Frame::from).collect();
        let mut frames = Wire::new("key").encode(&message);
        let original = frames.clone();
        if let Some((frame, byte)) = changed {
            let frame = frame.get_mut(&mut frames);
            let mut bytes = frame.to_vec();
            if !bytes.is_empty() {
                *byte.get_mut(&mut bytes) ^= 1;
            }
            *frame = bytes.into();
        }
        let mut written = Vec::new();
        wait(Writer::new(&mut written).send(&frames)).unwrap();
        let decoded = |signed_with| {
            let pieces = Pieces::new(&written, &lengths);
            let reader = Reader::new(pieces, Limits::default()).storing(store_from);
            let frames = match wait(reader.signed_with(signed_with).next()).unwrap() {
                Some(Incoming::Large(frames)) => frames,
                Some(Incoming::Message(frames)) => frames.into_iter().map(Frame::from).collect(),
                other => panic!("{other:?}"),
            };
            Wire::new("key").decode(frames).map(|message| message.content)
        };
        // From the delimiter to the content.
        let at = message.identities.len();
        let is_right = frames[at..at + 6] == original[at..at + 6];
        let expected = Wire::new("key").decode(frames).map(|message| message.content);
        assert_eq!(expected.is_ok(), is_right);
        assert_eq!(decoded("key"), expected);
        assert_eq!(decoded(""), expected);
    }

    #[test]
    fn a_message_is_the_same_after_the_wire(
        texts in vec(".*", 6),
        subshell in any::<Option<String>>(),
        parts in vec("\\PC{0,20}", 3),
        identities in vec(vec(any::<u8>(), 0..20), 0..3),
        buffers in vec(vec(any::<u8>(), 0..50), 0..4),
        key in ".{0,80}",
    ) {
        let mut texts = texts.into_iter();
        let mut text = || texts.next().unwrap();
        let header = Header {
            msg_id: text(),
            msg_type: format!("x{}", text()),
            session: text(),
            username: text(),
            date: text(),
            version: text(),
            subshell_id: subshell,
        };
        let part = |at: usize| Bytes::from(parts[at].clone());
        let bytes = |all: Vec<Vec<u8>>| all.into_iter().map(Bytes::from).collect();
        let message = Message {
            identities: bytes(identities),
            raw_header: Bytes::from(serde_json::to_string(&header).unwrap()),
            header,
            parent: part(0),
            metadata: part(1),
            content: part(2).into(),
            buffers: buffers.into_iter().map(Frame::from).collect(),
        };
        let mut wire = Wire::new(&key);
        let frames = wire.encode(&message);
        let came = wire.decode(frames.clone()).unwrap();
        assert_eq!(came.header, message.header);
        assert_eq!(came.identities, message.identities);
        assert_eq!(came.buffers, message.buffers);
        assert_eq!(wire.encode(&came), frames);
    }
}
