//! Decodes arbitrary frames as a message.
//!
//! Each frame is one byte with its length, then its bytes. Messages are first decoded without a key and
//! then signed, because an arbitrary input never contains a valid signature.

#![no_main]

use cellwright_jupyter::codec::{CodecError, MessageCodec};
use cellwright_jupyter::frame::{Frame, StoredFrame};
use cellwright_jupyter::message::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut frames: Vec<Frame> = Vec::new();
    let mut rest = data;
    while let Some((&length, more)) = rest.split_first() {
        let (frame, more) = more.split_at(usize::from(length).min(more.len()));
        // Some frames are on disk.
        frames.push(match StoredFrame::new(frame) {
            Ok(stored) if length % 5 == 3 => Frame::OnDisk(stored),
            _ => Frame::from(frame.to_vec()),
        });
        rest = more;
    }
    // The input cannot contain a valid signature.
    assert!(MessageCodec::new("key").decode(frames.clone()).is_err());
    let Ok(message) = MessageCodec::new("").decode(frames.clone()) else {
        return;
    };
    check_accessors(&message);
    let mut codec = MessageCodec::new("key");
    let signed = codec.encode(&message);
    let is_same = |a: &Message, b: &Message| {
        (
            &a.header,
            &a.identities,
            &a.parent,
            &a.metadata,
            &a.content,
            &a.buffers,
        ) == (
            &b.header,
            &b.identities,
            &b.parent,
            &b.metadata,
            &b.content,
            &b.buffers,
        )
    };
    let again = codec.decode(signed.clone()).expect("the message is signed");
    assert!(is_same(&message, &again));
    assert_eq!(
        codec.decode(signed.clone()).unwrap_err(),
        CodecError::Replayed
    );
    // Any change of a signed part is detected.
    let at = message.identities.len() + 2 + data.len() % 4;
    let mut forged = signed;
    forged[at] = bytes(&[&forged[at][..], b" "].concat());
    assert_eq!(
        MessageCodec::new("key").decode(forged).unwrap_err(),
        CodecError::BadSignature
    );
});

fn bytes<B: From<Vec<u8>>>(bytes: &[u8]) -> B {
    B::from(bytes.to_vec())
}

/// Calls the methods that parse parts of the message.
fn check_accessors(message: &Message) {
    message.parent_id();
    message.value();
    message.size();
    let reply = message.reply("reply", "session", &message.value());
    assert_eq!(reply.identities, message.identities);
}
