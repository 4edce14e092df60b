//! Properties of the reader and the codec for arbitrary messages and arbitrary pieces of bytes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use cellwright_jupyter::client::SpoolingStore;
use cellwright_jupyter::codec::MessageCodec;
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::{Header, Message};
use cellwright_jupyter::zmtp::{Limits, Reader, ReceivedItem, Writer};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

/// A connection whose bytes arrive in pieces, with pauses.
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// Reads until the end or an error. Frames of at least `threshold` bytes are spooled. Returns whether the end was clean.
async fn read_all(pieces: Pieces, limits: Limits, threshold: usize) -> (Vec<ReceivedItem>, bool) {
    let mut reader = Reader::new(pieces, limits).with_store(SpoolingStore::new(threshold));
    let mut received = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(ReceivedItem::Message(frames))) => {
                let is_on_disk = |frame: &Frame| matches!(frame, Frame::OnDisk(_));
                for frame in &frames {
                    assert_eq!(is_on_disk(frame), frame.size() >= threshold as u64);
                }
                let frames = frames.iter().map(|frame| frame.bytes().unwrap());
                received.push(ReceivedItem::Message(frames.collect()));
            }
            Ok(Some(ReceivedItem::Command(name, data))) => {
                received.push(ReceivedItem::Command(name, data));
            }
            Ok(None) => return (received, true),
            Err(_) => return (received, false),
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
    fn messages_do_not_depend_on_the_pieces(
        messages in vec(vec(frame(), 1..6), 0..6),
        lengths in vec(prop_oneof![1..10usize, 1..100_000usize], 1..8),
        threshold in prop_oneof![Just(usize::MAX), 32_768..100_000usize],
    ) {
        block_on(async {
            let mut written = Vec::new();
            let mut writer = Writer::new(&mut written);
            for message in &messages {
                writer.send(message).await.unwrap();
                writer.send_command("PING", b"\0\0x").await.unwrap();
            }
            drop(writer);
            let limits = Limits::default();
            let (received, is_clean) = read_all(Pieces::new(&written, &lengths), limits, threshold).await;
            assert!(is_clean);
            let ping = || ReceivedItem::Command("PING".into(), Bytes::from_static(b"\0\0x"));
            let expected: Vec<ReceivedItem> = messages
                .iter()
                .flat_map(|message| [ReceivedItem::Message(message.clone()), ping()])
                .collect();
            assert!(received == expected);
            // A truncated connection yields whole messages, then the end or an error.
            let end = lengths[0] % (written.len() + 1);
            let (received, _) = read_all(Pieces::new(&written[..end], &lengths), limits, threshold).await;
            assert!(received[..] == expected[..received.len()]);
        });
    }
}

proptest! {
    #[test]
    fn the_reader_accepts_any_bytes_in_any_pieces(
        bytes in vec(prop_oneof![0..8u8, any::<u8>()], 0..400),
        lengths in vec(1..50usize, 1..4),
    ) {
        let limits = Limits { message_bytes: 100_000, frames: 10 };
        let in_pieces = block_on(read_all(Pieces::new(&bytes, &lengths), limits, 32_768));
        let at_once = block_on(read_all(Pieces::new(&bytes, &[400]), limits, usize::MAX));
        assert_eq!(in_pieces, at_once);
    }

    #[test]
    fn the_codec_accepts_any_frames(
        frames in vec(prop_oneof![
            Just(Bytes::from_static(b"<IDS|MSG>")),
            Just(Bytes::from_static(b"{}")),
            Just(Bytes::from_static(br#"{"msg_type":"x","msg_id":7}"#)),
            vec(any::<u8>(), 0..70).prop_map(Bytes::from),
            "[0-9a-fA-F]{64}".prop_map(Bytes::from),
        ], 0..12),
    ) {
        assert!(MessageCodec::new("key").decode(frames.clone()).is_err(), "a forged message was accepted");
        // Without a key many of them are messages.
        if let Ok(message) = MessageCodec::new("").decode(frames.clone()) {
            message.parent_id();
            message.value();
            let mut again = MessageCodec::new("").encode(&message);
            let at = message.identities.len() + 1;
            again[at].clone_from(&frames[at]);
            assert_eq!(again, frames);
        }
    }

    #[test]
    fn a_signature_computed_while_receiving_is_the_same_as_one_computed_later(
        content in vec(any::<u8>(), 0..300),
        parent in vec(any::<u8>(), 0..300),
        identities in vec(vec(any::<u8>(), 0..300), 0..3),
        buffers in vec(vec(any::<u8>(), 0..300), 0..3),
        changed in any::<Option<(prop::sample::Index, prop::sample::Index)>>(),
        lengths in vec(1..200usize, 1..4),
        // Signatures are too small to be spooled.
        threshold in 65..300usize,
    ) {
        let mut message = Message::new("stream", "session", &serde_json::json!({}));
        message.identities = identities.into_iter().map(Bytes::from).collect();
        message.parent = parent.into();
        message.content = Bytes::from(content).into();
        message.buffers = buffers.into_iter().map(Frame::from).collect();
        let mut frames = MessageCodec::new("key").encode(&message);
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
        block_on(Writer::new(&mut written).send(&frames)).unwrap();
        let decode_with = |signing_key| {
            let pieces = Pieces::new(&written, &lengths);
            let store = SpoolingStore::new(threshold).with_signing_key(signing_key);
            let mut reader = Reader::new(pieces, Limits::default()).with_store(store);
            let frames = match block_on(reader.next()).unwrap() {
                Some(ReceivedItem::Message(frames)) => frames,
                other => panic!("{other:?}"),
            };
            MessageCodec::new("key").decode(frames).map(|message| message.content)
        };
        // From the delimiter to the content.
        let at = message.identities.len();
        let is_right = frames[at..at + 6] == original[at..at + 6];
        let expected = MessageCodec::new("key").decode(frames).map(|message| message.content);
        assert_eq!(expected.is_ok(), is_right);
        assert_eq!(decode_with("key"), expected);
        assert_eq!(decode_with(""), expected);
    }

    #[test]
    fn decoding_returns_the_encoded_message(
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
        let mut codec = MessageCodec::new(&key);
        let frames = codec.encode(&message);
        let received = codec.decode(frames.clone()).unwrap();
        assert_eq!(received.header, message.header);
        assert_eq!(received.identities, message.identities);
        assert_eq!(received.buffers, message.buffers);
        assert_eq!(codec.encode(&received), frames);
    }
}
